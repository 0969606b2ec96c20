/* Does a stream have the shape that its source states? A stage for tests and fuzz targets:
 *
 *     struct shape_check c;
 *     sv_pump(source, shape_check_sink(&c, source->gives, next), …);
 *     CHECK_STR_EQ(shape_check_end(&c), "");
 *
 * Ends without a begin are damage, not shape, and are left out. */
#ifndef TESTS_HARNESS_SHAPE_CHECK_H
#define TESTS_HARNESS_SHAPE_CHECK_H

#include "core/stream/stream.h"

struct shape_item;

struct shape_check {
    struct sv_sink sink;
    struct sv_sink *next; /* or NULL */
    unsigned gives;
    int64_t last_ns;
    bool has_last;
    struct shape_item *items; /* begins and ends, as they came */
    size_t n, cap;
    size_t *open; /* by track: the item of the newest open begin + 1 */
    size_t n_tracks, cap_tracks;
    uint64_t n_events;
    char wrong[200];
};

struct sv_sink *shape_check_sink(struct shape_check *c, unsigned gives, struct sv_sink *next);
void shape_check_see(struct shape_check *c, const struct sv_event *events, size_t n);
const char *shape_check_end(struct shape_check *c); /* what is wrong first, "" when nothing is */

#endif
