/* Whole recordings: see whole.h. */
#include "tests/unit/whole.h"

#include "cmd/commands.h"
#include "record/kernel/kernel.h"
#include "tests/harness/test.h"
#include "tests/unit/verb.h"

#include <signal.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int whole_record(const char *line)
{
    return verb(&sv_command_record, line);
}

/* The rows of a query over t.pftrace, as CSV without its head. */
const char *whole_ask(const char *file, const char *sql)
{
    static char line[2048];
    snprintf(line, sizeof line, "--to csv %s '%s'", file, sql);
    if (!CHECK_INT_EQ(verb(&sv_command_query, line), 0))
        printf("%s\n%s\n", line, verb_message);
    const char *rows = strchr(verb_shown, '\n');
    return rows ? rows + 1 : "";
}

void whole_need_sql(void)
{
#ifndef SV_HAVE_SQLITE
    SKIP("built without SQLite, which looks into the trace");
#endif
}

void whole_need_kernel(void)
{
    whole_need_sql();
    struct sv_kernel_options options = {0};
    struct sv_kernel *k;
    struct sv_err err = {0};
    static char why[600];
    if (!sv_kernel_is_built())
        SKIP("built without eBPF");
    if (sv_kernel_open(&options, &k, &err) < 0) {
        snprintf(why, sizeof why, "no kernel programs here: %.500s", err.msg);
        SKIP(why);
    }
    sv_kernel_close(k);
}

/* A file of 1,000 bytes; a program that reads it, writes it to another one and ends with 7; one
 * that opens it 3,000 times and ends with 3. */
void whole_make_work(void)
{
    char text[1001];
    memset(text, 'x', sizeof text - 1);
    text[1000] = '\0';
    test_write_file("in", text);
    test_write_file("work.sh", "dd if=in of=out bs=500 status=none\nexit 7\n");
    test_write_file("many.sh", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); : <in; done; exit 3\n");
}

/* What was said has this, however many blanks are between the words. */
bool whole_says(const char *text)
{
    char line[sizeof verb_said];
    size_t n = 0;
    for (const char *c = verb_said; *c; c++)
        if (*c != ' ' || (n > 0 && line[n - 1] != ' '))
            line[n++] = *c;
    line[n] = '\0';
    return strstr(line, text) != NULL;
}

uint64_t whole_number(const char *file, const char *sql)
{
    return strtoull(whole_ask(file, sql), NULL, 10);
}

/* "139 system calls": the number before the words. */
uint64_t whole_number_before(const char *text, const char *words)
{
    uint64_t n = 0, unit = 1;
    const char *at = strstr(text, words);
    for (; at && at > text && (at[-1] == ',' || (at[-1] >= '0' && at[-1] <= '9')); at--)
        if (at[-1] != ',')
            n += (uint64_t)(at[-1] - '0') * unit, unit *= 10;
    return n;
}

uint64_t whole_said(const char *words)
{
    return whole_number_before(verb_said, words);
}

/* What whole_record_emitter() records. */
TEST(emitter)
{
    static char text[4000];
    const char *n = getenv("EMIT"), *sends = getenv("EMIT_SIGNAL");
    struct stave_options options = {.size = sizeof options, .full = STAVE_FULL_BLOCK};
    struct rlimit any = {RLIM_INFINITY, RLIM_INFINITY};
    if (!n)
        return;
    setrlimit(RLIMIT_FSIZE, &any);       /* limits are for the recorder */
    memset(text, '\1', sizeof text - 1); /* JSON has six bytes for each */
    REQUIRE(stave_start(&options, NULL) == 0);
    {
        STAVE_SCOPE("c", "whole");
        for (unsigned i = 0; i < strtoul(n, NULL, 10); i++) {
            STAVE_INSTANT("c", "n", "seq", i, "text", text);
            if (i % 16 == 15)
                usleep(6000);
        }
        const char *hits = getenv("EMIT_HITS");
        for (unsigned i = 0; hits && i < strtoul(hits, NULL, 10); i++) {
            int64_t now = stave_now_ns();
            struct stave_event hit = {.size = sizeof hit,
                                      .kind = STAVE_KIND_COMPLETE,
                                      .category = "c",
                                      .name = i % 2 ? "short" : "long",
                                      .start_ns = now - (i % 2 ? 1000000 : 5000000),
                                      .dur_ns = i % 2 ? 1000000 : 5000000};
            stave_emit(&hit);
            usleep(60000);
        }
        if (sends) {
            char saved[64];
            stave_flush();
            snprintf(saved, sizeof saved, "%s", sends);
            kill(getppid(), SIGUSR1);
            while (access(saved, F_OK) != 0)
                usleep(5000);
        }
    }
    stave_stop();
}

int whole_record_emitter(unsigned n, const char *options)
{
    char line[1200], self[512], count[16];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    REQUIRE(len > 0);
    self[len] = '\0';
    snprintf(count, sizeof count, "%u", n);
    setenv("EMIT", count, 1);
    snprintf(line, sizeof line, "--only sdk --no-explain %s -- %s -n whole.emitter", options, self);
    int code = whole_record(line);
    unsetenv("EMIT");
    return code;
}
