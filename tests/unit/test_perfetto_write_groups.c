/* The Perfetto writer: in compressed blocks packets are grouped by sequence; what is on one track
 * keeps its order. */
#include "tests/unit/pfrig.h"

enum { ROUNDS = 12 }; /* more than a track has on the shared sequence */

/* Two threads and a track, in turn; the track's events are all at one time. The text of the
 * events. */
static char *written(enum sv_compression compression)
{
    char name[16];
    start();
    g.options.compression = compression;
    sv_track p = process(50, 7, "p"), a = thread(51, p, 8, "a"), b = thread(52, p, 9, "b"),
             c = track(53, SV_TRACK_CUSTOM, p, "c");
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof name, "i%d", i);
        begin(1000 + i, a, "work", NULL);
        begin(1000 + i, b, "work", NULL);
        done(event(SV_INSTANT, 1000, c, name, NULL));
        end(1000 + i, a);
        end(1001 + i, b);
    }
    char *text = strdup(events_only(finish()));
    stop();
    return text;
}

/* The lines of one track, which is the second word. */
static void lines_of(const char *text, const char *uuid, struct sv_buf *out)
{
    sv_buf_init(out, (size_t)1 << 20);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        if (strncmp(strchr(line, ' ') + 1, uuid, strlen(uuid)) == 0)
            sv_buf_add(out, line, (size_t)(strchr(line, '\n') + 1 - line));
}

static unsigned changes_of_track(const char *text)
{
    unsigned n = 0;
    char before[8] = "", uuid[8];
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        REQUIRE(sscanf(line, "%*d %7s", uuid) == 1);
        n += strcmp(before, uuid) != 0;
        memcpy(before, uuid, sizeof before);
    }
    return n;
}

TEST(sequences_are_together_and_tracks_keep_their_order)
{
    static const enum sv_compression packed[] = {
        SV_GZIP,
#ifdef SV_HAVE_ZSTD
        SV_ZSTD,
#endif
    };
    static const char *const tracks[] = {"51 ", "52 ", "53 "};
    char *plain = written(SV_PLAIN);
    CHECK_UINT_EQ(changes_of_track(plain), 5 * ROUNDS);
    for (size_t i = 0; i < TEST_COUNT(packed); i++) {
        CONTEXT("compression %d", (int)packed[i]);
        char *grouped = written(packed[i]);
        CHECK_UINT_EQ(strlen(grouped), strlen(plain));
        CHECK_UINT_EQ(changes_of_track(grouped),
                      4); /* what 53 has on the shared sequence, 51, 52, 53's own */
        for (size_t t = 0; t < TEST_COUNT(tracks); t++) {
            struct sv_buf x, y;
            lines_of(plain, tracks[t], &x);
            lines_of(grouped, tracks[t], &y);
            CHECK_STR_EQ(sv_buf_cstr(&y), sv_buf_cstr(&x));
            sv_buf_fini(&x);
            sv_buf_fini(&y);
        }
        free(grouped);
    }
    free(plain);
}
