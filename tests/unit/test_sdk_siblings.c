/* Slices of one track that cross each other go to sibling lanes; those that nest or stand apart stay. */
#include "sdk/siblings.h"
#include "tests/harness/test.h"

TEST(crossing_slices_get_lanes)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_siblings s = {0};
    sv_track track = sv_dict_child(dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(dict, "stream"));
    static const struct {
        int64_t start, end;
        int lane;
    } rows[] = {
        {100, 200, 0}, {200, 300, 0}, {120, 150, 0}, /* inside */
        {50, 350, 0},                                /* around: pushed after its inner ones */
        {340, 400, 1},                               /* crosses the last */
        {380, 420, 0},                               /* crosses that one, but not the first lane */
        {500, 600, 0}, {500, 700, 1},                /* same start, the longer one later */
        {500, 550, 0},
    };
    sv_track lanes[2] = {track, 0};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        sv_track got = sv_siblings_choose(&s, dict, track, rows[i].start, rows[i].end);
        int lane = rows[i].lane;
        if (lane && !lanes[lane])
            lanes[lane] = got;
        CHECK_UINT_EQ(got, lanes[lane]);
    }
    CHECK_INT_EQ(dict->tracks[lanes[1]].kind, SV_TRACK_LANE);
    CHECK_UINT_EQ(dict->tracks[lanes[1]].parent, track);
    sv_siblings_fini(&s);
    sv_dict_free(dict);
}
