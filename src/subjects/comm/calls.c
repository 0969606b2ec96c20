/* The communication report's first part: which slices are calls of collectives, of which rank,
 * group and number.
 *
 * Called once by sv_comm_report_make(). Two vocabularies are understood: that of
 * subjects/comm/words.h, and Kineto's kernels ("ncclKernel…", "ncclDevKernel…", or anything with
 * "Collective name"). A kernel's number is its own "Seq", else that of the host operation
 * record_param_comms that launched it; a call without any is counted in its group on its rank.
 * Point-to-point operations are no collectives. */
#include "subjects/comm/figures.h"

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/stream/gpu_words.h"
#include "core/stream/launched.h"
#include "store/ranks.h"
#include "why/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS_MAX = 1 << 16, NO_SEQ = -1 };

/* Keys of arguments in the trace, 0 where it has no such word. */
struct words {
    sv_str collective; /* the category */
    sv_str op, group, seq, bytes, size, rank, desc, members;
    sv_str kineto_op, kineto_group, kineto_desc, kineto_members, kineto_size, kineto_seq,
        kineto_elements, kineto_type, param_comms;
};

struct finder {
    struct sv_comm_report *r;
    const struct sv_trace *t;
    struct words w;
    struct sv_launches launches;
    struct sv_gpu_words
        /* classes of categories; nothing is added to the dictionary, which others may be reading */
        gpu;
    uint8_t *is_nccl; /* by string */
    struct sv_map groups, ranks;
    bool *is_asked;   /* by track: … */
    int64_t *numbers; /* … its rank, -1: unknown */
    struct sv_batch *scratch;
    struct sv_buf text;
    size_t cap_calls, cap_groups, cap_ranks;
};

/* ---- arguments ---- */

static sv_str word(const struct sv_trace *t, const char *text)
{
    return sv_dict_find_str(t->dict, text, strlen(text));
}

static struct words find_words(const struct sv_trace *t)
{
    return (struct words){
        .collective = word(t, SV_CAT_COLLECTIVE),
        .op = word(t, SV_COMM_OP),
        .group = word(t, SV_COMM_GROUP),
        .seq = word(t, SV_COMM_SEQ),
        .bytes = word(t, SV_COMM_BYTES),
        .size = word(t, SV_COMM_SIZE),
        .rank = word(t, SV_COMM_RANK),
        .desc = word(t, SV_COMM_DESC),
        .members = word(t, SV_COMM_MEMBERS),
        .kineto_op = word(t, "Collective name"),
        .kineto_group = word(t, "Process Group Name"),
        .kineto_desc = word(t, "Process Group Description"),
        .kineto_members = word(t, "Process Group Ranks"),
        .kineto_size = word(t, "Group size"),
        .kineto_seq = word(t, "Seq"),
        .kineto_elements = word(t, "In msg nelems"),
        .kineto_type = word(t, "dtype"),
        .param_comms = word(t, "record_param_comms"),
    };
}

static bool argument(const struct finder *f, uint32_t row, sv_str key, struct sv_arg *a)
{
    return key && sv_trace_arg(f->t, f->t->slices.args[row], key, a);
}

static int64_t number(const struct finder *f, uint32_t row, sv_str key, int64_t none)
{
    struct sv_arg a;
    int64_t value;
    return argument(f, row, key, &a) && sv_gpu_whole(&a, &value) ? value : none;
}

/* A list of numbers as text, as it is where the source writes text. */
static void list_text(struct finder *f, uint32_t row, sv_str key)
{
    size_t n;
    const struct sv_arg *args = sv_trace_args(f->t, f->t->slices.args[row], f->scratch, &n);
    for (const struct sv_arg *a = args; a && a < args + n; a = sv_arg_next(a)) {
        if (a->key != key || a->type != SV_ARG_ARRAY)
            continue;
        sv_buf_byte(&f->text, '[');
        for (uint32_t i = 0; i < a->size; i++)
            if (a[1 + i].type == SV_ARG_INT)
                sv_buf_printf(&f->text, "%s%" PRId64, i ? ", " : "", a[1 + i].i);
        sv_buf_byte(&f->text, ']');
        break;
    }
    sv_batch_reset(f->scratch);
}

/* The text of an argument as a string of the report; 0: there is none. */
static sv_str text(struct finder *f, uint32_t row, sv_str key)
{
    struct sv_arg a;
    if (!argument(f, row, key, &a))
        return 0;
    if (a.type == SV_ARG_TEXT)
        return sv_dict_str(f->r->strings, a.text, a.size);
    sv_buf_clear(&f->text);
    if (a.type == SV_ARG_INT)
        sv_buf_printf(&f->text, "%" PRId64, a.i);
    else if (a.type == SV_ARG_ARRAY)
        list_text(f, row, key);
    return f->text.len ? sv_dict_str(f->r->strings, sv_buf_cstr(&f->text), f->text.len) : 0;
}

/* ---- ranks and groups ---- */

/* Each track is asked once. */
static int64_t rank_of_track(struct finder *f, sv_track track)
{
    if (!f->is_asked[track]) {
        f->is_asked[track] = true;
        f->numbers[track] = sv_rank_of_track(f->t, track);
    }
    return f->numbers[track];
}

static uint32_t rank_at(struct finder *f, uint32_t row, bool is_ours)
{
    struct sv_comm_report *r = f->r;
    sv_track track = f->t->slices.track[row], process = sv_dict_process_of(f->t->dict, track);
    int64_t rank = is_ours ? number(f, row, f->w.rank, -1) : -1;
    bool is_new;
    if (rank < 0)
        rank = rank_of_track(f, track);
    for (sv_track up = track; !process && up; up = f->t->dict->tracks[up].parent)
        process = f->t->dict->tracks[up].parent ? 0 : up;
    uint64_t *slot =
        sv_map_add(&f->ranks, rank >= 0 ? (uint64_t)rank : UINT64_C(1) << 63 | process, &is_new);
    if (is_new) {
        r->ranks = sv_grow(r->ranks, &f->cap_ranks, r->n_ranks + 1, sizeof *r->ranks);
        r->ranks[r->n_ranks] =
            (struct sv_comm_rank){.number = rank < 0 ? -1 : rank, .process = process, .p_value = 1};
        *slot = r->n_ranks++;
    }
    return (uint32_t)*slot;
}

/* Ranks whose files are here and have no call: the ones that others wait for. */
static void add_silent_ranks(struct finder *f)
{
    static const char end[] = "/" SV_META_RANK;
    struct sv_comm_report *r = f->r;
    const struct sv_dict *d = f->t->dict;
    for (uint32_t i = 0; i < d->n_meta; i++) {
        struct sv_text key = sv_dict_text(d, d->meta[i].key);
        const char *value = sv_dict_text(d, d->meta[i].value).bytes;
        char *after;
        bool is_new, is_rank = strcmp(key.bytes, SV_META_RANK) == 0 ||
                               (key.len >= sizeof end &&
                                strcmp(key.bytes + key.len - (sizeof end - 1), end) == 0);
        long long rank = is_rank ? strtoll(value, &after, 10) : -1;
        if (rank < 0 || after == value || *after)
            continue;
        uint64_t *slot = sv_map_add(&f->ranks, (uint64_t)rank, &is_new);
        if (!is_new)
            continue;
        r->ranks = sv_grow(r->ranks, &f->cap_ranks, r->n_ranks + 1, sizeof *r->ranks);
        r->ranks[r->n_ranks] = (struct sv_comm_rank){.number = rank, .p_value = 1};
        *slot = r->n_ranks++;
    }
}

/* Groups of one name are different ones where their members are. */
static uint32_t group_at(struct finder *f, uint32_t row, bool is_ours)
{
    struct sv_comm_report *r = f->r;
    const struct words *w = &f->w;
    sv_str name = text(f, row, is_ours ? w->group : w->kineto_group);
    sv_str members = text(f, row, is_ours ? w->members : w->kineto_members);
    bool is_new;
    uint64_t *slot = sv_map_add(&f->groups, (uint64_t)name << 32 | members, &is_new);
    if (is_new) {
        r->groups = sv_grow(r->groups, &f->cap_groups, r->n_groups + 1, sizeof *r->groups);
        r->groups[r->n_groups] =
            (struct sv_comm_group){.name = name,
                                   .members_text = members,
                                   .desc = text(f, row, is_ours ? w->desc : w->kineto_desc),
                                   .size = number(f, row, is_ours ? w->size : w->kineto_size, -1)};
        *slot = r->n_groups++;
    }
    return (uint32_t)*slot;
}

/* ---- calls ---- */

static enum sv_comm_op op_at(const struct finder *f, uint32_t row, bool is_ours)
{
    struct sv_arg a;
    enum sv_comm_op op = SV_COMM_OTHER;
    if (argument(f, row, is_ours ? f->w.op : f->w.kineto_op, &a) && a.type == SV_ARG_TEXT)
        op = sv_comm_op_of(a.text, a.size);
    struct sv_text name = sv_dict_text(f->t->dict, f->t->slices.name[row]);
    return op == SV_COMM_OTHER ? sv_comm_op_of(name.bytes, name.len) : op;
}

static int64_t kineto_bytes(const struct finder *f, uint32_t row)
{
    struct sv_arg type;
    int64_t n = number(f, row, f->w.kineto_elements, -1), bytes;
    if (n < 0 || !argument(f, row, f->w.kineto_type, &type) || type.type != SV_ARG_TEXT)
        return number(f, row, f->w.bytes, -1);
    int64_t each = sv_comm_type_bytes(type.text, type.size);
    return each && !__builtin_mul_overflow(n, each, &bytes) ? bytes : -1;
}

/* Its own number, or that of the host operation around its launch. */
static int64_t kineto_seq(struct finder *f, uint32_t row)
{
    int64_t seq = number(f, row, f->w.kineto_seq, NO_SEQ);
    if (seq >= 0 || !f->w.param_comms)
        return seq;
    if (!f->launches.trace) /* only now are they needed */
        sv_launches_init(&f->launches, f->t);
    uint32_t up = sv_launch_of(&f->launches, row);
    for (; seq < 0 && up != SV_NO_ROW; up = f->t->slices.parent[up])
        if (f->t->slices.name[up] == f->w.param_comms)
            seq = number(f, up, f->w.kineto_seq, NO_SEQ);
    return seq;
}

static void add_call(struct finder *f, uint32_t row, bool is_ours)
{
    struct sv_comm_report *r = f->r;
    enum sv_comm_op op = op_at(f, row, is_ours);
    if (op == SV_COMM_SEND || op == SV_COMM_RECV || f->t->slices.kind[row] != SV_SLICE)
        return;
    int64_t seq = is_ours ? number(f, row, f->w.seq, NO_SEQ) : kineto_seq(f, row);
    struct sv_comm_call call = {
        .seq = seq,
        .bytes = is_ours ? number(f, row, f->w.bytes, -1) : kineto_bytes(f, row),
        .group = group_at(f, row, is_ours),
        .rank = rank_at(f, row, is_ours),
        .row = row,
        .op = (uint8_t)op,
        .wait_ns = -1,
        .is_pending = f->t->slices.dur_ns[row] == SV_UNFINISHED,
        .is_counted = seq < 0,
    };
    r->calls = sv_grow(r->calls, &f->cap_calls, r->n_calls + 1, sizeof *r->calls);
    r->calls[r->n_calls++] = call;
}

static void find_nccl(struct finder *f)
{
    static const char *const prefixes[] = {"ncclKernel", "ncclDevKernel"};
    const struct sv_dict *d = f->t->dict;
    f->is_nccl = sv_alloc((size_t)d->n_strings + 1);
    for (sv_str s = 1; s < d->n_strings; s++)
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            f->is_nccl[s] |= strncmp(sv_dict_text(d, s).bytes, prefixes[i], strlen(prefixes[i])) ==
                             0;
}

static void find_rows(struct finder *f)
{
    const struct sv_slices *s = &f->t->slices;
    struct sv_arg a;
    for (uint32_t row = 0; row < s->n; row++) {
        if (f->w.collective && s->cat[row] == f->w.collective)
            add_call(f, row, true);
        else if (sv_gpu_class_of(&f->gpu, f->t->dict, s->cat[row]) == SV_GPU_KERNEL &&
                 (f->is_nccl[s->name[row]] || argument(f, row, f->w.kineto_op, &a)))
            add_call(f, row, false);
    }
}

/* ---- order ---- */

static int by_number(const void *a, const void *b, void *ctx)
{
    const struct sv_comm_rank *ranks = ctx;
    const struct sv_comm_rank *x = &ranks[*(const uint32_t *)a], *y = &ranks[*(const uint32_t *)b];
    if (x->number != y->number) /* unknown ones last */
        return (uint64_t)x->number < (uint64_t)y->number ? -1 : 1;
    return (x->process > y->process) - (x->process < y->process);
}

/* Ranks get their numbers' order. */
static void sort_ranks(struct sv_comm_report *r)
{
    uint32_t *order = sv_alloc((r->n_ranks + 1) * sizeof *order);
    uint32_t *place = sv_alloc((r->n_ranks + 1) * sizeof *place);
    struct sv_comm_rank *sorted = sv_alloc((r->n_ranks + 1) * sizeof *sorted);
    for (uint32_t i = 0; i < r->n_ranks; i++)
        order[i] = i;
    qsort_r(order, r->n_ranks, sizeof *order, by_number, r->ranks);
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        sorted[i] = r->ranks[order[i]];
        place[order[i]] = i;
    }
    for (size_t i = 0; i < r->n_calls; i++)
        r->calls[i].rank = place[r->calls[i].rank];
    free(r->ranks);
    r->ranks = sorted;
    free(order);
    free(place);
}

static int in_time(const void *a, const void *b, void *ctx)
{
    const struct sv_comm_call *x = a, *y = b;
    const struct sv_slices *s = ctx;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (s->ts_ns[x->row] != s->ts_ns[y->row])
        return s->ts_ns[x->row] < s->ts_ns[y->row] ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_seq(const void *a, const void *b)
{
    const struct sv_comm_call *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* A group is counted as a whole where one of its calls has no number: its own and counted ones do
 * not fit each other. */
static void number_calls(struct sv_comm_report *r)
{
    int64_t next = 0;
    if (r->n_calls == 0)
        return;
    for (size_t i = 0; i < r->n_calls; i++)
        r->groups[r->calls[i].group].is_counted |= r->calls[i].is_counted;
    qsort_r(r->calls, r->n_calls, sizeof *r->calls, in_time, (void *)(uintptr_t)&r->trace->slices);
    for (size_t i = 0; i < r->n_calls; i++) {
        struct sv_comm_call *c = &r->calls[i];
        if (i == 0 || c->group != c[-1].group || c->rank != c[-1].rank)
            next = 0;
        c->is_counted = r->groups[c->group].is_counted;
        if (c->is_counted)
            c->seq = next++;
    }
    qsort(r->calls, r->n_calls, sizeof *r->calls, by_seq);
}

/* Operations that were put together have one number: the first of them is kept, with the bytes of
 * all. */
static void unite_repeated(struct sv_comm_report *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_calls; i++) {
        struct sv_comm_call *last = n ? &r->calls[n - 1] : NULL;
        const struct sv_comm_call *c = &r->calls[i];
        if (last && last->group == c->group && last->seq == c->seq && last->rank == c->rank) {
            if (last->bytes >= 0 && c->bytes >= 0)
                last->bytes = sv_sat_add(last->bytes, c->bytes);
            last->is_pending |= c->is_pending;
            r->n_repeated++;
        } else
            r->calls[n++] = *c;
    }
    r->n_calls = n;
}

/* ---- who belongs to a group ---- */

static uint32_t rank_of_number(const struct sv_comm_report *r, int64_t number)
{
    for (uint32_t low = 0, high = (uint32_t)r->n_ranks; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        if (r->ranks[middle].number == number)
            return middle;
        if ((uint64_t)r->ranks[middle].number < (uint64_t)number)
            low = middle + 1;
        else
            high = middle;
    }
    return SV_COMM_NO_RANK;
}

static void add_member(struct sv_comm_report *r, struct sv_comm_group *g, int64_t number,
                       size_t caps[2])
{
    uint32_t rank = rank_of_number(r, number);
    if (rank == SV_COMM_NO_RANK) {
        g->absent = sv_grow(g->absent, &caps[1], g->n_absent + 1, sizeof *g->absent);
        g->absent[g->n_absent++] = number;
    } else {
        g->members = sv_grow(g->members, &caps[0], g->n_members + 1, sizeof *g->members);
        g->members[g->n_members++] = rank;
    }
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort_unique(uint32_t *v, size_t *n)
{
    size_t kept = 0;
    if (*n)
        qsort(v, *n, sizeof *v, by_value);
    for (size_t i = 0; i < *n; i++)
        if (kept == 0 || v[kept - 1] != v[i])
            v[kept++] = v[i];
    *n = kept;
}

/* "[0, 1, 2]"; where it does not list them all, those that took part are the members. */
static void members_of_text(struct sv_comm_report *r, struct sv_comm_group *g, size_t caps[2])
{
    struct sv_text list = sv_dict_text(r->strings, g->members_text);
    const char *p = list.bytes, *end = list.bytes + list.len;
    size_t n = 0;
    if (!g->members_text || list.len < 2 || *p++ != '[' || strstr(list.bytes, ".."))
        return;
    while (p < end && *p != ']' && n++ < MEMBERS_MAX) {
        char *after;
        long long value = strtoll(p, &after, 10);
        if (after == p || value < 0)
            return;
        add_member(r, g, value, caps);
        p = after + strspn(after, ", ");
    }
}

/* By the source's list; the world's are all numbers below its size; else those that took part. */
static void find_members(struct sv_comm_report *r)
{
    size_t(*caps)[2] = sv_alloc((r->n_groups + 1) * sizeof *caps);
    for (size_t i = 0; i < r->n_groups; i++) {
        struct sv_comm_group *g = &r->groups[i];
        bool is_world = g->name &&
                        strcmp(sv_dict_text(r->strings, g->name).bytes, SV_COMM_WORLD) == 0;
        if (!g->members_text && is_world && g->size > 0 && g->size <= MEMBERS_MAX)
            for (int64_t k = 0; k < g->size; k++)
                add_member(r, g, k, caps[i]);
        else
            members_of_text(r, g, caps[i]);
    }
    struct sv_map seen = {0};
    for (size_t i = 0; i < r->n_calls; i++) {
        struct sv_comm_group *g = &r->groups[r->calls[i].group];
        size_t *cap = &caps[r->calls[i].group][0];
        bool is_new;
        sv_map_add(&seen, (uint64_t)r->calls[i].group << 32 | r->calls[i].rank, &is_new);
        if (!is_new)
            continue;
        g->members = sv_grow(g->members, cap, g->n_members + 1, sizeof *g->members);
        g->members[g->n_members++] = r->calls[i].rank;
    }
    for (size_t i = 0; i < r->n_groups; i++) {
        struct sv_comm_group *g = &r->groups[i];
        sort_unique(g->members, &g->n_members);
        /* One that took part without a number may be any of the list: nobody is known to be absent.
         * Unknown ones are sorted last. */
        if (g->n_members && r->ranks[g->members[g->n_members - 1]].number < 0)
            g->n_absent = 0;
    }
    sv_map_fini(&seen);
    free(caps);
}

/* Tracks that belong to a rank: by number, else by the process of its calls. */
static void find_tracks(struct finder *f)
{
    struct sv_comm_report *r = f->r;
    const struct sv_dict *d = f->t->dict;
    struct sv_map processes = {0};
    r->rank_of_track = sv_alloc(((size_t)f->t->n_tracks + 1) * sizeof *r->rank_of_track);
    for (size_t i = 0; i < r->n_calls; i++) {
        sv_track process = sv_dict_process_of(d, f->t->slices.track[r->calls[i].row]);
        if (process)
            *sv_map_add(&processes, process, NULL) = r->calls[i].rank;
    }
    for (sv_track k = 0; k < f->t->n_tracks; k++) {
        int64_t known = k ? rank_of_track(f, k) : -1;
        const uint64_t *found = k ? sv_map_find(&processes, sv_dict_process_of(d, k)) : NULL;
        r->rank_of_track[k] = found        ? (uint32_t)*found
                              : known >= 0 ? rank_of_number(r, known)
                                           : SV_COMM_NO_RANK;
    }
    sv_map_fini(&processes);
}

void sv_comm_find_calls(struct sv_comm_report *r)
{
    struct finder f = {.r = r,
                       .t = r->trace,
                       .w = find_words(r->trace),
                       .is_asked = sv_alloc((size_t)r->trace->n_tracks + 1),
                       .numbers = sv_alloc(((size_t)r->trace->n_tracks + 1) * sizeof *f.numbers),
                       .scratch = sv_alloc(sizeof *f.scratch)};
    sv_batch_init(f.scratch);
    sv_buf_init(&f.text, 1u << 20);
    find_nccl(&f);
    find_rows(&f);
    if (r->n_calls)
        add_silent_ranks(&f);
    sort_ranks(r);
    number_calls(r);
    unite_repeated(r);
    find_members(r);
    find_tracks(&f);
    if (f.launches.trace)
        sv_launches_fini(&f.launches);
    sv_gpu_words_fini(&f.gpu);
    sv_map_fini(&f.groups);
    sv_map_fini(&f.ranks);
    sv_batch_fini(f.scratch);
    free(f.scratch);
    free(f.is_nccl);
    free(f.is_asked);
    free(f.numbers);
    sv_buf_fini(&f.text);
}
