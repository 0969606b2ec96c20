/* The layout, measured: a full-width window over a whole trace, after it was loaded.
 *
 *     layout FILE [PIXELS]    `name value unit` lines: the first window with its index, another
 *                             one, and a hundredth of the trace
 *
 * CPU time, the best of five, since the machine may be shared. */
#include "plot/layout.h"
#include "files/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 5

static double milliseconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec * 1e-6;
}

static double smaller(double best, double value)
{
    return best == 0 || value < best ? value : best;
}

static double lay_out(const struct sv_layout_index *x, struct sv_layout_window w, size_t *n_rects)
{
    struct sv_layout l;
    double start = milliseconds();
    sv_layout_init(&l, x, &w);
    double took = milliseconds() - start;
    *n_rects = l.n_rects;
    sv_layout_fini(&l);
    return took;
}

int main(int argc, char **argv)
{
    struct sv_loaded loaded;
    struct sv_err err = {0};
    double first = 0, again = 0, zoomed = 0, width = argc > 2 ? strtod(argv[2], NULL) : 1920;
    size_t n_rects = 0, n_zoomed = 0;
    if (argc < 2) {
        fprintf(stderr, "usage: layout FILE [PIXELS]\n");
        return 2;
    }
    if (sv_load(argv[1], (struct sv_load_how[]){{.index = SV_INDEX_NOT_USED}}, &loaded, &err) < 0) {
        fprintf(stderr, "layout: %s\n", err.msg);
        return 1;
    }
    const struct sv_trace *t = loaded.trace;
    int64_t span = t->last_ns - t->first_ns, middle = t->first_ns + span / 2;
    struct sv_layout_window whole = {.width = width};
    struct sv_layout_window part = {
        .from_ns = middle, .to_ns = middle + span / 100 + 1, .width = width};
    for (int i = 0; i < ROUNDS; i++) {
        double start = milliseconds();
        struct sv_layout_index *x = sv_layout_index_new(t);
        double index = milliseconds() - start;
        first = smaller(first, index + lay_out(x, whole, &n_rects));
        again = smaller(again, lay_out(x, whole, &n_rects));
        zoomed = smaller(zoomed, lay_out(x, part, &n_zoomed));
        sv_layout_index_free(x);
    }
    fprintf(stderr, "%" PRIu64 " slices on %.0f pixels: %zu rectangles, a hundredth of them: %zu\n",
            t->slices.n, width, n_rects, n_zoomed);
    printf("layout_first %.2f ms\nlayout_again %.2f ms\nlayout_zoomed %.2f ms\n", first, again,
           zoomed);
    sv_loaded_free(&loaded);
    return 0;
}
