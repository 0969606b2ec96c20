/* record_hooks [SET COMMAND…]: programs that do nothing on the tracepoints which `stave record`
 * uses: what is left is the kernel's own price for them.
 *
 * Without arguments those of system calls, until a signal ends it, and prints `on` when they are
 * attached: bench/run measures what other processes pay. With them runs the command under the
 * tracepoints of a set of bench/record/wall.py: `calls`, `light` or `default`; the least that a
 * recording by these tracepoints can cost. */
#ifdef SV_HAVE_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of src/record/bpf, from what all sets have to what only the last one has. */
static const char *const calls[] = {"sys_enter", "sys_exit", NULL};
static const char *const light[] = {"sched_process_fork",
                                    "sched_process_exec",
                                    "sched_process_exit",
                                    "task_rename",
                                    "block_rq_insert",
                                    "block_rq_issue",
                                    "block_rq_complete",
                                    "mm_filemap_add_to_page_cache",
                                    "mm_filemap_map_pages",
                                    "mm_filemap_fault",
                                    "io_uring_submit_req",
                                    "io_uring_complete",
                                    NULL};
static const char *const whole[] = {"sched_switch",        "sched_waking",
                                    "sched_wakeup_new",    "hrtimer_expire_entry",
                                    "hrtimer_expire_exit", "irq_handler_entry",
                                    "irq_handler_exit",    "softirq_entry",
                                    "softirq_exit",        NULL};
static const struct {
    const char *name;
    const char *const *tracepoints;
} sets[] = {{"calls", calls}, {"light", light}, {"default", whole}};

static int hook(const char *tracepoint)
{
    static const struct bpf_insn nothing[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0}, {.code = BPF_JMP | BPF_EXIT}};
    int id = libbpf_find_vmlinux_btf_id(tracepoint, BPF_TRACE_RAW_TP);
    struct bpf_prog_load_opts options = {
        .sz = sizeof options, .expected_attach_type = BPF_TRACE_RAW_TP, .attach_btf_id = (__u32)id};
    if (id < 0)
        return -1;
    int program = bpf_prog_load(BPF_PROG_TYPE_TRACING, "nothing", "GPL", nothing, 2, &options);
    return program < 0 ? -1 : bpf_raw_tracepoint_open(NULL, program);
}

/* The set and those before it. */
static int hook_set(const char *name)
{
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        for (const char *const *t = sets[i].tracepoints; *t; t++)
            if (hook(*t) < 0) {
                fprintf(stderr, "record_hooks: ");
                perror(*t);
                return -1;
            }
        if (strcmp(sets[i].name, name) == 0)
            return 0;
    }
    fprintf(stderr, "record_hooks: '%s' is none of calls, light and default\n", name);
    return -1;
}

/* Its descriptors, and with them the programs, stay here. */
static int run(char **words)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        execvp(words[0], words);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : 1;
}

int main(int argc, char **argv)
{
    if (hook_set(argc > 2 ? argv[1] : "calls") < 0)
        return 1;
    if (argc > 2)
        return run(argv + 2);
    puts("on");
    fflush(stdout);
    pause();
    return 0;
}

#else

#include <stdio.h>

int main(void)
{
    fprintf(stderr, "record_hooks: built without libbpf\n");
    return 1;
}

#endif
