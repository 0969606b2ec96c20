/* The probes, one line each: SV_PROBE(NAME, OPTION, KINDS OF ITS RECORDS…).
 *
 * NAME is `sv_probe_NAME` in probes/NAME.c, and bpf/NAME.h on the kernel's side. OPTION is the type
 * of its option of `stave record`: FLAG, PAIR (--X and --no-X), COUNT, or NONE where it has none.
 * Included with SV_PROBE defined, as often as a list is needed; the build makes the kernel's
 * includes of it. The numbers of the kinds follow from the order, which is also that of options,
 * summary and documentation: new lines go to the end. */
SV_PROBE(syscalls, FLAG, SV_WIRE_CALL)
SV_PROBE(process, NONE, SV_WIRE_FORK, SV_WIRE_EXEC, SV_WIRE_EXIT, SV_WIRE_NAME)
SV_PROBE(block, FLAG, SV_WIRE_BLOCK)
SV_PROBE(page_cache, FLAG, SV_WIRE_CACHE)
SV_PROBE(sched, PAIR, SV_WIRE_STATE)
SV_PROBE(sample, COUNT, SV_WIRE_SAMPLE)
SV_PROBE(io_uring, NONE, SV_WIRE_URING)
SV_PROBE(page_fault, NONE, SV_WIRE_FAULT)
SV_PROBE(stack, NONE, SV_WIRE_CODE)
SV_PROBE(network, NONE, SV_WIRE_TRANSFER)
SV_PROBE(offcpu, PAIR, SV_WIRE_OFFCPU, SV_WIRE_RELEASE)
SV_PROBE(rivals, NONE, SV_WIRE_RIVAL, SV_WIRE_SCHEDSTAT)
SV_PROBE(aio, NONE, SV_WIRE_AIO)
