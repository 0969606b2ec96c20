/* Kinds of work: what names say, and what each slice of a trace is.
 *
 * Each slice gets a kind: its own name's, its category's, or its parent's; a slice on a device the
 * kind of the host call that launched it. Called by the division of steps (steps_work.c) and by the
 * reports that look at names. One pass over the rows for each question. */
#include "why/step_kinds.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- kinds of work ---- */

/* Words are looked for in lower case, the first that occurs decides: the narrower ones come
 * first. */
static const struct {
    const char *word;
    uint8_t work;
} words[] = {
    {"nccl", SV_WORK_COMM},
    {"allreduce", SV_WORK_COMM},
    {"all_reduce", SV_WORK_COMM},
    {"allgather", SV_WORK_COMM},
    {"all_gather", SV_WORK_COMM},
    {"reduce_scatter", SV_WORK_COMM},
    {"reducescatter", SV_WORK_COMM},
    {"c10d::", SV_WORK_COMM},
    {"alltoall", SV_WORK_COMM},
    {"all_to_all", SV_WORK_COMM},
    {"deep_ep", SV_WORK_COMM}, /* dispatch and combine of expert parallelism */
    {"nvshmem", SV_WORK_COMM},
    {"gloo", SV_WORK_COMM},
    {"mpi_", SV_WORK_COMM},
    {"checkpoint", SV_WORK_CHECKPOINT},
    {"save_ckpt", SV_WORK_CHECKPOINT},
    {"torch.save", SV_WORK_CHECKPOINT},
    {"htod", SV_WORK_COPY},
    {"h2d", SV_WORK_COPY},
    {"memcpy", SV_WORK_COPY},
    {"host_to_device", SV_WORK_COPY},
    {"host-to-device", SV_WORK_COPY},
    {"aten::copy_", SV_WORK_COPY},
    {"pin_memory", SV_WORK_COPY},
    {"dataloader", SV_WORK_DATA},
    {"data_load", SV_WORK_DATA},
    {"data load", SV_WORK_DATA},
    {"next_batch", SV_WORK_DATA},
    {"load_batch", SV_WORK_DATA},
    {"read_batch", SV_WORK_DATA},
    {"get_batch", SV_WORK_DATA},
    {"fetch_batch", SV_WORK_DATA},
    {"wait for data", SV_WORK_DATA},
    {"wait_for_data", SV_WORK_DATA},
    {"optimizer", SV_WORK_OPTIMIZER},
    {"zero_grad", SV_WORK_OPTIMIZER},
    {"adam", SV_WORK_OPTIMIZER},
    {"backward", SV_WORK_BACKWARD},
    {"autograd::engine", SV_WORK_BACKWARD},
    {"forward", SV_WORK_FORWARD},
    {"nn.module", SV_WORK_FORWARD},
    {"synchronize", SV_WORK_WAIT},
    {"clfinish", SV_WORK_WAIT},
    {"clwaitforevents", SV_WORK_WAIT},
};

#define N_WORDS (sizeof words / sizeof *words)

/* Words by their first letter: next[] leads from one to the next of the same letter; 0: none, else
 * the number and 1. */
struct letters {
    uint8_t first[256], next[N_WORDS];
};

static void sort_letters(struct letters *l)
{
    *l = (struct letters){0};
    for (size_t i = N_WORDS; i-- > 0;) {
        uint8_t *first = &l->first[(unsigned char)words[i].word[0]];
        l->next[i] = *first;
        *first = (uint8_t)(i + 1);
    }
}

static bool begins_with(const char *text, const char *word)
{
    while (*word && tolower((unsigned char)*text) == *word) {
        text++;
        word++;
    }
    return !*word;
}

/* The first word of the list that the text has, N_WORDS: none. One walk over the text. */
static size_t find_word(const struct letters *l, const char *text)
{
    size_t best = N_WORDS;
    for (; *text; text++) {
        size_t i = l->first[tolower((unsigned char)*text)];
        for (; i && i - 1 < best; i = l->next[i - 1])
            if (begins_with(text, words[i - 1].word))
                best = i - 1;
    }
    return best;
}

uint8_t *sv_work_of_strings(const struct sv_dict *d)
{
    uint8_t *kind = sv_alloc_aligned((size_t)d->n_strings + 1, 64);
    struct letters letters;
    sort_letters(&letters);
    memset(kind, SV_WORK_UNKNOWN, (size_t)d->n_strings + 1);
    for (sv_str s = 1; s < d->n_strings; s++) {
        size_t i = find_word(&letters, sv_dict_text(d, s).bytes);
        if (i < N_WORDS)
            kind[s] = words[i].work;
    }
    return kind;
}

/* Operators of PyTorch that nothing else explains are its forward pass, provided that there is a
 * backward one. */
static bool is_operator(const struct sv_step_kinds *d, uint64_t row)
{
    const char *cat = sv_dict_text(d->t->dict, d->t->slices.cat[row]).bytes;
    return strcmp(cat, "cpu_op") == 0 || strcmp(cat, "Operator") == 0;
}

/* Parents have smaller rows, so one pass settles all. */
static void classify_host(struct sv_step_kinds *d)
{
    const struct sv_slices *c = &d->t->slices;
    for (uint64_t row = 0; row < c->n; row++) {
        uint8_t kind = d->by_string[c->name[row]];
        uint32_t parent = c->parent[row];
        uint8_t above = parent == SV_NO_ROW ? (uint8_t)SV_WORK_UNKNOWN : d->by_row[parent];
        if (kind == SV_WORK_UNKNOWN)
            kind = d->by_string[c->cat[row]];
        /* A wait within work of a known kind is part of it. */
        if (kind == SV_WORK_UNKNOWN || (kind == SV_WORK_WAIT && above != SV_WORK_UNKNOWN))
            kind = above;
        d->by_row[row] = kind;
    }
}

/* A marker says nothing about what is below it; its name may hold a word by chance. */
static void free_markers(struct sv_step_kinds *d, const struct sv_steps *s)
{
    const struct sv_slices *c = &d->t->slices;
    for (size_t i = 0; i < s->n; i++)
        d->by_string[c->name[s->steps[i].row]] = SV_WORK_UNKNOWN;
}

static void mark_forward(struct sv_step_kinds *d)
{
    const struct sv_slices *c = &d->t->slices;
    bool *has_backward = sv_alloc((size_t)d->t->n_tracks + 1);
    for (uint64_t row = 0; row < c->n; row++)
        has_backward[sv_dict_process_of(d->t->dict, c->track[row])] |= d->by_row[row] ==
                                                                       SV_WORK_BACKWARD;
    has_backward[0] = false;
    for (uint64_t row = 0; row < c->n; row++) {
        uint32_t parent = c->parent[row];
        if (d->by_row[row] != SV_WORK_UNKNOWN)
            continue;
        if (parent != SV_NO_ROW && d->by_row[parent] != SV_WORK_UNKNOWN)
            d->by_row[row] = d->by_row[parent];
        else if (is_operator(d, row) && has_backward[sv_dict_process_of(d->t->dict, c->track[row])])
            d->by_row[row] = SV_WORK_FORWARD;
    }
    free(has_backward);
}

/* Device slices: communication and copies are what they are, kernels belong to what launched
 * them. */
static void classify_devices(struct sv_step_kinds *d)
{
    const struct sv_slices *c = &d->t->slices;
    for (uint32_t row = 0; row < c->n; row++) {
        enum sv_device_slice device = sv_device_slice(&d->launches, row);
        if (device == SV_NOT_DEVICE)
            continue;
        uint32_t launch = sv_launch_of(&d->launches, row);
        uint8_t own = d->by_string[c->name[row]];
        sv_track track = c->track[row], process = 0;
        if (launch != SV_NO_ROW)
            process = sv_dict_process_of(d->t->dict, c->track[launch]);
        d->is_device[track] = true;
        if (!d->owner[track])
            d->owner[track] = process;
        if (own == SV_WORK_COMM || device == SV_DEVICE_SLICE_COPY)
            d->by_row[row] = own == SV_WORK_COMM ? SV_WORK_COMM : SV_WORK_COPY;
        else if (launch != SV_NO_ROW && d->by_row[launch] < SV_N_WORK)
            d->by_row[row] = d->by_row[launch];
    }
}

/* Threads belong to their process; a device without a known launch to the process of the first
 * steps that its machine has. */
static void find_owners(struct sv_step_kinds *d, const struct sv_steps *s)
{
    const struct sv_dict *dict = d->t->dict;
    struct sv_map by_space = {0};
    bool is_new;
    for (size_t i = 0; i < s->n; i++) {
        sv_track track = s->steps[i].track;
        uint64_t *process = sv_map_add(&by_space, dict->tracks[track].space, &is_new);
        if (!*process)
            *process = sv_dict_process_of(dict, track);
    }
    for (sv_track k = 1; k < d->t->n_tracks; k++) {
        if (!d->is_device[k])
            d->owner[k] = dict->tracks[k].kind == SV_TRACK_THREAD ? sv_dict_process_of(dict, k) : 0;
        const uint64_t *process = sv_map_find(&by_space, dict->tracks[k].space);
        if (d->is_device[k] && !d->owner[k] && process)
            d->owner[k] = (sv_track)*process;
    }
    sv_map_fini(&by_space);
}

void sv_step_kinds_init(struct sv_step_kinds *d, const struct sv_steps *s, const struct sv_trace *t)
{
    *d = (struct sv_step_kinds){.t = t, .by_string = sv_work_of_strings(t->dict)};
    d->by_row = sv_alloc_aligned(t->slices.n + 1, 64);
    d->owner = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *d->owner);
    d->is_device = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *d->is_device);
    sv_launches_init(&d->launches, t);
    if (!s->has_no_markers)
        free_markers(d, s);
    classify_host(d);
    mark_forward(d);
    classify_devices(d);
    find_owners(d, s);
}

void sv_step_kinds_fini(struct sv_step_kinds *d)
{
    sv_launches_fini(&d->launches);
    free(d->by_string);
    free(d->by_row);
    free(d->owner);
    free(d->is_device);
    *d = (struct sv_step_kinds){0};
}
