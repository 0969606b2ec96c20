/* The list of formats and the writers that the library shares with it. */
#include "formats/formats.h"
#include "sdk/session/destination.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

TEST(every_format_is_complete)
{
    for (const struct sv_format *const *f = sv_formats; *f; f++) {
        CONTEXT("%s", (*f)->name);
        CHECK(sv_format_named((*f)->name) == *f);
        CHECK((*f)->help && *(*f)->help);
        CHECK(sv_format_reads(*f) || (*f)->writer);
        CHECK(!((*f)->open_source && (*f)->lines));
        CHECK(!sv_format_reads(*f) == !(*f)->probe);
        if ((*f)->writer)
            CHECK((*f)->writer->suffixes && (*f)->writer->suffixes[0]);
        else
            CHECK((*f)->files && (*f)->times && (*f)->lacks && !(*f)->dialects);
        for (const char *const *by = (*f)->covered_by; by && *by; by++)
            CHECK(sv_format_named(*by) && sv_format_named(*by) != *f);
    }
}

/* What `stave convert -o` takes for a format of core/, STAVE_OUT takes, too, and the other way
 * round. */
TEST(the_library_and_the_program_know_the_same_suffixes)
{
    static const char *const packed[] = {"", ".gz", ".zst"};
    static const enum sv_compression means[] = {SV_PLAIN, SV_GZIP, SV_ZSTD};
    for (const struct sv_format *const *f = sv_formats; *f; f++) {
        bool is_shared = (*f)->writer == &sv_perfetto_writer || (*f)->writer == &sv_chrome_writer;
        for (const char *const *s = (*f)->writer ? (*f)->writer->suffixes : NULL; s && *s; s++) {
            for (size_t k = 0; k < TEST_COUNT(packed); k++) {
                char path[64], text[SV_DESTINATION_TEXT];
                enum sv_compression c = SV_PLAIN;
                snprintf(path, sizeof path, "a.b%s%s", *s, packed[k]);
                CONTEXT("%s", path);
                CHECK(sv_format_for_path(path, &c) == *f);
                CHECK_INT_EQ(c, means[k]);
                CHECK_UINT_EQ(sv_format_stem(path), 3);
                const char *why = sv_destination_check(path, "", text, sizeof text);
                CHECK(is_shared == !why);
                if (is_shared)
                    CHECK(strstr(sv_destination_check("x.none", "", text, sizeof text), *s));
            }
        }
    }
}

TEST(paths_without_a_format)
{
    static const char *const paths[] = {"a", ".json", "a.unknown", "a.gz", "json", "a.json.bz2"};
    enum sv_compression c;
    for (size_t i = 0; i < TEST_COUNT(paths); i++) {
        CONTEXT("%s", paths[i]);
        CHECK(!sv_format_for_path(paths[i], &c));
    }
    CHECK_UINT_EQ(sv_format_stem("a.gz"), 1);
    CHECK_UINT_EQ(sv_format_stem("d/.json"), 7);
    CHECK_UINT_EQ(sv_format_stem("d.txt/a"), 7);
}
