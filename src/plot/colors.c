/* Which colour a slice gets. Asked by the time line, the flame graph and the terminal view. */
#include "plot/colors.h"

#include "core/base/map.h"
#include "subjects/io/words.h"
#include "why/words.h"

#include <math.h>
#include <stdlib.h>

const uint32_t sv_palette[SV_N_COLORS + 1] = {0x56b4e9, 0xe69f00, 0x009e73, 0xf0e442,
                                              0xcc79a7, 0x0072b2, 0xd55e00, SV_COLOR_GREY};

/* The strings with the largest counts get colours of their own, by (count, text). */
static void rank_keys(struct sv_colors *c, const uint64_t *counts)
{
    const struct sv_dict *d = c->trace->dict;
    c->n_keys = 0;
    c->has_others = false;
    for (;;) {
        sv_str best = 0;
        for (sv_str s = 1; s < d->n_strings; s++) {
            bool is_taken = false;
            for (size_t i = 0; i < c->n_keys; i++)
                is_taken |= c->keys[i] == s;
            if (!is_taken && counts[s] > counts[best])
                best = s;
        }
        if (best == 0)
            return;
        if (c->n_keys == SV_N_COLORS) {
            c->has_others = true;
            return;
        }
        c->keys[c->n_keys++] = best;
    }
}

static void color_by_hash(struct sv_colors *c)
{
    const struct sv_dict *d = c->trace->dict;
    for (sv_str s = 0; s < d->n_strings; s++) {
        struct sv_text text = sv_dict_text(d, s);
        c->of_string[s] = (uint8_t)(sv_hash_bytes(text.bytes, text.len, 0) % SV_N_COLORS);
    }
}

/* Those with a colour of their own, the others grey. */
static void color_keys(struct sv_colors *c, const uint64_t *counts)
{
    for (sv_str s = 0; s < c->trace->dict->n_strings; s++)
        if (counts[s] > 0)
            c->of_string[s] = SV_N_COLORS;
    for (size_t i = 0; i < c->n_keys; i++)
        c->of_string[c->keys[i]] = (uint8_t)i;
}

/* What the trace counts by a string of its slices, what is left out excepted. */
struct shares {
    uint64_t *n_by_category; /* instants included: they have colours, too */
    uint64_t *lasting;       /* by category: slices that last */
    uint64_t *time_by_name;  /* of those, at least 1 */
    uint64_t n_lasting;
    size_t n_names;
};

static struct shares count_shares(const struct sv_colors *c, const bool *is_left_out)
{
    const struct sv_trace *t = c->trace;
    size_t n = (size_t)t->dict->n_strings + 1;
    struct shares s = {sv_alloc(n * sizeof(uint64_t)), sv_alloc(n * sizeof(uint64_t)),
                       sv_alloc(n * sizeof(uint64_t)), 0, 0};
    for (uint64_t row = 0; row < t->slices.n; row++) {
        sv_str cat = t->slices.cat[row], name = t->slices.name[row];
        if (is_left_out && is_left_out[cat])
            continue;
        if (cat == c->states || cat == c->waits) {
            s.n_lasting++;
            continue;
        }
        s.n_by_category[cat]++;
        if (t->slices.kind[row] == SV_INSTANT)
            continue;
        uint64_t dur = (uint64_t)t->slices.dur_ns[row];
        s.n_names += s.time_by_name[name] == 0;
        s.time_by_name[name] += t->slices.dur_ns[row] == SV_UNFINISHED ? 1 : (dur >> 10) + 1;
        s.lasting[cat]++;
        s.n_lasting++;
    }
    s.n_by_category[0] = s.time_by_name[0] = 0;
    return s;
}

/* Does nearly all that lasts have one category? Then categories would paint the trace in one
 * colour. */
static bool is_of_one_category(const struct sv_colors *c, const struct shares *s)
{
    for (size_t i = 0; i < c->n_keys; i++)
        if (s->lasting[c->keys[i]] * 10 >= s->n_lasting * 8)
            return true;
    return c->n_keys <= 1;
}

#define NAMES_MAX 24u /* with more names, the others would be most of the picture */

/* Few names have colours of their own; many share them by chance. */
static void color_names(struct sv_colors *c, const struct shares *s)
{
    bool has_categories = c->n_keys > 1;
    size_t most = has_categories ? NAMES_MAX : SV_N_COLORS;
    c->n_keys = 0;
    c->has_others = false;
    if (s->n_names > most)
        return;
    rank_keys(c, s->time_by_name);
    color_keys(c, s->time_by_name);
}

/* ---- colours in an image ---- */

/* Numbers of strings: those with a colour of their own, then how many they are, whether there are
 * others, and whether they are categories. */
enum { N_KEYS = SV_N_COLORS, HAS_OTHERS, BY_CATEGORY, N_WORDS };

void sv_colors_put(const struct sv_colors *c, struct sv_image_writer *w)
{
    uint32_t *words = sv_image_add_new(w, "colors.2", N_WORDS * sizeof *words, sizeof *words);
    memcpy(words, c->keys, sizeof c->keys);
    words[N_KEYS] = (uint32_t)c->n_keys;
    words[HAS_OTHERS] = c->has_others;
    words[BY_CATEGORY] = c->by_category;
    sv_image_add(w, "colors.of", c->of_string, c->n_strings, 1);
}

static bool take_colors(struct sv_colors *c)
{
    uint64_t n_words, n;
    const struct sv_image *im = sv_trace_image(c->trace);
    const uint32_t *words = sv_image_find(im, "colors.2", sizeof *words, &n_words);
    const uint8_t *of_string = sv_image_find(im, "colors.of", 1, &n);
    if (!words || !of_string || n_words != N_WORDS || n != c->n_strings ||
        words[N_KEYS] > SV_N_COLORS || words[HAS_OTHERS] > 1 || words[BY_CATEGORY] > 1)
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (of_string[i] > SV_N_COLORS)
            return false;
    for (size_t i = 0; i < SV_N_COLORS; i++)
        if (words[i] >= c->n_strings)
            return false;
    memcpy(c->of_string, of_string, (size_t)n);
    memcpy(c->keys, words, sizeof c->keys);
    c->n_keys = words[N_KEYS];
    c->has_others = words[HAS_OTHERS];
    c->by_category = words[BY_CATEGORY];
    return true;
}

/* ---- states and waits ---- */

enum { ORANGE = 1, GREEN = 2, YELLOW = 3, PURPLE = 4, BLUE = 5, VERMILION = 6, GREY = SV_N_COLORS };

/* Names of states, and reasons of waits. */
static const struct {
    const char *name;
    uint8_t color;
} fixed[] = {
    {"Running", GREEN}, {"Runnable", VERMILION}, {"Preempted", ORANGE}, {"Blocked on I/O", YELLOW},
    {"cpu", VERMILION}, {"disk", YELLOW},        {"fault", YELLOW},     {"lock", PURPLE},
    {"gil", PURPLE},    {"pipe", BLUE},          {"socket", BLUE},      {"child", BLUE},
    {"data", BLUE},     {"gpu", BLUE},           {"rank", BLUE}};

const struct sv_color_legend sv_color_of_states[] = {
    {"running", GREEN},    {"waits for a CPU", VERMILION},
    {"preempted", ORANGE}, {"disk, page", YELLOW},
    {"lock", PURPLE},      {"another thread, process or device", BLUE},
    {"sleeps", GREY},      {NULL, 0}};

unsigned sv_color_of_state(const char *name)
{
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (strcmp(fixed[i].name, name) == 0)
            return fixed[i].color;
    return GREY;
}

static sv_str category(const struct sv_trace *t, const char *word)
{
    sv_str s = sv_dict_find_str(t->dict, word, strlen(word));
    return s ? s : UINT32_MAX;
}

static void fix_states(struct sv_colors *c)
{
    const struct sv_dict *d = c->trace->dict;
    c->states = category(c->trace, SV_CAT_THREAD_STATE);
    c->waits = category(c->trace, SV_CAT_OFFCPU_SAMPLE);
    if (c->states == UINT32_MAX && c->waits == UINT32_MAX)
        return;
    c->of_state = sv_alloc((size_t)d->n_strings + 1);
    memset(c->of_state, GREY, d->n_strings);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        sv_str s = sv_dict_find_str(d, fixed[i].name, strlen(fixed[i].name));
        if (s)
            c->of_state[s] = fixed[i].color;
    }
}

/* ---- all ---- */

void sv_colors_init(struct sv_colors *c, const struct sv_trace *t, const bool *is_left_out)
{
    const struct sv_dict *d = t->dict;
    *c = (struct sv_colors){
        .trace = t, .of_string = sv_alloc((size_t)d->n_strings + 1), .n_strings = d->n_strings};
    fix_states(c);
    if (!is_left_out && take_colors(c))
        return;
    struct shares shares = count_shares(c, is_left_out);
    rank_keys(c, shares.n_by_category);
    c->by_category = !is_of_one_category(c, &shares);
    color_by_hash(c);
    if (c->by_category)
        color_keys(c, shares.n_by_category);
    else
        color_names(c, &shares);
    free(shares.n_by_category);
    free(shares.lasting);
    free(shares.time_by_name);
}

void sv_colors_fini(struct sv_colors *c)
{
    free(c->of_string);
    free(c->of_state);
    *c = (struct sv_colors){0};
}

static double channel(uint32_t color, unsigned shift)
{
    return (double)(color >> shift & 255);
}

uint32_t sv_color_ink_on(uint32_t color)
{
    double light = 0.299 * channel(color, 16) + 0.587 * channel(color, 8) +
                   0.114 * channel(color, 0);
    return light < 125 ? 0xffffff : 0x000000;
}

uint32_t sv_color_mix(uint32_t a, uint32_t b, double share_of_b)
{
    uint32_t out = 0;
    double share = fmin(fmax(share_of_b, 0), 1);
    for (unsigned shift = 0; shift <= 16; shift += 8) {
        double v = channel(a, shift) + (channel(b, shift) - channel(a, shift)) * share;
        out |= (uint32_t)lround(v) << shift;
    }
    return out;
}

uint32_t sv_color_diverging(double x)
{
    return sv_color_mix(0xf2f2f2, x < 0 ? 0x0072b2 : 0xd55e00, fabs(x));
}

unsigned sv_color_calm(uint64_t n_slices, uint64_t longest_ns, double pixel_ns)
{
    double longest = (double)longest_ns;
    if (n_slices <= 1 || longest * 4 >= pixel_ns)
        return 0;
    return longest * 16 >= pixel_ns ? 1 : longest * 64 >= pixel_ns ? 2 : SV_CALMEST;
}

unsigned sv_color_shade(uint8_t cover)
{
    return cover * SV_SHADES / 256;
}

uint32_t sv_color_toned(uint32_t color, unsigned calm, unsigned shade)
{
    static const double greyed[] = {0, 0.45, 0.68, 0.78};
    double strength = 0.3 +
                      0.7 * pow((double)shade / (SV_SHADES - 1), 0.75); /* a little is seen, too */
    return sv_color_mix(0xffffff, sv_color_mix(color, 0xaab6c2, greyed[calm]), strength);
}
