/* What is recorded, and with which limits, as metadata of the trace: who reads it later knows what
 * it could show (why/words.h has the words, why/coverage.c reads them). Called by the recorder when
 * everything is open. */
#include "record/decode/calls.h"
#include "record/sample/gpus.h"
#include "record/session/recorder.h"
#include "record/session/running.h"
#include "record/session/spend.h"
#include "record/session/use.h"
#include "why/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PART_KEY(member, name, cat) SV_COVERAGE_KEY name,
static const char *const keys[SV_N_COVERAGE_PARTS] = {SV_COVERAGE_PARTS(PART_KEY)};
#undef PART_KEY

/* `fmt` NULL: it is not recorded. */
__attribute__((format(printf, 3, 4))) static void put(struct sv_recorder *r,
                                                      enum sv_coverage_part part, const char *fmt,
                                                      ...)
{
    char text[512] = SV_COVERAGE_NO;
    va_list args;
    if (fmt) {
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
    }
    char gaps[96], whole[sizeof text + sizeof gaps];
    size_t by = strcspn(text, " "); /* a path is last */
    sv_spending_words(r, part, gaps, sizeof gaps);
    int n = snprintf(whole, sizeof whole, "%.*s%s%s", (int)by, text, fmt ? gaps : "", text + by);
    sv_dict_set_meta(r->dict, keys[part], whole, (size_t)n, false);
}

/* Was it asked for, and does this kernel have it? */
static bool has(const struct sv_recorder *r, enum sv_probe_number i)
{
    const struct sv_kernel *k = r->system.kernel;
    const char *tracepoint = sv_probes[i]->tracepoint;
    return k && r->system.plan.probes[i] &&
           (!tracepoint ||
            (sv_kernel_hooks(k) != SV_HOOKS_PLAIN && !strstr(sv_kernel_missing(k), tracepoint)));
}

/* By the kernel, or by looks at /proc. */
static void put_probe(struct sv_recorder *r, enum sv_coverage_part part, enum sv_probe_number i,
                      bool is_watched)
{
    if (r->ladder.watch && is_watched)
        put(r, part, "proc every_ns=%lld", (long long)r->ladder.every_ns);
    else
        put(r, part, has(r, i) ? "kernel" : NULL);
}

static void put_calls(struct sv_recorder *r)
{
    const struct sv_kernel_options *o = &r->system.plan;
    const char *path = r->options->prefix;
    char groups[128] = "", shortest[48] = "";
    unsigned of_files = o->groups & SV_CALLS_DEFAULT;
    for (unsigned i = 0; sv_call_group_names[i]; i++)
        if (of_files >> i & 1)
            snprintf(groups + strlen(groups), sizeof groups - strlen(groups), "%s%s",
                     groups[0] ? "," : " groups=", sv_call_group_names[i]);
    if (of_files == SV_CALLS_DEFAULT)
        groups[0] = 0;
    int64_t summed = 0;
    struct sv_moment m;
    if (r->options->sum_calls &&
        sv_parse_moment(r->options->sum_calls, strlen(r->options->sum_calls), &m) >= 0)
        summed = m.ns;
    if (summed > (int64_t)o->min_latency_ns)
        snprintf(shortest, sizeof shortest, " min_ns=%lld", (long long)summed);
    else if (o->min_latency_ns)
        snprintf(shortest, sizeof shortest, " min_ns=%llu", (unsigned long long)o->min_latency_ns);
    if (path && r->options->redact)
        path = "redacted";
    if (r->ladder.has_io)
        put(r, SV_COVERAGE_CALLS, "preload");
    else
        put(r, SV_COVERAGE_CALLS, has(r, SV_PROBE_syscalls) && of_files ? "kernel%s%s%s%s" : NULL,
            groups, shortest, path ? " path=" : "", path ? path : "");
    bool has_all = o->groups & SV_CALLS_SOCKETS,
         has_waiting = r->system.kernel && sv_kernel_hooks(r->system.kernel) != SV_HOOKS_PLAIN &&
                       o->groups & SV_CALLS_WAITING;
    put(r, SV_COVERAGE_SOCKETS,
        has(r, SV_PROBE_syscalls) && (has_all || has_waiting) ? "kernel%s%s" : NULL,
        has_all ? "" : " groups=waiting", shortest);
}

/* By libraries in the command, of the programs into which the dynamic linker loads them. Where
 * there are no kernel probes io also records waits for others than locks. */
static void put_injected(struct sv_recorder *r)
{
    bool has_io = r->collect && sv_inject_has("io"),
         has_locks = r->collect && sv_inject_has("locks");
    if (has_io) {
        put(r, SV_COVERAGE_CALLS, "preload");
        put(r, SV_COVERAGE_SOCKETS, "preload groups=waiting min_ns=1000000");
    }
    if (has_io && !r->system.kernel)
        put(r, SV_COVERAGE_PROCESSES, "preload");
    if (has_locks || (has_io && !r->system.kernel))
        put(r, SV_COVERAGE_WAITS, "preload min_ns=%d", has_locks ? 50000 : 1000000);
}

void sv_record_describe_parts(struct sv_recorder *r)
{
    const struct sv_kernel_options *o = &r->system.plan;
    const uint64_t *asked = o->probes;
    put_probe(r, SV_COVERAGE_STATES, SV_PROBE_sched, asked[SV_PROBE_sched]);
    if (r->ladder.watch && asked[SV_PROBE_offcpu])
        put_probe(r, SV_COVERAGE_WAITS, SV_PROBE_offcpu, true);
    else
        put(r, SV_COVERAGE_WAITS,
            has(r, SV_PROBE_offcpu) && sv_kernel_knows_calls(r->system.kernel)
                ? "kernel min_ns=%llu"
                : NULL,
            (unsigned long long)o->offcpu_min_ns);
    put_calls(r);
    put_probe(r, SV_COVERAGE_BLOCK, SV_PROBE_block, false);
    put_probe(r, SV_COVERAGE_PAGE_CACHE, SV_PROBE_page_cache, false);
    put_probe(r, SV_COVERAGE_FAULTS, SV_PROBE_page_fault, false);
    put_probe(r, SV_COVERAGE_PROCESSES, SV_PROBE_process, true);
    uint64_t hz = has(r, SV_PROBE_sample) ? o->probes[SV_PROBE_sample] : 0;
    if (r->ladder.watch && asked[SV_PROBE_offcpu])
        put(r, SV_COVERAGE_SAMPLES, "%s every_ns=%lld%s", r->ladder.has_perf ? "perf" : "proc",
            (long long)r->ladder.every_ns, r->ladder.has_perf ? "" : " groups=python");
    else
        put(r, SV_COVERAGE_SAMPLES, hz ? "kernel every_ns=%llu" : NULL,
            (unsigned long long)(hz ? 1000000000 / hz : 0));
    put(r, SV_COVERAGE_COUNTERS, r->samplers.usage ? "proc every_ns=%lld" : NULL,
        (long long)r->samplers.usage_interval_ns);
    put(r, SV_COVERAGE_GPU,
        r->samplers.gpus && sv_gpus_count(r->samplers.gpus) ? "driver every_ns=%lld" : NULL,
        (long long)r->samplers.gpu_interval_ns);
    put(r, SV_COVERAGE_SDK, r->collect ? "program" : NULL);
    put_injected(r);
    const char *hooks = r->system.kernel ? sv_hooks_names[sv_kernel_hooks(r->system.kernel)] : "";
    if (hooks[0])
        sv_dict_set_meta(r->dict, "hooks", hooks, strlen(hooks), false);
}

/* Words with `between` them, as many as there is space for. */
static void add_word(char *to, size_t size, const char *word, char between)
{
    size_t n = strlen(to);
    if (n + strlen(word) + 2 < size)
        snprintf(to + n, size - n, "%.*s%s", n > 0, &between, word);
}

void sv_record_publish(struct sv_recorder *r, uint64_t events, uint64_t bytes)
{
    const struct sv_words *when = &r->options->triggers.when;
    struct sv_trigger_counts t = sv_triggers_counts(r);
    struct sv_running_state s = {.events = events,
                                 .lost = r->losses.sum,
                                 .hits = t.hits,
                                 .saved = t.saved,
                                 .removed = t.removed,
                                 .skipped = t.skipped,
                                 .disk_bytes = r->options->triggers.disk_bytes};
    sv_parts_counts(r, &s.parts, &s.parts_removed);
    sv_spending_now(r, &s.budget, &s.cost, &s.steps);
    for (unsigned i = 0; i < SV_N_COVERAGE_PARTS; i++) {
        const struct sv_meta *m = sv_dict_find_meta(r->dict, keys[i]);
        if (m && strcmp(sv_dict_text(r->dict, m->value).bytes, SV_COVERAGE_NO) != 0)
            add_word(s.recorded, sizeof s.recorded, keys[i] + sizeof SV_COVERAGE_KEY - 1, ' ');
    }
    for (size_t i = 0; i < when->n; i++)
        add_word(s.conditions, sizeof s.conditions, when->items[i], '\n');
    snprintf(s.newest, sizeof s.newest, "%s", t.newest);
    sv_running_update(r->status.listing, bytes, &s);
}
