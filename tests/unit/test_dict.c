/* The dictionary: interning, track identity, ancestors in hostile trees. */
#include "model/dict.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

TEST(equal_text_gets_the_same_number)
{
    struct sv_dict *d = sv_dict_new();
    char text[32];
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 10000; i++) {
            int n = snprintf(text, sizeof text, "name %u", i);
            CHECK_UINT_EQ(sv_dict_str(d, text, (size_t)n), i + 1);
        }
    CHECK_UINT_EQ(sv_dict_str(d, "", 0), 0);
    CHECK_STR_EQ(sv_dict_text(d, 10000).bytes, "name 9999");
    CHECK_UINT_EQ(sv_dict_find_str(d, "nowhere", 7), 0);
    CHECK(sv_dict_str(d, "a\0b", 3) != sv_dict_str(d, "a", 1));
    sv_dict_free(d);
}

TEST(spaces_keep_equal_pids_apart)
{
    struct sv_dict *d = sv_dict_new();
    sv_track a = sv_dict_thread(d, 0, 1, 1), b = sv_dict_thread(d, 1, 1, 1);
    CHECK(a != b);
    CHECK(sv_dict_process_of(d, a) != sv_dict_process_of(d, b));
    CHECK_UINT_EQ(sv_dict_thread(d, 0, 1, 1), a);
    CHECK_INT_EQ(d->tracks[sv_dict_process_of(d, b)].pid, 1);
    sv_dict_free(d);
}

TEST(children_are_found_by_parent_kind_and_name)
{
    struct sv_dict *d = sv_dict_new();
    sv_str name = sv_dict_cstr(d, "memory");
    sv_track p = sv_dict_process(d, 0, 7);
    sv_track c = sv_dict_child(d, p, SV_TRACK_COUNTER, name);
    CHECK_UINT_EQ(sv_dict_child(d, p, SV_TRACK_COUNTER, name), c);
    CHECK(sv_dict_child(d, p, SV_TRACK_CUSTOM, name) != c);
    CHECK(sv_dict_child(d, 0, SV_TRACK_COUNTER, name) != c);
    CHECK_UINT_EQ(sv_dict_process_of(d, c), p);
    sv_dict_free(d);
}

TEST(a_cycle_of_parents_ends)
{
    struct sv_dict *d = sv_dict_new();
    sv_track a = sv_dict_track(d, 1, NULL), b = sv_dict_track(d, 2, NULL);
    d->tracks[a].parent = b;
    d->tracks[b].parent = a;
    CHECK_UINT_EQ(sv_dict_process_of(d, a), 0);
    sv_dict_free(d);
}

TEST(metadata_is_replaced_not_repeated)
{
    struct sv_dict *d = sv_dict_new();
    sv_dict_set_meta(d, "rank", "1", 1, false);
    sv_dict_set_meta(d, "rank", "2", 1, false);
    CHECK_UINT_EQ(d->n_meta, 1);
    CHECK_STR_EQ(sv_dict_text(d, sv_dict_find_meta(d, "rank")->value).bytes, "2");
    CHECK(sv_dict_find_meta(d, "host") == NULL);
    sv_dict_free(d);
}
