/* The dictionary: interning, track identity, ancestors in hostile trees. */
#include "core/base/map.h"
#include "core/stream/dict.h"
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

TEST(a_forgotten_track_gives_its_number_to_another)
{
    struct sv_dict *d = sv_dict_new();
    sv_track p = sv_dict_process(d, 0, 7), t = sv_dict_thread(d, 0, 7, 8);
    int32_t revision = d->tracks[t].revision;
    sv_dict_describe(d, p, "one two", 7);
    CHECK_STR_EQ(sv_dict_text(d, d->tracks[p].desc).bytes, "one two");
    sv_dict_forget(d, t);
    sv_dict_forget(d, p);
    sv_dict_forget(d, p); /* twice is once */
    sv_dict_forget(d, 0);
    sv_dict_forget(d, 12345);
    CHECK_UINT_EQ(sv_dict_find_track(d, sv_uuid_thread(0, 7, 8)), 0);
    uint32_t n = d->n_tracks;
    sv_track again = sv_dict_thread(d, 0, 7, 8);
    CHECK_UINT_EQ(d->n_tracks, n);
    CHECK(again == t || again == p);
    CHECK_INT_EQ(d->tracks[again].tid, 8);
    CHECK(d->tracks[t].revision > revision); /* caches by number can see it */
    CHECK_UINT_EQ(d->tracks[sv_dict_process_of(d, again)].desc, 0);
    CHECK_UINT_EQ(sv_dict_track(d, 99, NULL), n);
    sv_dict_free(d);
}

TEST(descriptions_go_with_their_tracks)
{
    struct sv_dict *d = sv_dict_new();
    char text[64];
    sv_track t = sv_dict_process(d, 0, 1);
    for (unsigned i = 0; i < 100000; i++) {
        int n = snprintf(text, sizeof text, "worker --number %u", i);
        sv_dict_describe(d, t, text, (size_t)n);
        if (i % 3 == 0) {
            sv_dict_forget(d, t);
            t = sv_dict_process(d, 0, i);
            sv_dict_describe(d, t, text, (size_t)n);
        }
    }
    CHECK(d->n_strings <= 4 && d->n_tracks == 2);
    CHECK_STR_EQ(sv_dict_text(d, d->tracks[t].desc).bytes, text);
    CHECK(sv_dict_bytes(d) < 200000);
    sv_dict_describe(d, t, "", 0);
    CHECK_UINT_EQ(d->tracks[t].desc, 0);
    /* A text that is shared stays. */
    sv_str shared = sv_dict_cstr(d, "shared");
    d->tracks[t].desc = shared;
    sv_dict_describe(d, t, "own", 3);
    CHECK_STR_EQ(sv_dict_text(d, shared).bytes, "shared");
    sv_dict_free(d);
}

/* Texts whose hashes agree in the bits that choose the place, as a hostile file may hold them. */
TEST(strings_that_were_chosen_to_meet)
{
    enum { N = 2500, BITS = 0x1fff };
    static uint64_t texts[N];
    static sv_str ids[N];
    struct sv_dict *d = sv_dict_new();
    size_t n = 0;
    for (uint64_t i = 0; n < N; i++) {
        if ((sv_hash_bytes(&i, sizeof i, 0) & BITS) != 7)
            continue;
        texts[n] = i;
        ids[n++] = sv_dict_str(d, (const char *)&i, sizeof i);
    }
    for (size_t i = 0; i < N; i++) {
        const char *text = (const char *)&texts[i];
        if (!CHECK_UINT_EQ(sv_dict_find_str(d, text, 8), ids[i]) ||
            !CHECK_UINT_EQ(sv_dict_str(d, text, 8), ids[i]) ||
            !CHECK_MEM_EQ(sv_dict_text(d, ids[i]).bytes, text, 8))
            break;
    }
    CHECK_UINT_EQ(d->n_strings, N + 1);
    sv_dict_free(d);
}

TEST(metadata_is_found_by_its_key)
{
    struct sv_dict *d = sv_dict_new();
    char key[16];
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof key, "k%d", i % 2000);
        sv_dict_set_meta(d, key, i < 2000 ? "old" : "new", 3, false);
    }
    CHECK_UINT_EQ(d->n_meta, 2000);
    CHECK_STR_EQ(sv_dict_text(d, sv_dict_find_meta(d, "k999")->value).bytes, "new");
    CHECK_STR_EQ(sv_dict_text(d, sv_dict_find_meta(d, "k1000")->value).bytes, "old");
    CHECK(!sv_dict_find_meta(d, "k2000"));
    sv_dict_free(d);
}
