/* The decoder: takes the records of a round from the rings and hands each to its probe, which makes
 * its events.
 *
 * Called by the recorder once per round, and by tests with recorded bytes. Trusts no record: its
 * kind and its size are checked here, the rest by the probe. Must not block on anything but /proc,
 * and on a folder that a program has just left by `..`. */
#include "record/decode/short_calls.h"
#include "record/decode/state.h"
#include "record/sample/procfs.h"
#include "why/words.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- for the probes ---- */

struct sv_proc *sv_decode_process(struct sv_decode *d, uint32_t pid)
{
    bool is_new;
    struct sv_proc *p = sv_tree_process(&d->tree, pid, &is_new);
    if (!p->has_snapshot && d->options.asks_procfs)
        sv_procfs_complete(&d->tree, pid);
    p->has_snapshot = true;
    return p;
}

sv_track sv_decode_row(struct sv_decode *d, const struct sv_wire_head *h,
                       enum sv_probe_number probe, const char *name)
{
    struct sv_traced_thread *x = sv_tree_thread(&d->tree, h->tgid, h->tid);
    if (x->rows[probe] == 0)
        x->rows[probe] = sv_dict_child(d->source.dict, x->track, SV_TRACK_CUSTOM,
                                       sv_dict_cstr(d->source.dict, name));
    return x->rows[probe];
}

/* What /proc says, or said when the record came. */
static struct sv_file *name_now(struct sv_decode *d, const struct sv_proc *p, int64_t fd,
                                struct sv_fd_when when)
{
    size_t len;
    const struct sv_note key = {SV_NOTE_DESCRIPTOR, p->pid, fd, when.start_ns};
    const char *text = d->notes ? sv_notes_find(d->notes, key, &len) : NULL;
    if (text)
        return sv_tree_file(&d->tree, NULL, text, len);
    return d->options.asks_procfs ? sv_procfs_descriptor(&d->tree, p->pid, fd, when.inode) : NULL;
}

struct sv_file *sv_decode_descriptor(struct sv_decode *d, struct sv_proc *p, int64_t fd,
                                     struct sv_fd_when when, struct sv_fd **now)
{
    struct sv_file *f = sv_fd_find(p, fd, when, now);
    if (f) {
        f->refs++;
        return f;
    }
    if (fd < 0 || p->is_ended)
        return NULL;
    f = name_now(d, p, fd, when);
    if (f) {
        f->refs++;
        sv_fd_open(&d->tree, p, fd,
                   (struct sv_fd){.file = f, .since_ns = when.start_ns, .inode = when.inode},
                   false);
        *now = sv_fd_at(p, fd);
    }
    return f;
}

sv_str sv_decode_cgroup(struct sv_decode *d, uint64_t number)
{
    bool is_new;
    char path[SV_PROCFS_CGROUP_MAX];
    uint64_t *at = sv_map_add(&d->groups, number, &is_new);
    if (is_new) {
        size_t n = d->can_ask_procfs ? sv_procfs_cgroup_called(number, path) : 0;
        *at = n ? sv_dict_str(d->source.dict, path, n) : 0;
    }
    return (sv_str)*at;
}

void sv_decode_put_cgroup(const struct sv_decode *d, struct sv_batch *b, sv_str cgroup)
{
    struct sv_text text = sv_dict_text(d->source.dict, cgroup);
    if (cgroup)
        sv_decode_path(b, d->cgroup, sv_batch_text(b, text.bytes, text.len), text.len);
}

/* ---- the source ---- */

static void flush(struct sv_decode *d, struct sv_batch *b)
{
    for (unsigned i = 0; i < SV_N_PROBES; i++)
        if (sv_probes[i]->flush)
            sv_probes[i]->flush(d, d->states[i], b);
    d->has_waiting = false;
}

/* Calls and processes are followed all the same: they change tables of descriptors. */
static bool is_of_own_thread(struct sv_decode *d, const struct sv_wire_head *h)
{
    return d->tree.has_own_threads && !d->options.shows_own && h->kind != SV_WIRE_CALL &&
           h->kind != SV_WIRE_FORK && h->kind != SV_WIRE_EXEC && h->kind != SV_WIRE_EXIT &&
           h->kind != SV_WIRE_NAME && sv_tree_is_own_thread(&d->tree, h->tgid, h->tid);
}

static void decode(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_head *h,
                   uint32_t size)
{
    const struct sv_decode_kind *k = &d->kinds[h->kind < SV_WIRE_KINDS ? h->kind : 0];
    if (size < k->size || h->ts_ns > INT64_MAX) {
        d->malformed++;
        return;
    }
    if (d->has_waiting && k->ends_gathering)
        flush(d, b);
    if (h->kind != SV_WIRE_CALL)
        d->recent.process = NULL;
    if (is_of_own_thread(d, h))
        return;
    if (!k->decode(d, k->state, b, h, size))
        d->malformed++;
}

static void put_losses(struct sv_decode *d, struct sv_batch *b)
{
    while (d->n_losses > 0 && b->n < SV_BATCH) {
        struct sv_decode_loss *l = &d->losses[--d->n_losses];
        struct sv_event *e = sv_batch_put(b, SV_LOSS, l->from_ns, l->track, l->name, 0);
        e->dur_ns = l->to_ns - l->from_ns;
        sv_batch_int(b, 0, (int64_t)l->n);
        sv_batch_finish(b, e);
    }
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sv_decode *d = (struct sv_decode *)source;
    const struct sv_wire_head *h;
    uint32_t size;
    (void)err;
    sv_tree_sweep(&d->tree);
    sv_stacks_sweep(d->stacks);
    d->recent.process = NULL;
    put_losses(d, b);
    while (b->n + SV_PROBE_EVENTS <= SV_BATCH && (h = sv_krings_next(d->from, &size))) {
        if (d->options.keep)
            d->options.keep(d->options.keep_ctx, h, size);
        decode(d, b, h, size);
    }
    if (d->has_waiting && b->n + SV_PROBE_EVENTS <= SV_BATCH)
        flush(d, b);
    return (int)b->n;
}

static void close_source(struct sv_source *source)
{
    (void)source; /* sv_decode_free() */
}

static void open_probe(struct sv_decode *d, unsigned i)
{
    const struct sv_probe *p = sv_probes[i];
    if (p->state_size)
        d->states[i] = sv_alloc(p->state_size);
    if (p->open)
        p->open(d, d->states[i]);
    for (unsigned k = 0; k < SV_PROBE_RECORDS && p->records[k].size; k++) {
        const struct sv_probe_record *r = &p->records[k];
        d->kinds[r->kind] =
            (struct sv_decode_kind){r->decode, d->states[i], r->size, p->ends_gathering};
    }
}

static void learn_maps(void *ctx, uint32_t pid, const char *text)
{
    struct sv_decode *d = ctx;
    const struct sv_proc_image who = sv_tree_image(&d->tree, pid);
    sv_inodes_maps_of(&d->inodes, &d->tree, &who, text);
}

/* Asked when the record is decoded: a link that was changed in the meantime leads elsewhere. */
static bool link_of(void *ctx, const char *path, char to[SV_TREE_PATH_MAX])
{
    struct stat st;
    (void)ctx;
    _Static_assert(SV_TREE_PATH_MAX >= PATH_MAX, "realpath() writes so much");
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) && realpath(path, to);
}

struct sv_decode *sv_decode_new(struct sv_dict *dict, struct sv_report *report,
                                const struct sv_decode_options *options)
{
    struct sv_decode *d = sv_alloc(sizeof *d);
    d->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_HAS_EDGES | SV_HAS_NESTED | SV_IN_TRACK_ORDER,
                                   .dict = dict,
                                   .report = report};
    if (options)
        d->options = *options;
    d->from = &d->rings;
    d->can_ask_procfs = d->options.asks_procfs;
    d->inodes.follows_maps = d->options.follows_maps;
    d->prefix_len = d->options.prefix ? strlen(d->options.prefix) : 0;
    sv_tree_init(&d->tree, dict);
    d->tree.link_of = d->options.asks_procfs ? link_of : NULL;
    sv_kernel_words_init(&d->words, dict);
    d->cgroup = sv_dict_cstr(dict, SV_RIVAL_CGROUP);
    if (d->options.sum_below_ns)
        d->short_calls = sv_short_calls_new(d);
    d->symbols = sv_symbols_new(NULL);
    sv_symbols_follow(d->symbols, d->options.follows_maps);
    sv_symbols_on_read(d->symbols, learn_maps, d);
    d->stacks = sv_stacks_new(d->symbols,
                              &(struct sv_stacks_options){.asks_procfs = d->options.asks_procfs,
                                                          .hides_files = d->options.hides_files,
                                                          .has_kernel = d->options.has_kernel,
                                                          .found_python = d->options.found_python,
                                                          .knows_program = d->options.knows_program,
                                                          .ctx = d->options.python_ctx});
    for (unsigned i = 0; i < SV_WIRE_KINDS; i++)
        d->kinds[i].size = UINT32_MAX;
    for (unsigned i = 0; i < SV_N_PROBES; i++)
        open_probe(d, i);
    if (d->options.asks_procfs) /* the dynamic linker's and libc's files are everybody's */
        sv_inodes_ask(&d->inodes, &d->tree, (uint32_t)getpid());
    return d;
}

void sv_decode_free(struct sv_decode *d)
{
    if (!d)
        return;
    for (unsigned i = 0; i < SV_N_PROBES; i++) {
        if (sv_probes[i]->close)
            sv_probes[i]->close(d, d->states[i]);
        free(d->states[i]);
    }
    sv_short_calls_free(d->short_calls);
    sv_map_fini(&d->groups);
    sv_krings_fini(&d->rings);
    sv_inodes_fini(&d->inodes, &d->tree);
    sv_tree_fini(&d->tree);
    sv_symbols_free(d->symbols);
    sv_stacks_free(d->stacks);
    free(d);
}

struct sv_source *sv_decode_source(struct sv_decode *d)
{
    return &d->source;
}

struct sv_krings *sv_decode_rings(struct sv_decode *d)
{
    return &d->rings;
}

struct sv_symbols *sv_decode_symbols(struct sv_decode *d)
{
    return d->symbols;
}

struct sv_stacks *sv_decode_stacks(struct sv_decode *d)
{
    return d->stacks;
}

struct sv_tree *sv_decode_tree(struct sv_decode *d)
{
    return &d->tree;
}

struct sv_short_calls *sv_decode_short_calls(struct sv_decode *d)
{
    return d->short_calls;
}

struct sv_inodes *sv_decode_inodes(struct sv_decode *d)
{
    return &d->inodes;
}

void sv_decode_read_from(struct sv_decode *d, struct sv_krings *older, const struct sv_notes *notes,
                         bool asks_procfs)
{
    d->from = older ? older : &d->rings;
    d->notes = older ? notes : NULL;
    d->options.asks_procfs = d->can_ask_procfs && (!older || asks_procfs);
}

uint64_t sv_decode_round(struct sv_decode *d, uint64_t cutoff_ns)
{
    return sv_krings_round(d->from, cutoff_ns);
}

void sv_decode_release(struct sv_decode *d)
{
    sv_krings_release(d->from);
}

uint64_t sv_decode_malformed(const struct sv_decode *d)
{
    return d->malformed;
}

void sv_decode_hide_until_exec(struct sv_decode *d, uint32_t pid)
{
    d->hidden = pid;
}

void sv_decode_missed(struct sv_decode *d)
{
    for (size_t i = 0; i < d->tree.n; i++) { /* tables of descriptors may be incomplete now */
        if (d->tree.processes[i]->is_ended)
            continue;
        d->tree.processes[i]->has_snapshot = false;
        sv_fds_lost(d->tree.processes[i]);
    }
    sv_inodes_lost(&d->inodes);
}

void sv_decode_lost(struct sv_decode *d, unsigned cpu, const char *what, uint64_t n,
                    uint64_t since_ns, uint64_t now_ns)
{
    struct sv_dict *dict = d->source.dict;
    char name[32];
    snprintf(name, sizeof name, "CPU %u", cpu);
    sv_track group = sv_dict_child(dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(dict, SV_ROW_LOST));
    sv_decode_missed(d);
    if (d->n_losses == SV_DECODE_LOSSES) { /* more CPUs lost in one round: the number stays */
        d->losses[SV_DECODE_LOSSES - 1].n += n;
        return;
    }
    d->losses[d->n_losses++] = (struct sv_decode_loss){
        sv_dict_child(dict, group, SV_TRACK_CUSTOM, sv_dict_cstr(dict, name)),
        sv_dict_cstr(dict, what), n, (int64_t)since_ns, (int64_t)now_ns};
}
