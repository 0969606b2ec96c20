/* Probe `rivals`: who had the CPU while a thread could run and did not, and what the kernel counted
 * of the thread (schedstat), as instants on the row of the thread at its end.
 *
 * The kernel's side has the sums (bpf/rivals.h); here they get their words. A rival may be any
 * process of the machine: its cgroup is asked for once, and is missing where it is gone. */
#include "record/bpf/rivals.h"

#include "record/decode/state.h"
#include "record/sample/procfs.h"
#include "record/spool/scout.h"
#include "why/words.h"

#include <string.h>

#define ASKED_NS 1000000 /* who had less is not worth a look at /proc */
enum { CGROUPS_MAX = 4096 };

struct rivals {
    sv_str cat, name, rival, pid, tid, dur, n, quota, outside;
    sv_str cat_stat, run, delay, switches;
    struct sv_map cgroups; /* process and name → string, 0: not known */
};

static void open_rivals(struct sv_decode *d, void *state)
{
    struct rivals *r = state;
    struct sv_dict *dict = d->source.dict;
    const struct {
        sv_str *to;
        const char *text;
    } words[] = {{&r->cat, SV_CAT_CPU_RIVAL},      {&r->name, "CPU rival"},
                 {&r->quota, SV_QUOTA_NAME},       {&r->rival, SV_RIVAL},
                 {&r->pid, SV_RIVAL_PID},          {&r->tid, SV_RIVAL_TID},
                 {&r->dur, SV_RIVAL_DUR},          {&r->n, SV_RIVAL_N},
                 {&r->cat_stat, SV_CAT_SCHEDSTAT}, {&r->run, SV_SCHEDSTAT_RUN},
                 {&r->delay, SV_SCHEDSTAT_DELAY},  {&r->switches, SV_SCHEDSTAT_SWITCHES},
                 {&r->outside, SV_RIVAL_OUTSIDE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        *words[i].to = sv_dict_cstr(dict, words[i].text);
}

static void close_rivals(struct sv_decode *d, void *state)
{
    struct rivals *r = state;
    (void)d;
    sv_map_fini(&r->cgroups);
}

static sv_str cgroup_of(struct sv_decode *d, struct rivals *r, uint32_t pid, const char *name,
                        size_t len)
{
    bool is_new;
    char text[SV_PROCFS_CGROUP_MAX];
    if (r->cgroups.n >= CGROUPS_MAX)
        sv_map_clear(&r->cgroups);
    uint64_t *at = sv_map_add(&r->cgroups, sv_hash_bytes(name, len, pid), &is_new);
    if (is_new) {
        size_t n = d->can_ask_procfs ? sv_procfs_cgroup(pid, text, sizeof text) : 0;
        *at = n ? sv_dict_str(d->source.dict, text, n) : 0;
    }
    return (sv_str)*at;
}

static void put_who(struct sv_decode *d, struct rivals *r, struct sv_batch *b,
                    const struct sv_wire_rival *x)
{
    size_t len = strnlen(x->comm, sizeof x->comm);
    sv_decode_text(b, r->rival, x->comm, len);
    if (!x->is_followed)
        sv_batch_int(b, r->outside, 1);
    if (x->head.what == SV_RIVAL_IS_CROWD || x->tgid == SV_WIRE_NO_PID)
        return;
    sv_batch_int(b, r->pid, x->tgid);
    sv_batch_int(b, r->tid, x->tid);
    if (x->dur_ns >= ASKED_NS)
        sv_decode_put_cgroup(d, b, cgroup_of(d, r, x->tgid, x->comm, len));
}

static bool decode_rival(struct sv_decode *d, void *state, struct sv_batch *b,
                         const struct sv_wire_head *record, uint32_t size)
{
    struct rivals *r = state;
    const struct sv_wire_rival *x = (const void *)record;
    (void)size;
    if (x->dur_ns > INT64_MAX)
        return false;
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, (int64_t)record->ts_ns,
                                      sv_tree_thread(&d->tree, record->tgid, record->tid)->track,
                                      record->what == SV_RIVAL_IS_QUOTA ? r->quota : r->name,
                                      r->cat);
    if (record->what == SV_RIVAL_IS_QUOTA)
        sv_decode_text(b, r->rival, SV_RIVAL_QUOTA, strlen(SV_RIVAL_QUOTA));
    else if (record->what == SV_RIVAL_IS_REST)
        sv_decode_text(b, r->rival, SV_RIVAL_OTHERS, strlen(SV_RIVAL_OTHERS));
    else
        put_who(d, r, b, x);
    sv_batch_int(b, r->dur, (int64_t)x->dur_ns);
    sv_batch_int(b, r->n, x->n);
    if (record->what == SV_RIVAL_IS_QUOTA)
        sv_decode_put_cgroup(d, b, sv_decode_cgroup(d, x->cgroup));
    sv_batch_finish(b, e);
    return true;
}

static bool decode_schedstat(struct sv_decode *d, void *state, struct sv_batch *b,
                             const struct sv_wire_head *record, uint32_t size)
{
    const struct rivals *r = state;
    const struct sv_wire_sched *x =
        &((const struct sv_wire_schedstat *)(const void *)record)->counted;
    (void)size;
    if (x->run_ns > INT64_MAX || x->delay_ns > INT64_MAX || x->switches > INT64_MAX)
        return false;
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, (int64_t)record->ts_ns,
                                      sv_tree_thread(&d->tree, record->tgid, record->tid)->track,
                                      r->cat_stat, r->cat_stat);
    sv_batch_int(b, r->run, (int64_t)x->run_ns);
    sv_batch_int(b, r->delay, (int64_t)x->delay_ns);
    sv_batch_int(b, r->switches, (int64_t)x->switches);
    sv_batch_finish(b, e);
    return true;
}

const struct sv_probe sv_probe_rivals = {
    .name = "rivals",
    .cat = SV_CAT_CPU_RIVAL,
    .records = {{SV_WIRE_RIVAL, sizeof(struct sv_wire_rival), "CPU rivals", decode_rival},
                {SV_WIRE_SCHEDSTAT, sizeof(struct sv_wire_schedstat), "sums of threads",
                 decode_schedstat}},
    .docs = {"who had the CPU (category `cpu_rival`), and the kernel's sums (`schedstat`)",
             "the thread, at its end",
             "per rival, whoever it is: name, pid, tid, cgroup, `outside` of the recording, how "
             "long and "
             "how often it ran while this thread could; short-lived ones by name, without pid; the "
             "same of a quota of its group; `run_ns`, `delay_ns`, `switches` of "
             "the thread"},
    .with = {&sv_probe_sched, &sv_probe_offcpu},
    .tracepoint = "sched_switch",
    .state_size = sizeof(struct rivals),
    .open = open_rivals,
    .close = close_rivals,
    .ends_gathering = true,
    .can_wait = sv_scout_always,
};
