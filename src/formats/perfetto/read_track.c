/* Perfetto's tracks: descriptors, processes and threads, and how they become tracks of the
 * dictionary.
 *
 * Everything that events refer to is a struct sv_pf_track, found by the file's uuid, by pid or by
 * (pid, tid). The same process or thread may be mentioned in all three ways, in any order; they end
 * up as one track of the dictionary, whose uuid is that of the file when a descriptor comes first.
 * Descriptors may come after the events; a second one for the same uuid may add to the first, but
 * not contradict it.
 *
 * Parents are checked for cycles here, so that everyone else may walk up without care. */
#include "core/perfetto/stave.h"
#include "formats/perfetto/read.h"

#include <stdio.h>

#define MOVES_MAX 1000 /* each one looks at all tracks */

uint64_t sv_pf_salted(const struct sv_pf *r, uint64_t id)
{
    return r->seq->machine->salt ? sv_mix64(id ^ r->seq->machine->salt) : id;
}

/* ---- finding ---- */

static struct sv_pf_track *wrap(struct sv_pf *r, uint64_t uuid, sv_track track)
{
    struct sv_pf_track *t = sv_arena_get(&r->arena, sizeof *t, _Alignof(struct sv_pf_track));
    *t = (struct sv_pf_track){.uuid = uuid, .track = track};
    return t;
}

/* NULL when never mentioned. */
static struct sv_pf_track *find_track(struct sv_pf *r, uint64_t uuid)
{
    const uint64_t *slot = sv_map_find(&r->seq->machine->tracks, uuid);
    return slot ? (struct sv_pf_track *)(uintptr_t)*slot : NULL;
}

struct sv_pf_track *sv_pf_track_at(struct sv_pf *r, uint64_t uuid)
{
    struct sv_pf_machine *m = r->seq->machine;
    bool is_new;
    uint64_t *slot = sv_map_add(&m->tracks, uuid, &is_new);
    if (!is_new)
        return (struct sv_pf_track *)(uintptr_t)*slot;
    sv_track track = sv_dict_track(r->dict, sv_pf_salted(r, uuid), NULL);
    struct sv_track_info *info = &r->dict->tracks[track];
    info->space = m->space;
    if (uuid == 0 && !info->name)
        info->name = sv_dict_cstr(r->dict, "Default Track");
    struct sv_pf_track *t = wrap(r, uuid, track);
    *slot = (uint64_t)(uintptr_t)t;
    return t;
}

/* No track is its own ancestor, whatever uuids the file has: they may be those that Stave gives to
 * processes and threads. */
static void set_parent(struct sv_pf *r, sv_track track, sv_track parent)
{
    sv_track up = parent;
    unsigned steps = 0;
    while (up && up != track && ++steps < SV_PF_ANCESTORS_MAX)
        up = r->dict->tracks[up].parent;
    if (up) {
        sv_pf_damage(r, up == track ? "track is its own ancestor" : "tracks nested too deeply",
                     "uuid %llu is put on the top level",
                     (unsigned long long)r->dict->tracks[track].uuid);
        parent = 0;
    }
    r->dict->tracks[track].parent = parent;
}

struct sv_pf_track *sv_pf_process(struct sv_pf *r, int64_t pid)
{
    struct sv_pf_machine *m = r->seq->machine;
    bool is_new;
    uint64_t *slot = sv_map_add(&m->processes, (uint64_t)pid, &is_new);
    if (is_new)
        *slot = (uint64_t)(uintptr_t)wrap(r, 0, sv_dict_process(r->dict, m->space, pid));
    return (struct sv_pf_track *)(uintptr_t)*slot;
}

struct sv_pf_track *sv_pf_thread(struct sv_pf *r, int64_t pid, int64_t tid)
{
    struct sv_pf_machine *m = r->seq->machine;
    bool is_new;
    uint64_t *slot = sv_map_add(&m->threads, sv_uuid_thread(m->space, pid, tid), &is_new);
    if (is_new) {
        sv_track process = sv_pf_process(r, pid)->track;
        struct sv_pf_track *t = wrap(r, 0, sv_dict_thread(r->dict, m->space, pid, tid));
        set_parent(r, t->track, process); /* the one that a descriptor named, if any */
        *slot = (uint64_t)(uintptr_t)t;
    }
    return (struct sv_pf_track *)(uintptr_t)*slot;
}

sv_track sv_pf_named_track(struct sv_pf *r, unsigned kind, const char *name)
{
    bool is_new;
    uint64_t uuid = sv_pf_salted(r, sv_uuid_child(0, kind, name, strlen(name)));
    sv_track t = sv_dict_track(r->dict, uuid, &is_new);
    if (is_new) {
        sv_str text = sv_dict_cstr(r->dict, name);
        struct sv_track_info *info = &r->dict->tracks[t];
        info->kind = (uint8_t)kind;
        info->name = text;
        info->is_described = true;
        info->space = r->seq->machine->space;
    }
    return t;
}

sv_track sv_pf_counter(struct sv_pf *r, sv_track parent, sv_str name, const char *unit)
{
    struct sv_text text = sv_dict_text(r->dict, name);
    sv_track t = parent ? sv_dict_child(r->dict, parent, SV_TRACK_COUNTER, name)
                        : sv_pf_named_track(r, SV_TRACK_COUNTER, text.bytes);
    if (unit && !r->dict->tracks[t].unit) {
        sv_str u = sv_dict_cstr(r->dict, unit);
        r->dict->tracks[t].unit = u;
        sv_dict_touch(r->dict, t);
    }
    return t;
}

/* ---- changing ---- */

void sv_pf_name(struct sv_pf *r, struct sv_pf_track *t, unsigned rank, sv_str name)
{
    if (!name || rank < t->name_rank)
        return;
    t->name_rank = (uint8_t)rank;
    struct sv_track_info *info = &r->dict->tracks[t->track];
    bool is_change = info->name != name || !info->is_described;
    info->name = name;
    info->is_described = true;
    if (is_change)
        sv_dict_touch(r->dict, t->track);
}

static sv_str intern_cstr(struct sv_pf *r, const char *text)
{
    return text ? sv_dict_cstr(r->dict, text) : 0;
}

/* A repeated text as one: a command line, labels, categories. */
static sv_str join(struct sv_pf *r, struct sv_pf_blob message, uint32_t field, char separator)
{
    char text[4096];
    size_t n = 0;
    struct sv_pb w = sv_pf_wire(message);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) != SV_PF_B(field))
            continue;
        if (n > 0 && n < sizeof text)
            text[n++] = separator;
        size_t more = f.u < sizeof text - n ? (size_t)f.u : sizeof text - n;
        memcpy(text + n, f.bytes, more);
        n += more;
    }
    return sv_dict_str(r->dict, text, n);
}

/* ---- descriptors ---- */

struct process {
    bool has_pid;
    int64_t pid, start_ns;
    sv_str name, chrome_name, cmdline, labels;
    bool is_renderer, has_order;
    int64_t order;
};

struct thread {
    bool has_pid, has_tid, has_order;
    int64_t pid, tid, order;
    int64_t reference_us, reference_thread_us, reference_instructions;
    sv_str name, chrome_name;
};

struct descriptor {
    uint64_t uuid, parent;
    bool has_uuid, has_parent, is_process, is_thread, is_counter, has_order;
    uint64_t child_order, merge;
    int64_t order;
    sv_str name, desc, merge_key, package, origin;
    struct process process;
    struct thread thread;
    struct sv_pf_blob counter;
    /* What only Stave writes: */
    uint64_t own_kind, own_space, own_flags;
    int64_t own_pid, own_order;
    bool has_own_pid, has_own_order;
};

static void set_chrome_process(struct sv_pf *r, struct process *p, uint64_t type)
{
    p->chrome_name = intern_cstr(r, sv_pf_chrome_process(type));
    p->is_renderer = type == 2 || type == 40;
}

static void read_process(struct sv_pf *r, struct sv_pf_blob data, struct process *p)
{
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_PROCESS_PID):
            p->pid = (int32_t)f.u;
            p->has_pid = true;
            break;
        case SV_PF_B(SV_PF_PROCESS_NAME): p->name = sv_pf_intern(r, sv_pf_bytes(&f)); break;
        case SV_PF_B(SV_PF_PROCESS_CMDLINE):
            if (!p->cmdline)
                p->cmdline = join(r, data, SV_PF_PROCESS_CMDLINE, ' ');
            break;
        case SV_PF_B(SV_PF_PROCESS_LABELS):
            if (!p->labels)
                p->labels = join(r, data, SV_PF_PROCESS_LABELS, ',');
            break;
        case SV_PF_V(
            SV_PF_PROCESS_START_NS): /* signed, so it may also be earlier than the origin */
            p->start_ns = (int64_t)(f.u + (uint64_t)r->clocks.origin_ns);
            break;
        case SV_PF_V(SV_PF_PROCESS_CHROME_TYPE): set_chrome_process(r, p, f.u); break;
        case SV_PF_V(SV_PF_PROCESS_SORT_INDEX):
            p->order = (int32_t)f.u;
            p->has_order = true;
            break;
        default: break;
        }
    }
}

static void read_thread(struct sv_pf *r, struct sv_pf_blob data, struct thread *t)
{
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_THREAD_PID):
            t->pid = (int32_t)f.u;
            t->has_pid = true;
            break;
        case SV_PF_V(SV_PF_THREAD_TID):
            t->tid = (int64_t)f.u;
            t->has_tid = true;
            break;
        case SV_PF_B(SV_PF_THREAD_NAME): t->name = sv_pf_intern(r, sv_pf_bytes(&f)); break;
        case SV_PF_V(SV_PF_THREAD_CHROME_TYPE):
            t->chrome_name = intern_cstr(r, sv_pf_chrome_thread(f.u));
            break;
        case SV_PF_V(SV_PF_THREAD_SORT_INDEX):
            t->order = (int32_t)f.u;
            t->has_order = true;
            break;
        case SV_PF_V(SV_PF_THREAD_REFERENCE_US): t->reference_us = (int64_t)f.u; break;
        case SV_PF_V(SV_PF_THREAD_REFERENCE_THREAD_US):
            t->reference_thread_us = (int64_t)f.u;
            break;
        case SV_PF_V(SV_PF_THREAD_REFERENCE_INSTRUCTIONS):
            t->reference_instructions = (int64_t)f.u;
            break;
        default: break;
        }
    }
}

static void read_chrome_parts(struct sv_pf *r, const struct sv_pb_field *part, struct descriptor *d)
{
    struct sv_pb w = sv_pb_sub(part);
    bool is_process = part->id == SV_PF_TRACK_CHROME_PROCESS;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (is_process && sv_pf_tag(&f) == SV_PF_V(SV_PF_CHROME_PROCESS_TYPE))
            set_chrome_process(r, &d->process, f.u);
        else if (is_process && sv_pf_tag(&f) == SV_PF_B(SV_PF_CHROME_PROCESS_PACKAGE))
            d->package = sv_pf_intern(r, sv_pf_bytes(&f));
        else if (!is_process && sv_pf_tag(&f) == SV_PF_V(SV_PF_CHROME_THREAD_TYPE))
            d->thread.chrome_name = intern_cstr(r, sv_pf_chrome_thread(f.u));
    }
}

static sv_str number_text(struct sv_pf *r, uint64_t u)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)u);
    return sv_dict_str(r->dict, text, (size_t)n);
}

static void read_own(struct sv_pf *r, struct descriptor *d, struct sv_pb w)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_STAVE_TRACK_KIND): d->own_kind = f.u; break;
        case SV_PF_V(SV_PF_STAVE_TRACK_SPACE): d->own_space = f.u; break;
        case SV_PF_V(SV_PF_STAVE_TRACK_FLAGS): d->own_flags = f.u; break;
        case SV_PF_B(SV_PF_STAVE_TRACK_ORIGIN): d->origin = sv_pf_intern(r, sv_pf_bytes(&f)); break;
        case SV_PF_V(SV_PF_STAVE_TRACK_PID):
            d->own_pid = (int64_t)f.u;
            d->has_own_pid = true;
            break;
        case SV_PF_V(SV_PF_STAVE_TRACK_ORDER):
            d->own_order = (int64_t)f.u;
            d->has_own_order = true;
            break;
        default: break;
        }
    }
}

static bool read_descriptor_field(struct sv_pf *r, struct descriptor *d,
                                  const struct sv_pb_field *f)
{
    switch (sv_pf_tag(f)) {
    case SV_PF_V(SV_PF_TRACK_UUID):
        d->uuid = f->u;
        d->has_uuid = true;
        return true;
    case SV_PF_V(SV_PF_TRACK_PARENT_UUID):
        d->parent = f->u;
        d->has_parent = f->u != 0;
        return true;
    case SV_PF_B(SV_PF_TRACK_NAME):
    case SV_PF_B(SV_PF_TRACK_STATIC_NAME):
    case SV_PF_B(SV_PF_TRACK_ATRACE_NAME): d->name = sv_pf_intern(r, sv_pf_bytes(f)); return true;
    case SV_PF_B(SV_PF_TRACK_DESCRIPTION): d->desc = sv_pf_intern(r, sv_pf_bytes(f)); return true;
    case SV_PF_B(SV_PF_TRACK_PROCESS):
        d->is_process = true;
        read_process(r, sv_pf_bytes(f), &d->process);
        return true;
    case SV_PF_B(SV_PF_TRACK_THREAD):
        d->is_thread = true;
        read_thread(r, sv_pf_bytes(f), &d->thread);
        return true;
    case SV_PF_B(SV_PF_TRACK_COUNTER):
        d->is_counter = true;
        d->counter = sv_pf_bytes(f);
        return true;
    default: return false;
    }
}

static void read_descriptor_layout(struct sv_pf *r, struct descriptor *d,
                                   const struct sv_pb_field *f)
{
    switch (sv_pf_tag(f)) {
    case SV_PF_B(SV_PF_TRACK_CHROME_PROCESS):
    case SV_PF_B(SV_PF_TRACK_CHROME_THREAD): read_chrome_parts(r, f, d); break;
    case SV_PF_V(SV_PF_TRACK_CHILD_ORDERING): d->child_order = f->u; break;
    case SV_PF_V(SV_PF_TRACK_SIBLING_ORDER_RANK):
        d->order = (int32_t)f->u;
        d->has_order = true;
        break;
    case SV_PF_V(SV_PF_TRACK_SIBLING_MERGE): d->merge = f->u; break;
    case SV_PF_B(SV_PF_TRACK_MERGE_KEY): d->merge_key = sv_pf_intern(r, sv_pf_bytes(f)); break;
    case SV_PF_V(SV_PF_TRACK_MERGE_KEY_INT): d->merge_key = number_text(r, f->u); break;
    case SV_PF_B(SV_PF_STAVE): read_own(r, d, sv_pb_sub(f)); break;
    default: break;
    }
}

/* ---- applying a descriptor ---- */

static int64_t pid_of(const struct descriptor *d)
{
    return d->has_own_pid ? d->own_pid : d->is_thread ? d->thread.pid : d->process.pid;
}

static uint8_t kind_of(const struct descriptor *d)
{
    return d->own_kind > SV_TRACK_COUNTER && d->own_kind <= SV_TRACK_ASYNC ? (uint8_t)d->own_kind
           : d->is_thread                                                  ? SV_TRACK_THREAD
           : d->is_process                                                 ? SV_TRACK_PROCESS
           : d->is_counter                                                 ? SV_TRACK_COUNTER
                                                                           : SV_TRACK_CUSTOM;
}

/* Does the descriptor say the opposite of an earlier one? */
static bool contradicts(const struct sv_pf *r, const struct sv_pf_track *t,
                        const struct descriptor *d)
{
    const struct sv_track_info *info = &r->dict->tracks[t->track];
    if (!t->is_described)
        return false;
    return info->kind != kind_of(d) || (d->is_thread && info->tid != d->thread.tid) ||
           ((d->is_thread || d->is_process) && info->pid != pid_of(d));
}

/* The track of a thread or process: found by uuid, else by number if no descriptor had that number
 * yet. */
static struct sv_pf_track *claim(struct sv_pf *r, uint64_t uuid, struct sv_map *by_number,
                                 uint64_t number)
{
    struct sv_pf_track *t = find_track(r, uuid);
    bool is_new;
    uint64_t *slot = sv_map_add(by_number, number, &is_new);
    struct sv_pf_track *known = is_new ? NULL : (struct sv_pf_track *)(uintptr_t)*slot;
    if (!t && known && known->uuid == 0) { /* mentioned by number before: the same thing */
        known->uuid = uuid;
        *sv_map_add(&r->seq->machine->tracks, uuid, &is_new) = (uint64_t)(uintptr_t)known;
        return known;
    }
    if (!t)
        t = sv_pf_track_at(r, uuid);
    /* A second uuid for the same number: the number was used again, or events came before the
     * descriptor. */
    *sv_map_add(by_number, number, &is_new) = (uint64_t)(uintptr_t)t;
    if (known && known->uuid == 0 && known != t && r->n_moves++ < MOVES_MAX) {
        for (sv_track child = 1; child < r->dict->n_tracks; child++)
            if (r->dict->tracks[child].parent == known->track)
                set_parent(r, child, t->track);
    }
    return t;
}

static void apply_process(struct sv_pf *r, struct sv_pf_track *t, const struct process *p)
{
    struct sv_track_info *info = &r->dict->tracks[t->track];
    info->kind = SV_TRACK_PROCESS;
    info->pid = p->pid;
    info->is_described = true;
    if (p->start_ns && info->start_ns == 0)
        info->start_ns = p->start_ns;
    if (p->cmdline && !info->desc)
        info->desc = p->cmdline;
    if (p->labels)
        info->desc = p->labels;
    if (p->has_order) {
        info->order = p->order;
        info->has_order = true;
    }
    sv_pf_name(r, t, SV_PF_NAME_DESCRIPTOR, p->name);
    sv_pf_name(r, t, p->is_renderer ? SV_PF_NAME_RENDERER : SV_PF_NAME_CHROME_PROCESS,
               p->chrome_name);
}

static void apply_thread(struct sv_pf *r, struct sv_pf_track *t, const struct thread *x)
{
    struct sv_track_info *info = &r->dict->tracks[t->track];
    info->kind = SV_TRACK_THREAD;
    info->pid = x->pid;
    info->tid = x->tid;
    info->is_described = true;
    if (x->has_order) {
        info->order = x->order;
        info->has_order = true;
    }
    sv_pf_name(r, t, SV_PF_NAME_DESCRIPTOR, x->name);
    sv_pf_name(r, t, SV_PF_NAME_CHROME_THREAD, x->chrome_name);
}

static void apply_counter(struct sv_pf *r, struct sv_pf_track *t, struct sv_pf_blob data,
                          sv_str *default_name)
{
    static const char *const units[] = {NULL, "ns", "count", "bytes"};
    struct sv_track_info info = r->dict->tracks[t->track];
    struct sv_pb w = sv_pf_wire(data);
    uint64_t type = 0, unit = 0;
    sv_str unit_name = 0;
    info.cat = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_COUNTER_TYPE): type = f.u; break;
        case SV_PF_V(SV_PF_COUNTER_UNIT): unit = f.u; break;
        case SV_PF_B(SV_PF_COUNTER_UNIT_NAME): unit_name = sv_pf_intern(r, sv_pf_bytes(&f)); break;
        case SV_PF_B(SV_PF_COUNTER_CATEGORIES):
            if (!info.cat)
                info.cat = join(r, data, SV_PF_COUNTER_CATEGORIES, ',');
            break;
        case SV_PF_V(SV_PF_COUNTER_MULTIPLIER): info.multiplier = (int64_t)f.u; break;
        case SV_PF_V(SV_PF_COUNTER_IS_INCREMENTAL): info.is_incremental = f.u != 0; break;
        default: break;
        }
    }
    if (type == SV_PF_COUNTER_THREAD_TIME_NS)
        unit = SV_PF_UNIT_TIME_NS;
    else if (type == SV_PF_COUNTER_THREAD_INSTRUCTIONS)
        unit = SV_PF_UNIT_COUNT;
    info.kind = SV_TRACK_COUNTER;
    info.is_described = true;
    info.unit = unit >= 1 && unit <= 3 ? sv_dict_cstr(r->dict, units[unit]) : unit_name;
    if (info.multiplier < 0)
        info.multiplier = 0;
    r->dict->tracks[t->track] = info;
    t->is_counter = true;
    t->is_incremental = info.is_incremental;
    t->is_thread_time = type == SV_PF_COUNTER_THREAD_TIME_NS;
    if (type == SV_PF_COUNTER_THREAD_TIME_NS || type == SV_PF_COUNTER_THREAD_INSTRUCTIONS)
        *default_name =
            sv_dict_cstr(r->dict, t->is_thread_time ? "thread_time" : "thread_instruction_count");
}

/* What the usual fields do not say. */
static void apply_own(struct sv_pf *r, struct sv_pf_track *t, const struct descriptor *d)
{
    struct sv_track_info *info = &r->dict->tracks[t->track];
    uint32_t space = r->seq->machine->space;
    info->kind = kind_of(d);
    info->space = d->own_space && space ? (uint32_t)sv_mix64(d->own_space << 32 | space)
                  : d->own_space        ? (uint32_t)d->own_space
                                        : space;
    if (d->is_thread || d->is_process)
        info->pid = pid_of(d);
    if (d->has_own_order)
        info->order = d->own_order;
    if (d->origin)
        info->origin = d->origin;
    if (d->own_flags & SV_PF_STAVE_MERGE_DEFAULT)
        info->sibling_merge = SV_MERGE_DEFAULT;
    if (d->own_flags & SV_PF_STAVE_COUNTER_INCREMENTAL)
        info->is_incremental = true;
}

static void apply_layout(struct sv_pf *r, struct sv_pf_track *t, const struct descriptor *d)
{
    struct sv_track_info *info = &r->dict->tracks[t->track];
    info->is_described = true;
    if (d->child_order <= SV_ORDER_EXPLICIT)
        info->child_order = (uint8_t)d->child_order;
    if (d->merge <= SV_MERGE_BY_KEY)
        info->sibling_merge = (uint8_t)d->merge;
    if (d->merge_key)
        info->merge_key = d->merge_key;
    if (d->has_order) {
        info->order = d->order;
        info->has_order = true;
    }
    if (d->desc)
        info->desc = d->desc;
    else if (d->package && !info->desc)
        info->desc = d->package;
    /* A plain track keeps its first name, unless it must not be merged with others of that name. */
    bool is_plain = !d->is_process && !d->is_thread;
    if (d->name &&
        (!info->name || t->uuid == 0 || (is_plain && info->sibling_merge == SV_MERGE_NONE)))
        info->name = d->name;
}

/* Events of the sequence that name no track are on its thread. */
static void set_thread(struct sv_pf *r, struct sv_pf_track *track, const struct thread *x)
{
    struct sv_pf_seq *seq = r->seq;
    seq->has_thread = track != NULL;
    seq->pid = x->pid;
    seq->tid = x->tid;
    seq->thread_track = track;
    seq->has_reference =
        !__builtin_mul_overflow(x->reference_us, 1000, &seq->reference_ns) &&
        !__builtin_mul_overflow(x->reference_thread_us, 1000, &seq->reference_thread_ns);
    seq->reference_instructions = x->reference_instructions;
}

static struct sv_pf_track *described_track(struct sv_pf *r, const struct descriptor *d)
{
    struct sv_pf_machine *m = r->seq->machine;
    if (d->is_thread)
        return claim(r, d->uuid, &m->threads,
                     sv_uuid_thread(m->space, d->thread.pid, d->thread.tid));
    if (d->is_process)
        return claim(r, d->uuid, &m->processes, (uint64_t)d->process.pid);
    return sv_pf_track_at(r, d->uuid);
}

static void apply_parent(struct sv_pf *r, struct sv_pf_track *t, const struct descriptor *d)
{
    if (d->has_parent) {
        struct sv_pf_track *parent = sv_pf_track_at(r, d->parent);
        parent->is_parent = true;
        set_parent(r, t->track, parent->track);
    } else if (d->is_thread) {
        sv_track process = sv_pf_process(r, d->thread.pid)->track;
        set_parent(r, t->track, process);
    }
}

static void apply(struct sv_pf *r, struct descriptor *d)
{
    struct sv_pf_track *known = find_track(r, d->uuid);
    if (known && contradicts(r, known, d)) {
        sv_pf_damage(r, "track described twice", "uuid %llu, differently; the first is kept",
                     (unsigned long long)d->uuid);
        return;
    }
    struct sv_pf_track *t = described_track(r, d);
    struct sv_track_info before = r->dict->tracks[t->track];
    apply_parent(r, t, d);
    if (d->is_thread)
        apply_thread(r, t, &d->thread);
    else if (d->is_process)
        apply_process(r, t, &d->process);
    else if (d->is_counter)
        apply_counter(r, t, d->counter, d->name ? &(sv_str){0} : &d->name);
    apply_layout(r, t, d);
    apply_own(r, t, d);
    t->is_described = true;
    /* Padding that differs makes one description too many at worst.
     * NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
    if (memcmp(&before, &r->dict->tracks[t->track], sizeof before) != 0)
        sv_dict_touch(r->dict, t->track);
    if (d->is_thread && r->seq->is_valid)
        set_thread(r, t, &d->thread);
}

void sv_pf_track_descriptor(struct sv_pf *r, struct sv_pf_blob data)
{
    struct descriptor d = {0};
    struct sv_pb w = sv_pf_wire(data);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (!read_descriptor_field(r, &d, &f))
            read_descriptor_layout(r, &d, &f);
    if (w.bad)
        sv_pf_damage(r, "malformed track descriptor", "its last part is damaged");
    if (!d.has_uuid) {
        if (!w.bad)
            sv_pf_damage(r, "track descriptor without uuid", "ignored");
        return;
    }
    if (d.is_thread && !(d.thread.has_pid && d.thread.has_tid)) {
        sv_pf_damage(r, "thread descriptor without pid or tid", "uuid %llu: taken as a plain track",
                     (unsigned long long)d.uuid);
        d.is_thread = false;
        d.name = d.name ? d.name : d.thread.name;
    } else if (d.is_process && !d.is_thread && !d.process.has_pid) {
        sv_pf_damage(r, "process descriptor without pid", "uuid %llu: taken as a plain track",
                     (unsigned long long)d.uuid);
        d.is_process = false;
        d.name = d.name ? d.name : d.process.name;
    }
    d.has_parent = d.has_parent && d.uuid != 0; /* the root has none */
    apply(r, &d);
}

void sv_pf_process_descriptor(struct sv_pf *r, struct sv_pf_blob data)
{
    struct process p = {0};
    read_process(r, data, &p);
    if (p.has_pid)
        apply_process(r, sv_pf_process(r, p.pid), &p);
    else
        sv_pf_damage(r, "process descriptor without pid", "ignored");
}

void sv_pf_thread_descriptor(struct sv_pf *r, struct sv_pf_blob data)
{
    struct thread x = {0};
    read_thread(r, data, &x);
    struct sv_pf_track *t = NULL;
    if (x.has_pid && x.has_tid) {
        t = sv_pf_thread(r, x.pid, x.tid);
        apply_thread(r, t, &x);
    } else {
        sv_pf_note(r, "thread descriptor without pid or tid", "only its reference times are used");
    }
    set_thread(r, t, &x);
}

/* ---- the end ---- */

void sv_pf_tracks_finish(struct sv_pf *r)
{
    for (size_t m = 0; m < r->n_machines; m++) {
        const struct sv_map *tracks = &r->machines[m]->tracks;
        for (size_t i = 0; i < tracks->cap; i++) {
            if (!tracks->used[i])
                continue;
            const struct sv_pf_track *t = (struct sv_pf_track *)(uintptr_t)tracks->slots[i].value;
            if (t->is_parent && !t->is_described)
                sv_report_add(r->report, SV_DAMAGE, "parent track without descriptor", 1, SV_NO_POS,
                              "uuid %llu; its children are kept, Perfetto drops them",
                              (unsigned long long)t->uuid);
        }
    }
}
