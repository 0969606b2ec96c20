/* What any sender may send to `stave listen`: greetings, frames in pieces of any size, and the
 * spool that keeps them whatever happens. */
#include "files/open.h"
#include "listen/sender.h"
#include "sdk/write/writer.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- greetings ---- */

static enum sv_greeted greet(const char *text, size_t len, size_t step, const char *token)
{
    struct sv_greeting g = {0};
    size_t used;
    for (size_t at = 0; at < len; at += step) {
        size_t n = len - at < step ? len - at : step;
        enum sv_greeted answer = sv_greeting_take(&g, (const uint8_t *)text + at, n, token, &used);
        if (answer != SV_GREETED_MORE)
            return answer;
    }
    return SV_GREETED_MORE;
}

TEST(rows_of_greetings)
{
    static const struct {
        const char *text;
        size_t len;
        const char *token;
        enum sv_greeted answer;
    } rows[] = {
#define ROW(text, token, answer) {text, sizeof text - 1, token, answer}
        ROW("STAVE 2 \n", NULL, SV_GREETED_OK),
        ROW("STAVE 2 anything\n", NULL, SV_GREETED_OK),
        ROW("STAVE 2 word\n", "word", SV_GREETED_OK),
        ROW("STAVE 2 word", "word", SV_GREETED_MORE),
        ROW("STAVE 2 \n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 w\n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 wor\n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 wore\n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 Word\n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 words\n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 word\0\n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 word\0more\n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 word \n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 2 word\r\n", "word", SV_GREETED_TOKEN),
        ROW("STAVE 1 word\n", "word", SV_GREETED_VERSION),
        ROW("STAVE 22 word\n", "word", SV_GREETED_VERSION),
        ROW("STAVE 2\n", NULL, SV_GREETED_VERSION),
        ROW("STAVE\n", NULL, SV_GREETED_WRONG),
        ROW("stave 2 word\n", "word", SV_GREETED_WRONG),
        ROW("GET / HTTP/1.1\r\n", NULL, SV_GREETED_WRONG),
        ROW("\n", NULL, SV_GREETED_WRONG),
#undef ROW
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        for (size_t step = 1; step <= rows[i].len; step++) {
            CONTEXT("row %zu, in pieces of %zu", i, step);
            CHECK_INT_EQ(greet(rows[i].text, rows[i].len, step, rows[i].token), rows[i].answer);
        }
    }
}

TEST(a_greeting_has_an_end)
{
    char text[4096];
    memset(text, 'x', sizeof text);
    CHECK_INT_EQ(greet(text, sizeof text, 7, NULL), SV_GREETED_WRONG);
    memcpy(text, SV_GREETING, sizeof SV_GREETING - 1);
    CHECK_INT_EQ(greet(text, sizeof text, 7, NULL), SV_GREETED_WRONG);
}

TEST(a_token_of_every_length)
{
    char token[SV_TOKEN_MAX + 1] = "", said[2 * SV_TOKEN_MAX];
    memset(said, 'a', sizeof said);
    for (size_t n = 0; n <= SV_TOKEN_MAX; n++) {
        memset(token, 'a', n);
        CHECK(sv_token_equal(token, said, n));
        CHECK(!sv_token_equal(token, said, n + 1));
        CHECK(n == 0 || !sv_token_equal(token, said, n - 1));
        for (size_t i = 0; i < n; i += 13) {
            said[i] = 'b';
            CHECK(!sv_token_equal(token, said, n));
            said[i] = 'a';
        }
    }
    CHECK(!sv_token_equal(token, said, sizeof said));
}

/* ---- frames ---- */

struct rig {
    int fd;
    struct sv_spool spool;
    struct sv_stream stream;
};

static void rig_open(struct rig *r, uint64_t limit)
{
    *r = (struct rig){.fd = memfd_create("spool", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    REQUIRE(r->fd >= 0);
    REQUIRE(sv_spool_begin(&r->spool, r->fd, limit, &(struct sv_output_choice){0}, NULL) == 0);
    REQUIRE(sv_spool_add(&r->spool, "somebody", SV_SPOOL_PERFETTO, &r->stream.spooled));
}

/* What the file says about its only sender: events in whole frames, events lost, bytes of
 * frames. */
struct seen {
    uint64_t events, lost, bytes;
    uint32_t cause;
    size_t senders;
};

static struct seen look(int fd)
{
    struct sv_spool_view v;
    struct sv_spool_frames f = {0};
    struct seen s = {0};
    if (sv_spool_look(fd, &v, NULL) < 0)
        return s;
    s.senders = v.n;
    if (v.n > 0 && CHECK_INT_EQ(sv_spool_read(&v, 0, &f, NULL), 0)) {
        s.events = f.events;
        s.lost = f.lost;
        s.cause = v.streams[0].slot.cause;
        for (size_t i = 0; i < f.n; i++) {
            CHECK(f.pieces[i].at + f.pieces[i].bytes <= (uint64_t)lseek(fd, 0, SEEK_END));
            s.bytes += f.pieces[i].bytes;
        }
    }
    sv_spool_frames_fini(&f);
    sv_spool_view_fini(&v);
    return s;
}

/* Frame k has k * 5 bytes and k + 1 events; the last one is empty. */
enum { FRAMES = 6, EVENTS = 21, BYTES = 75 };
static size_t make_stream(uint8_t *to)
{
    uint8_t *at = to;
    struct sv_frame f = {0};
    for (uint64_t k = 0; k <= FRAMES; k++) {
        f.bytes = k < FRAMES ? k * 5 : 0;
        f.events += k < FRAMES ? k + 1 : 0;
        f.flags = k < FRAMES ? 0 : SV_FRAME_LAST;
        sv_frame_put(at, &f);
        memset(at + SV_FRAME_HEAD, (int)k, f.bytes);
        at += SV_FRAME_HEAD + f.bytes;
    }
    return (size_t)(at - to);
}

static enum sv_taken feed(struct rig *r, const uint8_t *bytes, size_t n, size_t step)
{
    enum sv_taken taken = SV_TAKEN_SOME;
    for (size_t at = 0; at < n && taken == SV_TAKEN_SOME; at += step)
        taken = sv_stream_take(&r->stream, &r->spool, bytes + at, n - at < step ? n - at : step);
    return taken;
}

/* What a frame's head says: a slice counts once, and what was lost before it was sent counts,
 * too. */
TEST(events_of_a_frame)
{
    const struct sv_arg five = {.type = SV_ARG_INT, .i = 5}, minus = {.type = SV_ARG_INT, .i = -5};
    const struct sv_event events[] = {
        {.kind = SV_BEGIN},
        {.kind = SV_END},
        {.kind = SV_INSTANT, .n_args = 1, .args = &five},
        {.kind = SV_SLICE},
        {.kind = SV_COUNTER},
        {.kind = SV_LOSS, .n_args = 1, .args = &five},
        {.kind = SV_LOSS, .n_args = 1, .args = &minus},
        {.kind = SV_LOSS},
    };
    CHECK_UINT_EQ(sv_stream_count(events, TEST_COUNT(events)), 9);
    CHECK_UINT_EQ(sv_stream_count(events, 2), 1);
    CHECK_UINT_EQ(sv_stream_count(events, 0), 0);
}

/* The whole stream, cut at every byte, in pieces of every size: what came is there or counted. */
TEST(law_a_stream_cut_anywhere)
{
    uint8_t bytes[512];
    size_t n = make_stream(bytes);
    for (size_t cut = 0; cut <= n; cut++) {
        uint64_t whole = 0, heads = 0; /* events in whole frames; in frames whose head came */
        size_t taken = 0;
        struct sv_frames f = {0};
        size_t used;
        for (size_t at = 0; at < cut || f.is_open; at += used) {
            enum sv_frames_step step = sv_frames_next(&f, bytes + at, cut - at, &used);
            if (step == SV_FRAMES_HEAD)
                heads = f.frame.events;
            if (step == SV_FRAMES_WHOLE) {
                whole = f.events;
                taken = at + used;
            }
            if (step == SV_FRAMES_MORE)
                break;
        }
        for (size_t step = 1; step <= 40; step += step < 5 ? 1 : 7) {
            CONTEXT("cut at %zu, in pieces of %zu", cut, step);
            struct rig r;
            rig_open(&r, UINT64_MAX);
            CHECK_INT_EQ(feed(&r, bytes, cut, step), cut == n ? SV_TAKEN_LAST : SV_TAKEN_SOME);
            struct seen killed = look(r.fd); /* as if the listener were killed here */
            sv_stream_cut(&r.stream, &r.spool, SV_SPOOL_STOP);
            struct seen stopped = look(r.fd);
            sv_stream_cut(&r.stream, &r.spool, SV_SPOOL_CUT);
            struct seen ended = look(r.fd);
            CHECK_UINT_EQ(killed.events, whole);
            CHECK_UINT_EQ(killed.lost, 0); /* the sender has no answer, and keeps it */
            CHECK_UINT_EQ(stopped.events, whole);
            CHECK_UINT_EQ(stopped.lost, 0);
            CHECK_UINT_EQ(ended.events, whole);
            CHECK_UINT_EQ(ended.lost, heads - whole);
            CHECK_UINT_EQ(ended.cause, cut == n ? SV_SPOOL_WHOLE : SV_SPOOL_CUT);
            CHECK_UINT_EQ(r.stream.taken, taken);
            close(r.fd);
        }
    }
    struct rig r;
    rig_open(&r, UINT64_MAX);
    feed(&r, bytes, n, n);
    struct seen all = look(r.fd);
    CHECK_UINT_EQ(all.events, EVENTS);
    CHECK_UINT_EQ(all.bytes, BYTES);
    CHECK_UINT_EQ(r.stream.taken, n);
    close(r.fd);
}

/* At every limit the file stays below it, and every event is in it or counted in it. */
TEST(law_a_spool_of_every_size)
{
    uint8_t bytes[512];
    size_t n = make_stream(bytes);
    size_t least = SV_SPOOL_HEADER + sizeof(struct sv_spool_record) + sizeof(struct sv_spool_slot);
    uint64_t before = 0;
    for (size_t limit = least; limit < least + 1024; limit += 7) {
        for (size_t step = 1; step <= n; step += step < 4 ? 1 : step < n - 1 ? n - 5 : 1) {
            CONTEXT("limit %zu, in pieces of %zu", limit, step);
            struct rig r;
            rig_open(&r, limit);
            CHECK_INT_EQ(feed(&r, bytes, n, step), SV_TAKEN_LAST);
            struct seen s = look(r.fd);
            CHECK_UINT_EQ(s.events + s.lost, EVENTS);
            CHECK_UINT_EQ(s.cause, s.lost ? SV_SPOOL_LIMIT : SV_SPOOL_WHOLE);
            CHECK_UINT_EQ(r.stream.taken, n); /* the sender continues */
            CHECK((size_t)lseek(r.fd, 0, SEEK_END) <= limit);
            if (step == n) {
                CHECK(s.events >= before);
                before = s.events;
            }
            close(r.fd);
        }
    }
    CHECK_UINT_EQ(before, EVENTS);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What a later reader relates clocks by. */
TEST(a_spool_says_when_it_began)
{
    struct rig r;
    struct sv_spool_header h;
    /* Not where a second begins: there it makes no difference what is done to nanoseconds. */
    while (clock_ns(CLOCK_BOOTTIME) % 1000000000 < 1000000) {}
    int64_t boot = clock_ns(CLOCK_BOOTTIME), wall = clock_ns(CLOCK_REALTIME);
    rig_open(&r, UINT64_MAX);
    int64_t boot_end = clock_ns(CLOCK_BOOTTIME), wall_end = clock_ns(CLOCK_REALTIME);
    REQUIRE(pread(r.fd, &h, sizeof h, 0) == (ssize_t)sizeof h);
    CHECK(boot <= h.boot_ns && h.boot_ns <= boot_end);
    CHECK(wall_end < wall || (wall <= h.wall_ns && h.wall_ns <= wall_end)); /* it may be set */
    close(r.fd);
}

/* A sealed file takes no more bytes, as on a full disk; what it has can be changed. */
TEST(a_write_that_fails_is_a_loss)
{
    uint8_t bytes[512];
    size_t n = make_stream(bytes);
    struct rig r;
    rig_open(&r, UINT64_MAX);
    feed(&r, bytes, SV_FRAME_HEAD + SV_FRAME_HEAD + 5, 1); /* two frames */
    REQUIRE(fcntl(r.fd, F_ADD_SEALS, F_SEAL_GROW) == 0);   /* from here on nothing can be added */
    size_t rest = SV_FRAME_HEAD + SV_FRAME_HEAD + 5;
    CHECK_INT_EQ(feed(&r, bytes + rest, n - rest, 9), SV_TAKEN_LAST);
    struct seen s = look(r.fd);
    CHECK_UINT_EQ(s.events, 3);
    CHECK_UINT_EQ(s.lost, EVENTS - 3);
    CHECK_UINT_EQ(s.cause, SV_SPOOL_NO_SPACE);
    CHECK_UINT_EQ(r.stream.taken, n);
    struct sv_spool_sender another;
    CHECK(!sv_spool_add(&r.spool, "another", SV_SPOOL_PERFETTO, &another));
    close(r.fd);
}

TEST(heads_that_cannot_be)
{
    static const struct sv_frame rows[] = {
        {.bytes = SV_FRAME_BYTES_MAX + 1, .events = 9},
        {.bytes = UINT64_MAX, .events = 9},
        {.bytes = 1, .events = 2}, /* fewer than before */
        {.bytes = 1, .events = UINT64_MAX},
        {.bytes = 1, .events = 9, .flags = 2},
        {.bytes = 1, .events = 9, .flags = UINT64_MAX},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        uint8_t bytes[2 * SV_FRAME_HEAD + 1];
        struct rig r;
        rig_open(&r, UINT64_MAX);
        sv_frame_put(bytes, &(struct sv_frame){.bytes = 1, .events = 3});
        sv_frame_put(bytes + SV_FRAME_HEAD + 1, &rows[i]);
        CHECK_INT_EQ(feed(&r, bytes, sizeof bytes, sizeof bytes), SV_TAKEN_BAD);
        sv_stream_cut(&r.stream, &r.spool, SV_SPOOL_BAD);
        struct seen s = look(r.fd);
        CHECK_UINT_EQ(s.events, 3);
        CHECK_UINT_EQ(s.lost, 0);
        CHECK_UINT_EQ(s.cause, SV_SPOOL_BAD);
        close(r.fd);
    }
}

TEST(nothing_follows_the_last_frame)
{
    uint8_t bytes[512];
    size_t n = make_stream(bytes);
    struct rig r;
    rig_open(&r, UINT64_MAX);
    bytes[n] = 0;
    CHECK_INT_EQ(feed(&r, bytes, n + 1, n + 1), SV_TAKEN_BAD);
    struct seen s = look(r.fd);
    CHECK_UINT_EQ(s.events, EVENTS);
    CHECK_UINT_EQ(s.cause, SV_SPOOL_WHOLE);
    close(r.fd);
}

/* ---- the file ---- */

/* Cut anywhere, or with any byte changed: never a crash, and never more events than were sent. */
TEST(a_spool_that_is_damaged)
{
    uint8_t bytes[512], image[8192];
    size_t n = make_stream(bytes);
    struct rig r;
    rig_open(&r, UINT64_MAX);
    feed(&r, bytes, n, 11);
    ssize_t size = pread(r.fd, image, sizeof image, 0);
    REQUIRE(size > SV_SPOOL_HEADER);
    uint64_t before = EVENTS;
    for (off_t cut = size; cut >= 0; cut--) {
        REQUIRE(ftruncate(r.fd, cut) == 0);
        struct seen s = look(r.fd);
        CHECK(s.events <= before);
        before = s.events;
    }
    for (ssize_t at = 0; at < size; at += at < 200 || at >= SV_SPOOL_HEADER ? 1 : 97) {
        CONTEXT("byte %zd", at);
        image[at] ^= 0xff;
        REQUIRE(pwrite(r.fd, image, (size_t)size, 0) == size);
        struct seen s = look(r.fd);
        CHECK(s.senders <= 1 && s.bytes <= BYTES);
        image[at] ^= 0xff;
    }
    close(r.fd);
}

/* Records of several senders lie between each other. */
TEST(senders_do_not_mix)
{
    uint8_t bytes[512];
    size_t n = make_stream(bytes);
    struct rig r;
    struct sv_stream streams[3] = {0};
    rig_open(&r, UINT64_MAX);
    for (size_t i = 1; i < 3; i++)
        REQUIRE(sv_spool_add(&r.spool, "another", SV_SPOOL_PERFETTO, &streams[i].spooled));
    streams[0] = r.stream;
    for (size_t at = 0; at < n; at++)
        for (size_t i = 0; i < 3; i++)
            if (i < 2 || at < n / 2)
                sv_stream_take(&streams[i], &r.spool, bytes + at, 1);
    struct sv_spool_view v;
    REQUIRE(sv_spool_look(r.fd, &v, NULL) == 0);
    CHECK_UINT_EQ(v.n, 3);
    for (size_t i = 0; i < v.n; i++) {
        struct sv_spool_frames f;
        REQUIRE(sv_spool_read(&v, i, &f, NULL) == 0);
        CHECK(i == 2 ? f.events < EVENTS : f.events == EVENTS && f.lost == 0);
        uint64_t k = 1, left = 5;
        for (size_t p = 0; i < 2 && p < f.n; p++) {
            uint8_t piece[64];
            REQUIRE(pread(r.fd, piece, f.pieces[p].bytes, (off_t)f.pieces[p].at) ==
                    (ssize_t)f.pieces[p].bytes);
            for (uint64_t b = 0; b < f.pieces[p].bytes; b++) {
                CHECK_UINT_EQ(piece[b], k);
                if (--left == 0)
                    left = ++k * 5;
            }
        }
        sv_spool_frames_fini(&f);
    }
    sv_spool_view_fini(&v);
    close(r.fd);
}

TEST(pieces_of_a_file_as_an_input)
{
    static const struct sv_piece pieces[] = {{3, 2}, {0, 1}, {5, 0}, {6, 1}, {1, 100}};
    int fd = memfd_create("pieces", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, "0123456", 7) == 7);
    for (size_t step = 1; step < 5; step++) {
        struct sv_input *in;
        char text[16] = "";
        size_t n = 0;
        sv_input_open_pieces(fd, pieces, TEST_COUNT(pieces), "pieces", &in);
        while (sv_input_need(in, 1, NULL) > 0) {
            size_t take = in->len < step ? in->len : step;
            memcpy(text + n, in->data, take);
            n += take;
            sv_input_skip(in, take);
        }
        CHECK_STR_EQ(text, "3406123456");
        sv_input_close(in);
    }
    struct sv_input *none;
    sv_input_open_pieces(fd, NULL, 0, "none", &none);
    CHECK_INT_EQ(sv_input_need(none, 1, NULL), 0);
    sv_input_close(none);
    close(fd);
}
