/* The verb recover over what real programs leave: rings and growing files of killed programs with
 * children, a listener's spool, and files of ferrum's writer. All that it prints is compared. */
#include "cmd/commands.h"
#include "core/files/claim_file.h"
#include "listen/spool.h"
#include "tests/unit/sdk_scene.h"
#include "tests/unit/verb.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stave/trace_writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Appends what is the same each time: "." for the folder, S for a session, COMMAND for this
 * program, # for numbers of processes and bytes. */
static void put_plain(struct sv_buf *b, const char *from)
{
    char here[PATH_MAX], command[256], unit[8];
    REQUIRE(getcwd(here, sizeof here) != NULL);
    sv_claim_command_of((uint32_t)getpid(), command, sizeof command);
    size_t n = strlen(here);
    while (*from) {
        int digits = 0;
        if (strncmp(from, here, n) == 0) {
            sv_buf_byte(b, '.');
            from += n;
        } else if (strncmp(from, command, strlen(command)) == 0) {
            sv_buf_str(b, "COMMAND");
            from += strlen(command);
        } else if (strncmp(from, "/sessions/", 10) == 0) {
            sv_buf_str(b, "/sessions/S");
            from += 10 + strcspn(from + 10, " /:\n");
        } else if (strncmp(from, "pid ", 4) == 0 || strncmp(from, "process ", 8) == 0) {
            sv_buf_printf(b, "%.*s", (int)strcspn(from, " ") + 1, from);
            from += strcspn(from, " ") + 1;
            digits = (int)strspn(from, "0123456789");
            sv_buf_str(b, digits ? "#" : "");
            from += digits;
        } else if (isdigit((unsigned char)*from) &&
                   (sscanf(from, "%*[0-9.] %7s%n", unit, &digits) == 1) &&
                   (strncmp(unit, "B", 1) == 0 || strncmp(unit, "KiB", 3) == 0 ||
                    strncmp(unit, "bytes", 5) == 0)) {
            sv_buf_str(b, "# B");
            from += strspn(from, "0123456789.") + 1;
            from += strspn(from, "KiBytes");
        } else {
            sv_buf_byte(b, (uint8_t)*from++);
        }
    }
}

static struct sv_buf transcript;

static void begin_steps(const char *folder)
{
    verb_enter(folder);
    sv_buf_init(&transcript, 1 << 20);
}

/* What the verb prints and says, its error, the files that are there afterwards, and how many
 * sessions. */
static void recover(const char *line)
{
    struct sv_buf *b = &transcript;
    int code = verb(&sv_command_recover, line);
    sv_buf_printf(b, "$ stave recover %s\n", line);
    put_plain(b, verb_shown);
    put_plain(b, verb_said);
    if (code < 0) {
        sv_buf_printf(b, "error %d: ", code);
        put_plain(b, verb_message);
        sv_buf_byte(b, '\n');
    }
    sv_buf_printf(b, "[%s] sessions: %zu\n", verb_files(), sdk_entries("sessions"));
}

/* UPDATE=1 writes what is expected anew. */
static void compare_with(const char *expected)
{
    verb_leave();
    if (getenv("UPDATE"))
        test_write_file(test_source(expected), sv_buf_cstr(&transcript));
    CHECK_STR_EQ(sv_buf_cstr(&transcript), test_read_file(test_source(expected)));
    sv_buf_fini(&transcript);
}

static void run(const char *out, int in_file, int in_rings, int to)
{
    struct stave_options o = {.size = sizeof o, .out = out, .buffer_bytes = 64 << 10};
    stave_start(&o, NULL);
    for (int i = 0; i < in_file; i++)
        STAVE_INSTANT("c", "file", "i", i);
    stave_flush();
    sdk_hold();
    for (int i = 0; i < in_rings; i++)
        STAVE_INSTANT("c", "ring", "i", i);
    if (to >= 0 && write(to, "x", 1) != 1)
        _exit(1);
}

/* A program that is killed with so many events in its file and in its ring. */
static void killed(const char *out, int in_file, int in_rings)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        run(out, in_file, in_rings, -1);
        raise(SIGKILL);
    }
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

static size_t instants(const char *path)
{
    static struct sdk_scene s;
    size_t n = 0;
    if (!s.text.data)
        sv_buf_init(&s.text, 1 << 20);
    sdk_read(&s, path);
    for (size_t i = 0; i < s.file.got.n; i++)
        n += s.file.got.events[i].kind == SV_INSTANT;
    return n;
}

TEST(a_file_and_rings)
{
    begin_steps("rings");
    killed("t.pftrace", 3, 2);
    recover("");
    recover("--dry-run t.pftrace");
    recover("--clean");
    recover("--keep t.pftrace");
    CHECK_UINT_EQ(instants("t.pftrace"), 5);
    recover("");
    recover("--clean");
    recover("--clean --yes");
    killed("u.pftrace", 3, 0);
    recover("u.pftrace -o v.json");
    killed("w.pftrace", 0, 2);
    recover("--dry-run w.pftrace");
    recover("w.pftrace");
    CHECK_UINT_EQ(instants("w.pftrace"), 2);
    killed("x.pftrace", 0, 0);
    recover("--dry-run x.pftrace");
    recover("x.pftrace");
    killed("y.pftrace", 3, 2);
    unlink("y.pftrace.part");
    recover("--dry-run y.pftrace");
    recover("y.pftrace");
    compare_with("tests/unit/recover/file_and_rings.txt");
}

/* A program that runs, whose session has no name to wait for. */
TEST(of_programs_that_run)
{
    test_leaves_open();
    int ends[2], status;
    char c;
    begin_steps("running");
    REQUIRE(pipe(ends) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        run("t.pftrace", 3, 2, ends[1]);
        for (;;)
            pause();
    }
    REQUIRE(read(ends[0], &c, 1) == 1);
    recover("");
    recover("t.pftrace");
    recover("--force t.pftrace");
    recover("--clean --yes --discard t.pftrace");
    kill(pid, SIGKILL);
    REQUIRE(waitpid(pid, &status, 0) == pid);
    recover("t.pftrace");
    compare_with("tests/unit/recover/running.txt");
}

/* ---- ferrum's files ---- */

static void write_and_die(const char *path, int n)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct stave_trace_writer *w = stave_trace_writer_open(path);
        for (int i = 0; i < n; i++) {
            struct stave_trace_event e = {.name = "n", .cat = "c", .ts = 5, .dur = 7, .pid = 1};
            stave_trace_writer_push_event(w, &e);
        }
        raise(SIGKILL);
    }
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
}

TEST(files_of_ferrum)
{
    begin_steps("ferrum");
    write_and_die("f.json", 3);
    recover("");
    recover("--dry-run f.json");
    recover("f.json -o g.json");
    recover("--clean");
    recover("--clean --yes");
    recover("--keep f.json");
    recover("f.json");
    recover("f.json");
    write_and_die("h.json", 3);
    recover("--clean --discard h.json");
    recover("--clean --yes --discard h.json");
    write_and_die("i.json", 3);
    REQUIRE(rename("i.json", "j.json") == 0);
    recover("j.json");
    compare_with("tests/unit/recover/ferrum.txt");
}
