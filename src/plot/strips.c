/* Strips of slices: blocks of a row's slices, and the pixels that are made from them.
 *
 * Called by the answers of the viewer. A pixel in which few slices begin is made by looking at
 * them, one with many from the blocks between its edges. Slices of a line never overlap, so what
 * reaches into a pixel from the left is the end of one slice: the last that began. */
#include "plot/strips.h"

#include "core/base/mem.h"
#include "core/base/search.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK_MIN 7u  /* log2 of the slices of a block */
#define TOP       64u /* blocks under one longest of the longest */

struct line_block {
    uint64_t before_ns;  /* how long the slices of the line before this block last together */
    uint64_t longest_ns; /* of the slices in it; unfinished ones are longer than any */
    uint32_t before;     /* how many slices of the line are before this block */
    uint32_t longest;    /* slice; SV_NO_ROW: the line has none here */
};

struct line_top {
    uint64_t longest_ns;
    uint32_t longest;
};

struct strip {
    uint32_t *order; /* slices in the order of time; NULL: they are so in the store */
    uint32_t first;  /* else the first slice of the row */
    uint32_t n, lines;
    uint32_t shift;            /* a block holds 1 << shift slices */
    uint32_t n_blocks;         /* complete ones; one more entry says what is before the rest */
    struct line_block *blocks; /* [n_blocks + 1][lines]; NULL: the row is too short */
    struct line_top *tops;     /* [n_blocks / TOP][lines] */
};

struct counter_block {
    double min, max;
};

struct sv_strips {
    const struct sv_track_rows *rows;
    const struct sv_trace *trace;
    struct strip *items;
    struct counter_block
        *counters; /* of every 256 rows of counter values; those of one track only are used */
    /* What the items point into, row by row. */
    uint32_t *orders;
    struct line_block *blocks;
    struct line_top *tops;
    size_t n_orders, n_blocks, n_tops, n_counters;
    bool is_kept; /* all of it lies in the image of the trace */
};
_Static_assert(sizeof(struct line_block) == 24 && sizeof(struct line_top) == 16 &&
                   sizeof(struct counter_block) == 16,
               "raise SV_IMAGE_VERSION");

/* ---- pixels ---- */

__extension__ typedef __int128 wide; /* the product of a time and a pixel */

static wide floor_div(wide a, wide b)
{
    wide q = a / b;
    return q - (a % b != 0 && a < 0);
}

int64_t sv_pixel_edge(const struct sv_pixels *px, int64_t i)
{
    wide at = (wide)px->from_ns + floor_div((wide)i * ((wide)px->to_ns - px->from_ns), px->width);
    return at < INT64_MIN ? INT64_MIN : at > INT64_MAX ? INT64_MAX : (int64_t)at;
}

int64_t sv_pixel_of(const struct sv_pixels *px, int64_t ns)
{
    wide offset = (wide)ns - px->from_ns;
    return (int64_t)floor_div((offset + 1) * px->width - 1, (wide)px->to_ns - px->from_ns);
}

/* ---- slices of a row ---- */

static uint32_t slice_at(const struct strip *p, uint32_t i)
{
    return p->order ? p->order[i] : p->first + i;
}

static uint32_t line_at(const struct sv_strips *s, const struct strip *p, uint32_t i)
{
    return sv_track_rows_line(s->rows, slice_at(p, i));
}

static uint64_t lasting(const struct sv_trace *t, uint32_t slice)
{
    return (uint64_t)sv_trace_end_ns(t, slice) - (uint64_t)t->slices.ts_ns[slice];
}

/* The number of slices that begin before ns, searched from `from` on, near it first. */
static uint32_t count_before(const struct sv_strips *s, const struct strip *p, uint32_t from,
                             int64_t ns)
{
    const int64_t *ts = s->trace->slices.ts_ns;
    if (!p->order)
        return sv_search_near(ts, p->first + from, p->first + p->n, ns) - p->first;
    uint32_t step = 1, low = from, at;
    while (low + step < p->n && ts[p->order[low + step]] < ns) {
        low += step;
        step *= 2;
    }
    uint32_t high = step < p->n - low ? low + step : p->n;
    SV_SEARCH(at, middle, low, high, ts[p->order[middle]] < ns);
    return at;
}

/* ---- making ---- */

static size_t blocks_of(const struct strip *p)
{
    return p->n_blocks ? ((size_t)p->n_blocks + 1) * p->lines : 0;
}

static size_t tops_of(const struct strip *p)
{
    return (size_t)(p->n_blocks / TOP) * p->lines;
}

struct by_time {
    int64_t ts_ns;
    uint32_t slice;
};

static int compare_times(const void *a, const void *b)
{
    const struct by_time *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* A row of several tracks: their slices in one order. */
static void sort_members(struct sv_strips *s, struct strip *p, const struct sv_row_info *row)
{
    const struct sv_trace *t = s->trace;
    struct by_time *all = sv_alloc(((size_t)p->n + 1) * sizeof *all);
    size_t n = 0;
    for (size_t m = 0; m < row->n_members; m++) {
        const struct sv_trace_track *k = &t->tracks[s->rows->members[row->first_member + m].track];
        for (uint32_t i = k->first; i < k->end; i++)
            all[n++] = (struct by_time){t->slices.ts_ns[i], i};
    }
    qsort(all, n, sizeof *all, compare_times);
    for (size_t i = 0; i < n; i++)
        p->order[i] = all[i].slice;
    free(all);
}

/* How much a row needs. Its pointers are set when the sum is known. */
static void begin_strip(struct sv_strips *s, struct strip *p, const struct sv_row_info *row)
{
    const struct sv_trace *t = s->trace;
    p->lines = row->lines;
    for (size_t m = 0; row->lines && m < row->n_members; m++) {
        const struct sv_trace_track *k = &t->tracks[s->rows->members[row->first_member + m].track];
        p->n += k->end - k->first;
        p->first = k->first;
    }
    s->n_orders += row->n_members > 1 ? p->n : 0;
    /* Blocks of many lines are longer, so that they stay small beside their slices. */
    for (p->shift = BLOCK_MIN; 1ull << p->shift < 32ull * p->lines;)
        p->shift++;
    p->n_blocks = p->n >> p->shift;
    s->n_blocks += blocks_of(p);
    s->n_tops += tops_of(p);
}

static void set_pointers(struct sv_strips *s)
{
    uint32_t *order = s->orders;
    struct line_block *block = s->blocks;
    struct line_top *top = s->tops;
    for (size_t i = 0; i < s->rows->n; i++) {
        struct strip *p = &s->items[i];
        bool is_ordered = s->rows->items[i].n_members > 1;
        p->order = is_ordered && p->n ? order : NULL;
        p->blocks = p->n_blocks ? block : NULL;
        p->tops = p->n_blocks ? top : NULL;
        order += is_ordered ? p->n : 0;
        block += blocks_of(p);
        top += tops_of(p);
    }
}

static void make_blocks(struct sv_strips *s, struct strip *p)
{
    const struct sv_trace *t = s->trace;
    size_t lines = p->lines;
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        struct line_block *now = p->blocks + b * lines, *next = now + lines;
        for (size_t l = 0; l < lines; l++) {
            now[l].longest = SV_NO_ROW;
            next[l].before = now[l].before;
            next[l].before_ns = now[l].before_ns;
        }
        for (uint32_t i = b << p->shift; i < (b + 1) << p->shift; i++) {
            uint32_t slice = slice_at(p, i), l = sv_track_rows_line(s->rows, slice);
            uint64_t dur = (uint64_t)t->slices.dur_ns[slice];
            next[l].before++;
            next[l].before_ns += lasting(t, slice);
            if (now[l].longest == SV_NO_ROW || dur > now[l].longest_ns) {
                now[l].longest = slice;
                now[l].longest_ns = dur;
            }
        }
    }
}

static void make_tops(struct strip *p)
{
    size_t lines = p->lines, n = p->n_blocks / TOP;
    for (size_t top = 0; top < n; top++)
        for (size_t l = 0; l < lines; l++) {
            struct line_top *out = &p->tops[top * lines + l];
            out->longest = SV_NO_ROW;
            for (size_t b = top * TOP; b < (top + 1) * TOP; b++) {
                const struct line_block *in = &p->blocks[b * lines + l];
                if (in->longest != SV_NO_ROW &&
                    (out->longest == SV_NO_ROW || in->longest_ns > out->longest_ns))
                    *out = (struct line_top){in->longest_ns, in->longest};
            }
        }
}

static void make_counters(struct sv_strips *s)
{
    const struct sv_counters *c = &s->trace->counters;
    size_t n = s->n_counters;
    s->counters = sv_alloc((n + 1) * sizeof *s->counters);
    for (size_t b = 0; b < n; b++) {
        struct counter_block *out = &s->counters[b];
        *out = (struct counter_block){INFINITY, -INFINITY};
        bool is_finite = true;
        for (size_t i = b << 8; i < (b + 1) << 8; i++) {
            out->min = fmin(out->min, c->value[i]);
            out->max = fmax(out->max, c->value[i]);
            is_finite = is_finite && isfinite(c->value[i]);
        }
        if (!is_finite) /* it has to be looked into */
            out->min = out->max = NAN;
    }
}

/* ---- strips in an image ---- */

void sv_strips_put(const struct sv_strips *s, struct sv_image_writer *w)
{
    sv_image_add(w, "strips.orders", s->orders, s->n_orders * sizeof *s->orders, sizeof *s->orders);
    sv_image_add(w, "strips.blocks", s->blocks, s->n_blocks * sizeof *s->blocks, sizeof *s->blocks);
    sv_image_add(w, "strips.tops", s->tops, s->n_tops * sizeof *s->tops, sizeof *s->tops);
    sv_image_add(w, "strips.counters", s->counters, s->n_counters * sizeof *s->counters,
                 sizeof *s->counters);
}

/* They name slices of the trace. */
static bool check_strips(const struct sv_strips *s)
{
    uint64_t n = s->trace->slices.n, bad = 0;
    for (size_t i = 0; i < s->n_orders; i++)
        bad |= s->orders[i] >= n;
    for (size_t i = 0; i < s->n_blocks; i++)
        bad |= (s->blocks[i].longest >= n) & (s->blocks[i].longest != SV_NO_ROW);
    for (size_t i = 0; i < s->n_tops; i++)
        bad |= (s->tops[i].longest >= n) & (s->tops[i].longest != SV_NO_ROW);
    return !bad;
}

static bool take_strips(struct sv_strips *s)
{
    const struct sv_image *im = s->rows->is_kept ? sv_trace_image(s->trace) : NULL;
    uint64_t n_orders, n_blocks, n_tops, n_counters;
    const void *orders = sv_image_find(im, "strips.orders", sizeof *s->orders, &n_orders);
    const void *blocks = sv_image_find(im, "strips.blocks", sizeof *s->blocks, &n_blocks);
    const void *tops = sv_image_find(im, "strips.tops", sizeof *s->tops, &n_tops);
    const void *counters = sv_image_find(im, "strips.counters", sizeof *s->counters, &n_counters);
    if (!orders || !blocks || !tops || !counters || n_orders != s->n_orders ||
        n_blocks != s->n_blocks || n_tops != s->n_tops || n_counters != s->n_counters)
        return false;
    s->orders = (void *)(uintptr_t)orders; /* nobody writes to strips that are made */
    s->blocks = (void *)(uintptr_t)blocks;
    s->tops = (void *)(uintptr_t)tops;
    s->counters = (void *)(uintptr_t)counters;
    return s->is_kept = check_strips(s);
}

/* ---- all ---- */

struct sv_strips *sv_strips_new(const struct sv_track_rows *rows)
{
    struct sv_strips *s = sv_alloc(sizeof *s);
    s->rows = rows;
    s->trace = rows->trace;
    s->items = sv_alloc((rows->n + 1) * sizeof *s->items);
    s->n_counters = (size_t)(s->trace->counters.n >> 8);
    for (size_t i = 0; i < rows->n; i++)
        begin_strip(s, &s->items[i], &rows->items[i]);
    if (take_strips(s)) {
        set_pointers(s);
        return s;
    }
    s->orders = sv_alloc((s->n_orders + 1) * sizeof *s->orders);
    s->blocks = sv_alloc((s->n_blocks + 1) * sizeof *s->blocks);
    s->tops = sv_alloc((s->n_tops + 1) * sizeof *s->tops);
    set_pointers(s);
    for (size_t i = 0; i < rows->n; i++) {
        struct strip *p = &s->items[i];
        if (p->order)
            sort_members(s, p, &rows->items[i]);
        if (p->n_blocks) {
            make_blocks(s, p);
            make_tops(p);
        }
    }
    make_counters(s);
    return s;
}

void sv_strips_free(struct sv_strips *s)
{
    if (!s)
        return;
    if (!s->is_kept) {
        free(s->orders);
        free(s->blocks);
        free(s->tops);
        free(s->counters);
    }
    free(s->items);
    free(s);
}

size_t sv_strips_bytes(const struct sv_strips *s)
{
    return s->n_orders * sizeof *s->orders + s->n_blocks * sizeof *s->blocks +
           s->n_tops * sizeof *s->tops + s->n_counters * sizeof *s->counters;
}

/* ---- looking around ---- */

uint32_t sv_strips_last_before(const struct sv_strips *s, size_t row, uint32_t line, uint32_t at)
{
    const struct strip *p = &s->items[row];
    uint32_t block = at >> p->shift, begin = block << p->shift;
    for (uint32_t i = at; i > begin; i--)
        if (line_at(s, p, i - 1) == line)
            return i - 1;
    if (!p->blocks || block == 0)
        return SV_NO_ROW;
    const struct line_block *of_line = p->blocks + line;
    uint32_t before = of_line[(size_t)block * p->lines].before, found;
    if (before == 0)
        return SV_NO_ROW;
    /* the first block after which as many are before as here */
    SV_SEARCH(found, middle, 0, block, of_line[((size_t)middle + 1) * p->lines].before < before);
    for (uint32_t i = (found + 1) << p->shift; i > found << p->shift; i--)
        if (line_at(s, p, i - 1) == line)
            return i - 1;
    return SV_NO_ROW;
}

uint32_t sv_strips_next_from(const struct sv_strips *s, size_t row, uint32_t line, uint32_t at)
{
    const struct strip *p = &s->items[row];
    uint32_t block = at >> p->shift;
    uint32_t end = block < p->n_blocks ? (block + 1) << p->shift : p->n;
    for (uint32_t i = at; i < end; i++)
        if (line_at(s, p, i) == line)
            return i;
    if (end == p->n)
        return SV_NO_ROW;
    const struct line_block *of_line = p->blocks + line;
    uint32_t before = of_line[((size_t)block + 1) * p->lines].before, found;
    SV_SEARCH(found, middle, block + 1, p->n_blocks,
              of_line[((size_t)middle + 1) * p->lines].before <= before);
    for (uint32_t i = found << p->shift; i < p->n; i++)
        if (line_at(s, p, i) == line)
            return i;
    return SV_NO_ROW;
}

uint32_t sv_strips_slice(const struct sv_strips *s, size_t row, uint32_t i)
{
    return slice_at(&s->items[row], i);
}

uint32_t sv_strips_before(const struct sv_strips *s, size_t row, int64_t ns)
{
    return s->items[row].n ? count_before(s, &s->items[row], 0, ns) : 0;
}

uint64_t sv_strips_count(const struct sv_strips *s, size_t row)
{
    return s->items[row].n;
}

uint64_t sv_strips_busy_ns(const struct sv_strips *s, size_t row)
{
    const struct strip *p = &s->items[row];
    uint64_t sum = p->blocks ? p->blocks[(size_t)p->n_blocks * p->lines].before_ns : 0;
    for (uint32_t i = p->n_blocks << p->shift; i < p->n; i++)
        if (line_at(s, p, i) == 0)
            sum += lasting(s->trace, slice_at(p, i));
    return sum;
}

/* ---- pixels of a row ---- */

/* What is known of the slices of one line that begin in the current pixel. */
struct line_now {
    uint32_t n, longest, last;
    uint64_t longest_ns, sum_ns;
    int64_t busy_until; /* the end of the last slice before this pixel */
};

struct drawing {
    const struct sv_strips *s;
    const struct strip *p;
    size_t row;
    const struct sv_pixels *px;
    uint32_t first_line, n_lines;
    struct line_now *now;
    struct sv_strip_items *out;
};

static void see(struct line_now *now, uint32_t slice, uint64_t dur_ns)
{
    if (now->n == 0 || dur_ns > now->longest_ns) {
        now->longest = slice;
        now->longest_ns = dur_ns;
    }
}

static void add_slices(struct drawing *d, uint32_t from, uint32_t to)
{
    const struct sv_trace *t = d->s->trace;
    for (uint32_t i = from; i < to; i++) {
        uint32_t slice = slice_at(d->p, i);
        uint32_t line = sv_track_rows_line(d->s->rows, slice) - d->first_line;
        if (line >= d->n_lines)
            continue;
        struct line_now *now = &d->now[line];
        see(now, slice, (uint64_t)t->slices.dur_ns[slice]);
        now->n++;
        now->sum_ns += lasting(t, slice);
        now->last = slice;
    }
}

/* The longest of the blocks [from, to) of one line. */
static void see_blocks(const struct drawing *d, struct line_now *now, uint32_t line, uint32_t from,
                       uint32_t to)
{
    const struct strip *p = d->p;
    for (uint32_t b = from; b < to;) {
        if (b % TOP == 0 && to - b >= TOP) {
            const struct line_top *top = &p->tops[(size_t)(b / TOP) * p->lines + line];
            if (top->longest != SV_NO_ROW)
                see(now, top->longest, top->longest_ns);
            now->n += top->longest != SV_NO_ROW; /* from here on one was seen */
            b += TOP;
            continue;
        }
        const struct line_block *block = &p->blocks[(size_t)b * p->lines + line];
        if (block->longest != SV_NO_ROW)
            see(now, block->longest, block->longest_ns);
        now->n += block->longest != SV_NO_ROW;
        b++;
    }
}

/* Many slices: those at both ends are looked at, whole blocks between them are not. */
static void add_many(struct drawing *d, uint32_t from, uint32_t to)
{
    const struct strip *p = d->p;
    uint32_t first = (from + (1u << p->shift) - 1) >> p->shift, end = to >> p->shift;
    add_slices(d, from, first << p->shift);
    const struct line_block *a = p->blocks + (size_t)first * p->lines + d->first_line,
                            *b = p->blocks + (size_t)end * p->lines + d->first_line;
    for (uint32_t l = 0; l < d->n_lines; l++) {
        uint32_t n = b[l].before - a[l].before, seen = d->now[l].n;
        if (n == 0)
            continue;
        see_blocks(d, &d->now[l], d->first_line + l, first, end);
        d->now[l].n = seen + n;
        d->now[l].sum_ns += b[l].before_ns - a[l].before_ns;
    }
    for (uint32_t l = 0; l < d->n_lines; l++)
        d->now[l].last = SV_NO_ROW;
    add_slices(d, end << p->shift, to);
    for (uint32_t l = 0; l < d->n_lines; l++)
        if (d->now[l].n && d->now[l].last == SV_NO_ROW) {
            uint32_t last = sv_strips_last_before(d->s, d->row, d->first_line + l, end << p->shift);
            d->now[l].last = last == SV_NO_ROW ? d->now[l].longest : slice_at(p, last);
        }
}

static struct sv_strip_item *add_item(struct sv_strip_line *line)
{
    line->items = sv_grow(line->items, &line->cap, line->n + 1, sizeof *line->items);
    return &line->items[line->n++];
}

static uint32_t tail_of(const struct drawing *d, int64_t pixel, int64_t end_ns)
{
    int64_t last = end_ns > INT64_MIN ? sv_pixel_of(d->px, end_ns - 1) : pixel;
    last = last < d->px->right ? last : d->px->right - 1;
    return last > pixel ? (uint32_t)(last - pixel) : 0;
}

/* How much of [from, to) is covered: by what began in it, without what reaches out of it, and by
 * what reached into it. */
static uint8_t cover_of(const struct line_now *now, int64_t from_ns, int64_t to_ns, int64_t end_ns)
{
    uint64_t span = (uint64_t)to_ns - (uint64_t)from_ns, sum = now->sum_ns;
    if (end_ns > to_ns)
        sum -= (uint64_t)end_ns - (uint64_t)to_ns;
    if (now->busy_until > from_ns) {
        int64_t until = now->busy_until < to_ns ? now->busy_until : to_ns;
        sum += (uint64_t)until - (uint64_t)from_ns;
    }
    if (sum >= span)
        return 255;
    wide share = (wide)sum * 255 / (wide)span;
    return share > 0 ? (uint8_t)share : 1;
}

/* The slices [from, to) of the row begin in this pixel. */
static void finish_pixel(struct drawing *d, int64_t pixel, uint32_t from, uint32_t to)
{
    int64_t edge_ns = sv_pixel_edge(d->px, pixel), next_ns = sv_pixel_edge(d->px, pixel + 1);
    if (d->p->blocks && to - from >= 2u << d->p->shift)
        add_many(d, from, to);
    else
        add_slices(d, from, to);
    for (uint32_t l = 0; l < d->n_lines; l++) {
        struct line_now *now = &d->now[l];
        if (now->n == 0)
            continue;
        int64_t end_ns = sv_trace_end_ns(d->s->trace, now->last);
        *add_item(&d->out->lines[l]) =
            (struct sv_strip_item){.pixel = (int32_t)pixel,
                                   .n = now->n,
                                   .longest = now->longest,
                                   .last = now->last,
                                   .tail = tail_of(d, pixel, end_ns),
                                   .cover = cover_of(now, edge_ns, next_ns, end_ns)};
        *now = (struct line_now){.busy_until = end_ns};
    }
}

/* What began before the leftmost pixel and reaches into it. */
static void begin_lines(struct drawing *d, uint32_t at)
{
    int64_t left_ns = sv_pixel_edge(d->px, d->px->left);
    for (uint32_t l = 0; l < d->n_lines; l++) {
        uint32_t before = sv_strips_last_before(d->s, d->row, d->first_line + l, at);
        d->now[l].busy_until = INT64_MIN;
        if (before == SV_NO_ROW)
            continue;
        uint32_t slice = slice_at(d->p, before);
        int64_t end_ns = sv_trace_end_ns(d->s->trace, slice);
        if (end_ns <= left_ns)
            continue;
        d->now[l].busy_until = end_ns;
        *add_item(&d->out->lines[l]) = (struct sv_strip_item){
            .pixel = d->px->left,
            .longest = slice,
            .last = slice,
            .tail = tail_of(d, d->px->left, end_ns),
            .cover =
                cover_of(&d->now[l], left_ns, sv_pixel_edge(d->px, d->px->left + 1), INT64_MIN)};
    }
}

static void begin_items(struct sv_strip_items *out, uint32_t n_lines)
{
    size_t had = out->cap_lines;
    out->lines = sv_grow(out->lines, &out->cap_lines, n_lines, sizeof *out->lines);
    for (size_t l = had; l < out->cap_lines; l++)
        out->lines[l] = (struct sv_strip_line){0};
    out->n_lines = n_lines;
    for (uint32_t l = 0; l < n_lines; l++)
        out->lines[l].n = 0;
}

void sv_strips_row(const struct sv_strips *s, size_t row, const struct sv_pixels *px,
                   uint32_t first_line, uint32_t n_lines, struct sv_strip_items *out)
{
    const struct strip *p = &s->items[row];
    first_line = first_line < p->lines ? first_line : p->lines;
    n_lines = n_lines < p->lines - first_line ? n_lines : p->lines - first_line;
    begin_items(out, n_lines);
    if (n_lines == 0 || px->left >= px->right)
        return;
    struct drawing d = {.s = s,
                        .p = p,
                        .row = row,
                        .px = px,
                        .first_line = first_line,
                        .n_lines = n_lines,
                        .now = sv_alloc(n_lines * sizeof *d.now),
                        .out = out};
    uint32_t at = count_before(s, p, 0, sv_pixel_edge(px, px->left));
    int64_t right_ns = sv_pixel_edge(px, px->right);
    begin_lines(&d, at);
    while (at < p->n && s->trace->slices.ts_ns[slice_at(p, at)] < right_ns) {
        int64_t pixel = sv_pixel_of(px, s->trace->slices.ts_ns[slice_at(p, at)]);
        uint32_t next = count_before(s, p, at, sv_pixel_edge(px, pixel + 1));
        finish_pixel(&d, pixel, at, next);
        at = next;
    }
    free(d.now);
}

void sv_strip_items_fini(struct sv_strip_items *out)
{
    for (size_t l = 0; l < out->cap_lines; l++)
        free(out->lines[l].items);
    free(out->lines);
    *out = (struct sv_strip_items){0};
}

/* ---- counters ---- */

static void add_point(struct sv_strip_points *out, int64_t pixel, double min, double max,
                      double last)
{
    SV_APPEND(out->items, out->n, out->cap) =
        (struct sv_strip_point){(int32_t)pixel, min, max, last};
}

/* What is worse is shown. */
static double worse(double odd, double v)
{
    return isnan(odd) ? odd : v;
}

/* The values [from, to), of one pixel. */
static void add_values(const struct sv_strips *s, struct sv_strip_points *out, int64_t pixel,
                       uint64_t from, uint64_t to)
{
    const double *value = s->trace->counters.value;
    double min = INFINITY, max = -INFINITY, last = 0, odd = 0;
    for (uint64_t i = from; i < to;) {
        const struct counter_block *b = &s->counters[i >> 8];
        if (i % 256 == 0 && to - i >= 256 && !isnan(b->min)) {
            min = fmin(min, b->min);
            max = fmax(max, b->max);
            last = value[i + 255];
            i += 256;
        } else if (isfinite(value[i])) {
            min = fmin(min, value[i]);
            max = fmax(max, value[i]);
            last = value[i++];
        } else {
            odd = worse(odd, value[i++]);
        }
    }
    bool is_odd = !isfinite(odd), ends_odd = !isfinite(value[to - 1]);
    if (is_odd && !ends_odd)
        add_point(out, pixel, odd, odd, odd);
    if (min <= max)
        add_point(out, pixel, min, max, last);
    if (ends_odd)
        add_point(out, pixel, odd, odd, odd);
}

void sv_strips_counter(const struct sv_strips *s, size_t row, const struct sv_pixels *px,
                       struct sv_strip_points *out)
{
    const struct sv_trace *t = s->trace;
    sv_track track = s->rows->items[row].track;
    const struct sv_trace_track *k = &t->tracks[track];
    const int64_t *ts = t->counters.ts_ns;
    uint64_t at = sv_trace_counter_from(t, track, sv_pixel_edge(px, px->left));
    int64_t right_ns = sv_pixel_edge(px, px->right);
    out->n = 0;
    if (at > k->counter_first) {
        double v = t->counters.value[at - 1];
        add_point(out, px->left, v, v, v);
    }
    while (at < k->counter_end && ts[at] < right_ns) {
        int64_t pixel = sv_pixel_of(px, ts[at]), edge_ns = sv_pixel_edge(px, pixel + 1);
        uint64_t next;
        SV_SEARCH(next, middle, at, k->counter_end, ts[middle] < edge_ns);
        next = next > at ? next : at + 1;
        add_values(s, out, pixel, at, next);
        at = next;
    }
}
