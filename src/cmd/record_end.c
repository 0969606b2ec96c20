/* The end of a recording: what slows the program down, and the command that shows more. Called by
 * `stave record` when the trace is complete.
 *
 * In a process of its own, with limits of time and memory: whatever the trace is like, the
 * recording is done, and its exit code is not changed. */
#include "cmd/record_end.h"

#include "cli/console.h"
#include "cmd/briefly.h"
#include "core/base/json.h"
#include "record/session/recorder.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SENTENCES = 3, SECONDS_MOST = 20 };
#define BYTES_MOST  ((int64_t)64 << 20) /* of a trace: about two million events */
#define MEMORY_MOST ((size_t)1 << 30)

static void explain_to(FILE *to, const char *path)
{
    struct sv_err err = {0};
    signal(SIGALRM, SIG_DFL);
    alarm(SECONDS_MOST);
    if (sv_explain_briefly(to, path, SENTENCES, MEMORY_MOST, &err) < 0)
        sv_print(to, "  cannot explain it: %s\n", err.msg);
    fflush(NULL);
}

void sv_record_explain_saved(const char *path, const char *cause)
{
    sv_print(stdout, "%s", path);
    sv_print_text(stdout, cause[0] ? ": " : "", cause, strlen(cause), "\n");
    explain_to(stdout, path);
}

static bool is_wanted(const struct sv_recorder *r)
{
    const struct sv_record_options *o = r->options;
    if (o->explain)
        return true;
    return !o->no_explain && !o->only && !sv_common.quiet && !o->no_summary && !o->detach &&
           !o->use.rotate && !o->use.last && !o->redact;
}

/* Nothing at all: why, and what to do. */
static void say_empty(const struct sv_recorder *r)
{
    sv_print(
        stderr,
        r->options->only
            ? "  The trace has no events: --only sdk records programs that trace with libstave, "
              "and this one does not. Leave it out, or load a library with --inject.\n"
        : r->system.kernel
            ? "  The trace has no events: nothing was recorded while the command ran. Does it "
              "start what you want to see, and do filters such as --path leave anything?\n"
            : "  The trace has no events: kernel programs are not allowed here, and the rest "
              "was switched off or the command ended at once. Run 'stave doctor' to see what "
              "works here; record a longer run, and leave --no-look and --interval 0 out.\n");
}

/* The files of a container go when it does: with triggers, what a failed command died of is said
 * where its output goes. */
static FILE *place_for(const struct sv_recorder *r)
{
    bool failed = r->command->n > 0 && sv_child_exit_code(r) != 0;
    return r->options->explain && r->options->triggers.when.n && failed ? stdout : stderr;
}

/* One line, on standard error: standard output is the command's. */
static void print_json(const struct sv_recorder *r, const char *path)
{
    struct stat st = {0};
    struct sv_buf b;
    struct sv_json j;
    sv_buf_init(&b, 1u << 16);
    sv_json_init(&j, &b);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "version", u64, 1);
    sv_json_put(&j, "trace", cstr, path);
    sv_json_put(&j, "bytes", u64, stat(path, &st) == 0 ? (uint64_t)st.st_size : 0);
    sv_json_put(&j, "duration_ns", i64, r->times.stopped_ns - r->times.started_ns);
    sv_json_put(&j, "events", u64, r->meter.events);
    sv_json_put(&j, "lost", u64, r->losses.sum + r->meter.lost);
    sv_json_put(&j, "by", cstr, r->system.kernel ? "kernel programs" : "the unprivileged means");
    sv_json_lit(&j, "partial");
    sv_json_bool(&j, r->is_partial);
    if (r->command->n > 0)
        sv_json_put(&j, "exit_code", i64, sv_child_exit_code(r));
    sv_json_end(&j);
    sv_buf_byte(&b, '\n');
    struct sv_err ignored = {0};
    sv_print_data(stderr, b.data, b.len, &ignored);
    sv_buf_fini(&b);
}

void sv_record_end(const struct sv_recorder *r, const char *path)
{
    FILE *to = place_for(r);
    struct stat st;
    sigset_t none;
    int status = 0;
    if (r->options->json)
        print_json(r, path);
    if (r->meter.events == 0 && !sv_common.quiet && !r->options->json)
        say_empty(r);
    if (!is_wanted(r) || r->meter.events == 0 || stat(path, &st) != 0)
        return;
    if (st.st_size > BYTES_MOST && !r->options->explain) {
        sv_print(stderr, "  the trace is large: 'stave explain %s' says what slows it down\n",
                 path);
        return;
    }
    sv_print(to, "\nWhat slows it down:\n");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        explain_to(to, path);
        _exit(0);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
        sv_print(to, "  it takes longer than %d s to find out\n", SECONDS_MOST);
    sv_print(to, "Look closer: stave explain %s; stave view %s\n", path, path);
}
