/* Pages of the viewer that a trace has data for: by the categories of its slices and by its steps.
 * See pages.h. */
#include "view/pages.h"

#include "core/base/mem.h"
#include "core/serving/engine_words.h"
#include "core/serving/life.h"
#include "core/stream/gpu_words.h"
#include "subjects/comm/words.h"
#include "subjects/io/figures.h"
#include "subjects/io/words.h"
#include "why/steps.h"
#include "why/words.h"

#include <stdlib.h>
#include <string.h>

#define SECTION "view.pages.4" /* another number when there are more of them */

static const char *const names[SV_N_PAGES] = {
    [SV_PAGE_STEPS] = "steps",     [SV_PAGE_GPU] = "gpu",         [SV_PAGE_IO] = "io",
    [SV_PAGE_SERVING] = "serving", [SV_PAGE_RANKS] = "ranks",     [SV_PAGE_LLM] = "llm",
    [SV_PAGE_WAITS] = "waits",     [SV_PAGE_EXPLAIN] = "explain", [SV_PAGE_OPS] = "ops",
};

static sv_str find(const struct sv_trace *t, const char *word)
{
    return sv_dict_find_str(t->dict, word, strlen(word));
}

static uint32_t n_ranks(const struct sv_dict *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n_meta; i++) {
        struct sv_text key = sv_dict_text(d, d->meta[i].key);
        n += key.len > 5 && memcmp(key.bytes + key.len - 5, "/rank", 5) == 0;
    }
    return n;
}

/* Of the vocabulary, or NCCL's kernels. */
static bool has_collectives(const struct sv_trace *t, const bool *is_used)
{
    bool has_any = is_used[find(t, SV_CAT_COLLECTIVE)];
    for (sv_str s = 1; s < t->dict->n_strings && !has_any; s++) {
        const char *name = sv_dict_text(t->dict, s).bytes;
        has_any = strncmp(name, "ncclKernel", 10) == 0 || strncmp(name, "ncclDevKernel", 13) == 0;
    }
    return has_any;
}

/* What the report ops counts without work of a GPU. */
static bool is_operator(struct sv_text cat)
{
    return strcmp(cat.bytes, "cpu_op") == 0 || strcmp(cat.bytes, "Operator") == 0 ||
           strcmp(cat.bytes, "torch.forward") == 0;
}

/* By the categories that slices have. */
static uint32_t by_category(const struct sv_trace *t)
{
    const struct sv_dict *d = t->dict;
    struct sv_io_words io;
    uint32_t pages = 0;
    bool *is_used = sv_alloc((size_t)d->n_strings + 1);
    for (uint64_t row = 0; row < t->slices.n; row++)
        is_used[t->slices.cat[row]] = true;
    sv_io_words_init(&io, t);
    is_used[0] = false; /* what the trace does not have is found there */
    bool has_engine = is_used[find(t, SV_ENGINE_CATEGORY)] || find(t, SV_LLM_REQUEST);
    bool has_batches = is_used[find(t, "batching")] ||
                       (is_used[find(t, SV_LIFE_CATEGORY)] &&
                        (!has_engine || find(t, sv_life_op_names[SV_LIFE_COLLECTED])));
    pages |= has_batches ? 1u << SV_PAGE_SERVING : 0;
    pages |= has_engine ? 1u << SV_PAGE_LLM : 0;
    if (is_used[find(t, SV_CAT_THREAD_STATE)] || is_used[find(t, SV_CAT_OFFCPU_SAMPLE)])
        pages |= 1u << SV_PAGE_WAITS;
    for (sv_str s = 1; s < d->n_strings; s++) {
        struct sv_text cat = sv_dict_text(d, s);
        if (!is_used[s])
            continue;
        if (sv_gpu_is_work(sv_gpu_class(cat.bytes, cat.len)))
            pages |= 1u << SV_PAGE_GPU | 1u << SV_PAGE_OPS;
        if (is_operator(cat))
            pages |= 1u << SV_PAGE_OPS;
        if (io.kinds[s])
            pages |= 1u << SV_PAGE_IO;
    }
    if (n_ranks(d) > 1 && has_collectives(t, is_used))
        pages |= 1u << SV_PAGE_RANKS;
    sv_io_words_fini(&io);
    free(is_used);
    return pages;
}

/* The batches of a server are called steps by their markers, but have a page of their own. */
static uint32_t by_steps(const struct sv_trace *t)
{
    struct sv_steps steps;
    uint32_t pages = 0;
    sv_track process = 0;
    sv_str batching = find(t, "batching"), serving = find(t, "serving");
    bool has_many = false;
    sv_steps_find(&steps, t, NULL);
    for (size_t i = 0; i < steps.n; i++) {
        sv_str cat = t->slices.cat[steps.steps[i].row];
        if (cat && (cat == batching || cat == serving))
            continue;
        sv_track of = sv_dict_process_of(t->dict, steps.steps[i].track);
        has_many |= pages && of != process;
        pages |= 1u << SV_PAGE_STEPS;
        process = of;
    }
    if (has_many && n_ranks(t->dict) > 1)
        pages |= 1u << SV_PAGE_RANKS;
    sv_steps_fini(&steps);
    return pages;
}

uint32_t sv_pages_of(const struct sv_trace *t)
{
    uint64_t n;
    const uint32_t *kept = sv_image_find(sv_trace_image(t), SECTION, sizeof *kept, &n);
    if (kept && n == 1 && *kept < 1u << SV_N_PAGES)
        return *kept;
    uint32_t pages = by_category(t) | by_steps(t);
    return pages ? pages | 1u << SV_PAGE_EXPLAIN : 0; /* what it says is about what those show */
}

void sv_pages_put_json(struct sv_json *j, uint32_t pages)
{
    sv_json_begin(j, '[');
    for (size_t i = 0; i < SV_N_PAGES; i++)
        if (pages >> i & 1)
            sv_json_text(j, names[i], strlen(names[i]));
    sv_json_end(j);
}

void sv_pages_put(uint32_t pages, struct sv_image_writer *w)
{
    uint32_t *kept = sv_image_add_new(w, SECTION, sizeof *kept, sizeof *kept);
    *kept = pages;
}
