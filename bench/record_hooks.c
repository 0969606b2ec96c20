/* record_hooks: programs that do nothing on the tracepoints which `stave record` uses, until a
 * signal ends it.
 *
 * What they cost every process of the machine is the kernel's own price for a hooked system call:
 * the limit that bench/run compares with. Prints `on` when both are attached. */
#ifdef SV_HAVE_BPF

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <unistd.h>

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

int main(void)
{
    if (hook("sys_enter") < 0 || hook("sys_exit") < 0) {
        perror("record_hooks");
        return 1;
    }
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
