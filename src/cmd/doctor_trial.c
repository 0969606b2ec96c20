/* stave doctor's trial: a child is recorded as `stave record` would record it, and its calls are
 * looked for in what comes out.
 *
 * Loading the kernel programs is not enough to know that they see this process: pids may be those
 * of a container. Called by cmd/doctor.c. */
#include "cmd/doctor.h"
#include "record/decode/decode.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OPENS = 7, ROUNDS_MAX = 200 };
static const char opened[] = "/dev/null";

struct trial {
    struct sv_sink sink; /* first: looks at what comes */
    sv_track process;    /* of the child */
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_batch *batch;
    struct sv_decode *decode;
    struct sv_kernel *kernel;
    unsigned n_opens, n_exits; /* of the child */
};

/* In the child: waits until it is followed. */
static _Noreturn void play(int go)
{
    char byte;
    if (read(go, &byte, 1) != 1)
        _exit(1);
    for (int i = 0; i < OPENS; i++) {
        int fd = open(opened, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            close(fd);
    }
    _exit(0);
}

static pid_t start_child(int *go)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        play(ends[0]);
    }
    close(ends[0]);
    *go = ends[1];
    return child;
}

static bool has_path(const struct sv_event *e)
{
    for (size_t i = 0; i < e->n_args; i++)
        if (e->args[i].type == SV_ARG_TEXT && e->args[i].size == strlen(opened) &&
            memcmp(e->args[i].text, opened, strlen(opened)) == 0)
            return true;
    return false;
}

static void look_at(struct trial *t, const struct sv_event *e)
{
    const char *name = sv_dict_text(t->dict, e->name).bytes;
    if (sv_dict_process_of(t->dict, e->track) != t->process)
        return;
    t->n_opens += e->kind == SV_SLICE && strncmp(name, "open", 4) == 0 && has_path(e);
    t->n_exits += e->kind == SV_INSTANT && strcmp(name, "exit") == 0;
}

static int look_at_all(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    (void)err;
    for (size_t i = 0; i < n; i++)
        look_at((struct trial *)s, &events[i]);
    return 0;
}

/* The child has ended, so all its records are there or will be in a moment. */
static int take_records(struct trial *t, pid_t child, struct sv_err *err)
{
    int code = 0;
    t->process = sv_dict_process(t->dict, 0, (uint32_t)child);
    for (int round = 0; code >= 0 && round < ROUNDS_MAX && t->n_exits == 0; round++) {
        struct timespec now;
        clock_gettime(CLOCK_BOOTTIME, &now);
        sv_decode_round(t->decode, (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
        code = sv_pump_round(sv_decode_source(t->decode), &t->sink, t->batch, err);
        sv_decode_release(t->decode);
        if (t->n_exits == 0)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return code;
}

static int record_child(struct trial *t, struct sv_err *err)
{
    int go = -1, status = 0;
    pid_t child = start_child(&go);
    if (child < 0)
        return sv_err_sys(err, "cannot start a process");
    int code = sv_kernel_follow(t->kernel, (uint32_t)child, err);
    if (code >= 0 && write(go, "g", 1) != 1)
        code = sv_err_sys(err, "cannot start the child process");
    close(go);
    waitpid(child, &status, 0);
    if (code >= 0)
        code = take_records(t, child, err);
    if (code < 0)
        return code;
    if (t->n_opens != OPENS || t->n_exits != 1)
        return sv_error(err, SV_EIO,
                        "a child process (pid %d) made %d system calls, %u of them were recorded",
                        (int)child, OPENS, t->n_opens);
    return 0;
}

int sv_doctor_trial(struct sv_kernel *kernel, struct sv_err *err)
{
    struct trial t = {.sink = {.write = look_at_all, .takes = SV_HAS_ANYTHING},
                      .kernel = kernel,
                      .dict = sv_dict_new(),
                      .batch = sv_alloc(sizeof *t.batch)};
    sv_report_init(&t.report);
    sv_batch_init(t.batch);
    t.decode = sv_decode_new(t.dict, &t.report, &(struct sv_decode_options){.asks_procfs = true});
    sv_kernel_rings(kernel, sv_decode_rings(t.decode));
    int code = record_child(&t, err);
    sv_decode_free(t.decode);
    sv_batch_fini(t.batch);
    free(t.batch);
    sv_report_fini(&t.report);
    sv_dict_free(t.dict);
    return code;
}

/* In a child: the library starts things of its own when it is loaded. */
enum sv_starpu sv_doctor_starpu(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        void *lib = dlopen("libstarpu-1.3.so.9", RTLD_LAZY | RTLD_LOCAL);
        lib = lib ? lib : dlopen("libstarpu-1.3.so", RTLD_LAZY | RTLD_LOCAL);
        _exit(!lib                                    ? SV_STARPU_NONE
              : dlsym(lib, "starpu_fxt_options_init") ? SV_STARPU_FXT
                                                      : SV_STARPU_PLAIN);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return SV_STARPU_NONE;
    return (enum sv_starpu)WEXITSTATUS(status);
}
