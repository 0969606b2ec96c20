/* base/input: what goes in compressed, cut, glued or damaged comes out as the same bytes or as a
 * clear word. */
#include "core/base/buf.h"
#include "core/base/report.h"
#include "core/files/input.h"
#include "core/files/output.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Text that compresses, but not to nothing, and differs at every place. */
static void make_text(struct sv_buf *b, size_t len)
{
    sv_buf_init(b, SIZE_MAX);
    uint64_t x = 1;
    while (b->len < len) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        sv_buf_printf(b, "{\"ts\":%llu,\"name\":\"op%u\"},\n", (unsigned long long)(x >> 33),
                      (unsigned)(x >> 60));
    }
    b->len = len;
}

static void pack(struct sv_buf *to, const void *bytes, size_t len, enum sv_compression form)
{
    struct sv_err err = {0};
    struct sv_output *o;
    REQUIRE(sv_output_open_buf(to, form, &o, &err) == SV_OK);
    sv_output_write(o, bytes, len);
    REQUIRE(sv_output_close(o, &err) == SV_OK);
}

/* Reads everything in steps of `step` bytes. */
static int drain(struct sv_input *in, size_t step, struct sv_buf *to, struct sv_err *err)
{
    int rc;
    while ((rc = sv_input_need(in, step, err)) > 0) {
        sv_buf_add(to, in->data, step);
        sv_input_skip(in, step);
    }
    if (rc == 0) {
        sv_buf_add(to, in->data, in->len);
        sv_input_skip(in, in->len);
    }
    return rc;
}

static const enum sv_compression forms[] = {SV_PLAIN, SV_GZIP,
#ifdef SV_HAVE_ZSTD
                                            SV_ZSTD
#endif
};
static const char *const form_names[] = {NULL, "gzip", "zstd"};

static void check_memory(const struct sv_buf *stored, const struct sv_buf *text, size_t step)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_buf got;
    sv_buf_init(&got, SIZE_MAX);
    REQUIRE(sv_input_open_memory(stored->data, stored->len, "memory", &in, &err) == SV_OK);
    CHECK_INT_EQ(drain(in, step, &got, &err), 0);
    CHECK(in->eof);
    CHECK(!in->truncated);
    CHECK_UINT_EQ(in->pos, text->len);
    CHECK_UINT_EQ(got.len, text->len);
    CHECK(got.len == text->len && (got.len == 0 || memcmp(got.data, text->data, got.len) == 0));
    CHECK_UINT_EQ(sv_input_read_bytes(in), stored->len);
    sv_input_close(in);
    sv_buf_fini(&got);
}

TEST(every_form_size_and_step)
{
    static const size_t sizes[] = {0, 1, 3, 4, 100, 65536, 524288, 524289, 3000000};
    static const size_t steps[] = {1000, 1, 70001, 700000};
    for (size_t f = 0; f < TEST_COUNT(forms); f++) {
        for (size_t i = 0; i < TEST_COUNT(sizes); i++) {
            struct sv_buf text, stored;
            make_text(&text, sizes[i]);
            sv_buf_init(&stored, SIZE_MAX);
            pack(&stored, text.data, text.len, forms[f]);
            for (size_t s = 0; s < TEST_COUNT(steps); s++) {
                CONTEXT("form %zu, %zu bytes, steps of %zu", f, sizes[i], steps[s]);
                check_memory(&stored, &text, steps[s]);
            }
            sv_buf_fini(&text);
            sv_buf_fini(&stored);
        }
    }
}

TEST(members_and_frames_are_joined)
{
    for (size_t f = 1; f < TEST_COUNT(forms); f++) {
        struct sv_buf text, stored;
        make_text(&text, 300000);
        sv_buf_init(&stored, SIZE_MAX);
        pack(&stored, text.data, 1, forms[f]);
        pack(&stored, "", 0, forms[f]);
        pack(&stored, text.data + 1, 199999, forms[f]);
        pack(&stored, text.data + 200000, 100000, forms[f]);
        CONTEXT("form %zu", f);
        check_memory(&stored, &text, 4096);
        sv_buf_fini(&text);
        sv_buf_fini(&stored);
    }
}

static struct sv_input *open_all(const struct sv_buf *stored, struct sv_buf *got)
{
    struct sv_err err = {0};
    struct sv_input *in;
    sv_buf_init(got, SIZE_MAX);
    REQUIRE(sv_input_open_memory(stored->data, stored->len, "memory", &in, &err) == SV_OK);
    CHECK_INT_EQ(drain(in, 1000, got, &err), 0);
    return in;
}

/* What begins as a compressed file is one, however soon it ends; with a byte less it is plain. */
TEST(files_of_the_magic_bytes_alone)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *form;
    } rows[] = {
        {"\x1f\x8b\x08", 3, "gzip"},     {"\x1f\x8b", 2, NULL},
        {"\x28\xb5\x2f\xfd", 4, "zstd"}, {"\x28\xb5\x2f", 3, NULL},
        {"\x5f\x2a\x4d\x18", 4, "zstd"}, {"\x1f\x8b\x07", 3, NULL},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct sv_buf stored, got;
        struct sv_err err = {0};
        struct sv_input *in;
        sv_buf_init(&stored, SIZE_MAX);
        sv_buf_init(&got, SIZE_MAX);
        sv_buf_add(&stored, rows[i].bytes, rows[i].n);
        REQUIRE(sv_input_open_memory(stored.data, stored.len, "memory", &in, &err) == SV_OK);
        drain(in, 1000, &got, &err);
        CHECK_STR_EQ(in->compression ? in->compression : "-", rows[i].form ? rows[i].form : "-");
        CHECK_UINT_EQ(got.len, rows[i].form ? 0 : rows[i].n);
        sv_input_close(in);
        sv_buf_fini(&stored);
        sv_buf_fini(&got);
    }
}

TEST(trailing_bytes_are_noted_zeros_are_not)
{
    static const struct {
        const char *tail;
        size_t len;
        bool noted;
    } rows[] = {{"", 0, false},       {"\0\0\0\0\0", 5, false},     {"x", 1, true},
                {"garbage", 7, true}, {"\0\0\0\0\0\0\0y", 8, true}, {"\x1f", 1, true}};
    for (size_t f = 1; f < TEST_COUNT(forms); f++) {
        for (size_t i = 0; i < TEST_COUNT(rows); i++) {
            CONTEXT("form %zu row %zu", f, i);
            struct sv_buf stored, got;
            sv_buf_init(&stored, SIZE_MAX);
            pack(&stored, "hello", 5, forms[f]);
            sv_buf_add(&stored, rows[i].tail, rows[i].len);
            struct sv_input *in = open_all(&stored, &got);
            CHECK_STR_EQ(sv_buf_cstr(&got), "hello");
            CHECK_STR_EQ(in->compression, form_names[f]);
            CHECK_INT_EQ(in->has_trailing, rows[i].noted);
            CHECK(!in->truncated);
            struct sv_report r;
            sv_report_init(&r);
            sv_input_report(in, &r);
            CHECK_UINT_EQ(sv_report_count(&r, SV_NOTE), rows[i].noted);
            CHECK_UINT_EQ(sv_report_count(&r, SV_DAMAGE), 0);
            if (rows[i].noted) {
                CHECK_UINT_EQ(r.rows[0].count, 1);
                CHECK_INT_EQ(r.rows[0].first_pos, 5);
            }
            sv_report_fini(&r);
            sv_input_close(in);
            sv_buf_fini(&stored);
            sv_buf_fini(&got);
        }
    }
}

/* Cut anywhere: a prefix of the text comes out, and only a cut between two members goes
 * unnoticed. */
TEST(cut_streams_keep_what_came_before)
{
    for (size_t f = 1; f < TEST_COUNT(forms); f++) {
        struct sv_buf text, stored;
        make_text(&text, 200000);
        sv_buf_init(&stored, SIZE_MAX);
        pack(&stored, text.data, text.len, forms[f]);
        size_t whole = stored.len, last = 0;
        for (size_t cut = 8; cut < whole; cut += cut < 40 || cut > whole - 20 ? 1 : whole / 50) {
            CONTEXT("form %zu, %zu of %zu bytes", f, cut, whole);
            stored.len = cut;
            struct sv_buf got;
            struct sv_input *in = open_all(&stored, &got);
            CHECK(in->truncated);
            CHECK(in->eof);
            CHECK(got.len <= text.len &&
                  (got.len == 0 || memcmp(got.data, text.data, got.len) == 0));
            CHECK(got.len >= last);
            last = got.len;
            struct sv_report r;
            sv_report_init(&r);
            sv_input_report(in, &r);
            CHECK_UINT_EQ(sv_report_count(&r, SV_DAMAGE), 1);
            CHECK_INT_EQ(r.rows[0].first_pos, (int64_t)got.len);
            CHECK_UINT_EQ(r.rows[0].count, 1);
            sv_report_fini(&r);
            sv_input_close(in);
            sv_buf_fini(&got);
        }
        CHECK(last > text.len / 2); /* only the last block is lost */
        sv_buf_fini(&text);
        sv_buf_fini(&stored);
    }
}

TEST(damaged_streams_end_with_a_word)
{
    for (size_t f = 1; f < TEST_COUNT(forms); f++) {
        struct sv_buf text, stored, got;
        make_text(&text, 400000);
        sv_buf_init(&stored, SIZE_MAX);
        pack(&stored, text.data, text.len, forms[f]);
        for (size_t at = 4; at < stored.len; at += stored.len / 60) {
            CONTEXT("form %zu, byte %zu of %zu", f, at, stored.len);
            stored.data[at] ^= 0x55;
            struct sv_input *in = open_all(&stored, &got);
            bool same = got.len == text.len && memcmp(got.data, text.data, got.len) == 0;
            CHECK(same || in->truncated); /* never other bytes without a word */
            sv_input_close(in);
            sv_buf_fini(&got);
            stored.data[at] ^= 0x55;
        }
        sv_buf_fini(&text);
        sv_buf_fini(&stored);
    }
}

/* Record lengths from a hostile file: memory follows the bytes that exist. */
TEST(window_limit_is_named)
{
    struct sv_err err = {0};
    struct sv_input *in;
    REQUIRE(sv_input_open_memory("12345", 5, "memory", &in, &err) == SV_OK);
    CHECK_INT_EQ(sv_input_need(in, SV_INPUT_WINDOW_LIMIT + 1, &err), SV_ENOMEM);
    CHECK(strstr(err.msg, "limit of 1073741824 bytes") != NULL);
    sv_err_clear(&err);
    CHECK_INT_EQ(sv_input_need(in, SV_INPUT_WINDOW_LIMIT, &err), 0);
    CHECK_UINT_EQ(in->len, 5);
    sv_input_close(in);

    struct sv_buf text;
    make_text(&text, 3000000);
    REQUIRE(sv_input_open_memory(text.data, text.len, "memory", &in, &err) == SV_OK);
    in->window_limit = 1000001;
    CHECK_INT_EQ(sv_input_need(in, 1000002, &err), SV_ENOMEM);
    sv_err_clear(&err);
    for (size_t i = 0; i < 2999999 - 1000001; i += 999) {
        if (!CHECK_INT_EQ(sv_input_need(in, 1000001, &err), 1))
            break;
        CHECK(memcmp(in->data, text.data + i, 1000001) == 0);
        sv_input_skip(in, 999);
    }
    sv_input_close(in);
    sv_buf_fini(&text);
}

TEST(files_that_cannot_be_read)
{
    static const struct {
        const char *path, *message;
    } rows[] = {
        {"/nonexistent/trace.json", "cannot open: No such file or directory"},
        {"/", "is a directory, not a file"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_err err = {0};
        struct sv_input *in = NULL;
        CHECK_INT_EQ(sv_input_open(rows[i].path, &in, &err), SV_EIO);
        CHECK_STR_EQ(err.msg, rows[i].message);
    }
    struct sv_err err = {0};
    struct sv_input *in;
    REQUIRE(sv_input_open("/proc/self/mem", &in, &err) == SV_OK); /* page 0 is not there */
    for (int i = 0; i < 2; i++) {                                 /* and stays so */
        CHECK_INT_EQ(sv_input_need(in, 1, &err), SV_EIO);
        CHECK_STR_EQ(err.msg, "cannot read: Input/output error");
        sv_err_clear(&err);
    }
    sv_input_close(in);
}

TEST(files_have_a_size_and_a_name)
{
    struct sv_err err = {0};
    struct sv_output *o;
    struct sv_input *in;
    struct sv_buf text, got;
    make_text(&text, 2000000);
    const char *path = test_scratch("trace.gz");
    REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_GZIP, &o, &err) == SV_OK);
    sv_output_write(o, text.data, text.len);
    CHECK_UINT_EQ(sv_output_bytes(o), text.len);
    REQUIRE(sv_output_close(o, &err) == SV_OK);
    REQUIRE(sv_input_open(path, &in, &err) == SV_OK);
    sv_buf_init(&got, SIZE_MAX);
    CHECK_STR_EQ(in->name, path);
    CHECK_INT_EQ(drain(in, 100, &got, &err), 0);
    CHECK(got.len == text.len && memcmp(got.data, text.data, got.len) == 0);
    CHECK(in->size_bytes > 0 && in->size_bytes < text.len);
    CHECK_UINT_EQ(sv_input_read_bytes(in), in->size_bytes);
    CHECK_STR_EQ(in->compression, "gzip");
    sv_input_close(in);
    sv_buf_fini(&text);
    sv_buf_fini(&got);
}

static void feed(int fd, const struct sv_buf *text)
{
    for (size_t done = 0;
         done < text->len;) { /* odd pieces, the first one shorter than a magic number */
        size_t n = done == 0 ? 2 : text->len - done < 4001 ? text->len - done : 4001;
        if (write(fd, text->data + done, n) != (ssize_t)n)
            _exit(1);
        done += n;
    }
    _exit(0);
}

TEST(standard_input_is_a_pipe)
{
    for (size_t f = 0; f < TEST_COUNT(forms); f++) {
        CONTEXT("form %zu", f);
        struct sv_err err = {0};
        struct sv_input *in;
        struct sv_buf text, stored, got;
        make_text(&text, 1500000);
        sv_buf_init(&stored, SIZE_MAX);
        sv_buf_init(&got, SIZE_MAX);
        pack(&stored, text.data, text.len, forms[f]);
        int fds[2];
        REQUIRE(pipe2(fds, O_DIRECT) == 0); /* each write is read by itself */
        pid_t child = fork();
        if (child == 0) {
            close(fds[0]);
            feed(fds[1], &stored);
        }
        close(fds[1]);
        REQUIRE(dup2(fds[0], STDIN_FILENO) == STDIN_FILENO);
        fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
        REQUIRE(sv_input_open("-", &in, &err) == SV_OK);
        CHECK_STR_EQ(in->name, "(stdin)");
        CHECK_UINT_EQ(in->size_bytes, 0);
        CHECK_INT_EQ(drain(in, 333, &got, &err), 0);
        CHECK(got.len == text.len && memcmp(got.data, text.data, got.len) == 0);
        sv_input_close(in);
        CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0); /* not ours to close */
        close(fds[0]);
        waitpid(child, NULL, 0);
        sv_buf_fini(&text);
        sv_buf_fini(&stored);
        sv_buf_fini(&got);
    }
}

/* ---- parts, blocks, and others' decoders ---- */

TEST(a_part_of_a_file_is_read_like_a_file)
{
    for (size_t f = 0; f < TEST_COUNT(forms); f++) {
        struct sv_err err = {0};
        struct sv_input *in;
        struct sv_buf text, stored, got;
        CONTEXT("form %zu", f);
        make_text(&text, 100000);
        sv_buf_init(&stored, SIZE_MAX);
        sv_buf_init(&got, SIZE_MAX);
        sv_buf_add(&stored, "before", 6);
        pack(&stored, text.data, text.len, forms[f]);
        struct sv_piece part = {6, stored.len - 6};
        sv_buf_add(&stored, "behind", 6);
        int fd = open(test_scratch("file"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0 && write(fd, stored.data, stored.len) == (ssize_t)stored.len);
        sv_input_open_part(fd, &part, "part", &in);
        CHECK_UINT_EQ(in->size_bytes, part.bytes);
        CHECK_INT_EQ(drain(in, 333, &got, &err), 0);
        CHECK(got.len == text.len && memcmp(got.data, text.data, got.len) == 0);
        CHECK(!in->has_trailing && !in->truncated);
        CHECK_UINT_EQ(sv_input_read_bytes(in), part.bytes);
        uint8_t byte;
        CHECK_INT_EQ(sv_input_read_at(in, 0, &byte, 1), 0); /* not to be had in this way */
        sv_input_close(in);
        CHECK(fcntl(fd, F_GETFD) >= 0); /* borrowed */
        close(fd);
        sv_buf_fini(&text);
        sv_buf_fini(&stored);
        sv_buf_fini(&got);
    }
}

TEST(any_place_can_be_read)
{
    struct sv_err err = {0};
    struct sv_input *in;
    char got[8];
    const char *path = test_scratch("file");
    test_write_file(path, "0123456789");
    for (int is_memory = 0; is_memory < 2; is_memory++) {
        CONTEXT("memory %d", is_memory);
        REQUIRE((is_memory ? sv_input_open_memory("0123456789", 10, "m", &in, &err)
                           : sv_input_open(path, &in, &err)) == SV_OK);
        memset(got, 0, sizeof got);
        CHECK_INT_EQ(sv_input_read_at(in, 3, (uint8_t *)got, 4), 4);
        CHECK_STR_EQ(got, "3456");
        memset(got, 0, sizeof got);
        CHECK_INT_EQ(sv_input_read_at(in, 8, (uint8_t *)got, 7), 2);
        CHECK_STR_EQ(got, "89");
        CHECK_INT_EQ(sv_input_read_at(in, 9, (uint8_t *)got, 7), 1);
        CHECK_INT_EQ(sv_input_read_at(in, 10, (uint8_t *)got, 7), 0);
        CHECK_INT_EQ(sv_input_read_at(in, UINT64_MAX, (uint8_t *)got, 7), 0);
        sv_input_close(in);
    }
}

TEST(all_of_it_or_a_word)
{
    struct sv_err err = {0};
    struct sv_input *in;
    REQUIRE(sv_input_open_memory("0123456789", 10, "m", &in, &err) == SV_OK);
    in->window_limit = 10;
    CHECK_INT_EQ(sv_input_need_all(in, "too large", &err), SV_ELIMIT); /* it may go on */
    CHECK_STR_EQ(err.msg, "too large");
    sv_input_close(in);
    sv_err_clear(&err);
    REQUIRE(sv_input_open_memory("0123456789", 10, "m", &in, &err) == SV_OK);
    in->window_limit = 11;
    CHECK_INT_EQ(sv_input_need_all(in, "too large", &err), 0);
    CHECK_UINT_EQ(in->len, 10);
    sv_input_close(in);
}

/* Blocks of every size leave the window and some come back: the bytes stay the same, and so do
 * their places. */
TEST(blocks_are_taken_and_put_back)
{
    static const size_t sizes[] = {1, 64, 100, 5000, 100000, 262144, 300000};
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_buf text;
    struct sv_input_block b = {0};
    make_text(&text, 3000000);
    REQUIRE(sv_input_open_memory(text.data, text.len, "m", &in, &err) == SV_OK);
    size_t at = 0;
    for (size_t i = 0; at < text.len; i++) {
        size_t n = sizes[i % TEST_COUNT(sizes)];
        n = n < text.len - at ? n : text.len - at;
        if (!CHECK_INT_EQ(sv_input_need(in, n, &err), 1))
            break;
        sv_input_take(in, n, &b);
        CHECK(b.len == n && b.pos == at && memcmp(b.data, text.data + at, n) == 0);
        at += n;
        CHECK(in->pos == at && memcmp(in->data, text.data + at, in->len) == 0);
        CHECK(in->data[in->len] == 0 && in->data[in->len + SV_INPUT_PAD - 1] == 0);
        if (i % 3 == 1) { /* the last bytes come back */
            size_t back = n / 2;
            sv_input_put_back(in, b.data + n - back, back);
            at -= back;
            CHECK(in->pos == at && in->len >= back);
            CHECK(memcmp(in->data, text.data + at, in->len) == 0);
            CHECK(in->data[in->len] == 0 && in->data[in->len + SV_INPUT_PAD - 1] == 0);
        }
    }
    CHECK_INT_EQ(sv_input_need(in, 1, &err), 0);
    sv_input_block_fini(&b);
    CHECK(b.buffer == NULL && b.len == 0);
    sv_input_close(in);
    sv_buf_fini(&text);
}

struct given {
    const struct sv_buf *text;
    size_t at, until, stored;
    unsigned n_closed;
};

static size_t give(void *ctx, uint8_t *dst, size_t cap, uint64_t *stored)
{
    struct given *g = ctx;
    size_t n = g->until - g->at < 777 ? g->until - g->at : 777;
    n = n < cap ? n : cap;
    memcpy(dst, g->text->data + g->at, n);
    g->at += n;
    if (g->at == g->until)
        *stored = g->stored;
    return n;
}

static void count_close(void *ctx)
{
    ((struct given *)ctx)->n_closed++;
}

/* Another decoder gives the first member, the input's own the rest. */
TEST(another_decoder_begins)
{
    static const struct sv_input_unpacker ops = {give, count_close};
    for (size_t f = 1; f < TEST_COUNT(forms); f++) {
        struct sv_err err = {0};
        struct sv_input *in;
        struct sv_buf text, stored, got;
        make_text(&text, 50000);
        sv_buf_init(&stored, SIZE_MAX);
        pack(&stored, text.data, 30000, forms[f]);
        struct given g = {&text, 0, 30000, stored.len, 0};
        pack(&stored, text.data + 30000, 20000, forms[f]);
        int fd = open(test_scratch("file"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        REQUIRE(fd >= 0 && write(fd, stored.data, stored.len) == (ssize_t)stored.len);
        for (int is_memory = 0; is_memory < 2; is_memory++) {
            CONTEXT("form %zu, memory %d", f, is_memory);
            g.at = g.n_closed = 0;
            sv_buf_init(&got, SIZE_MAX);
            REQUIRE((is_memory ? sv_input_open_memory(stored.data, stored.len, "m", &in, &err)
                               : sv_input_open(test_scratch("file"), &in, &err)) == SV_OK);
            sv_input_unpack_by(in, form_names[f], &ops, &g);
            CHECK_INT_EQ(drain(in, 1000, &got, &err), 0);
            CHECK(got.len == text.len && memcmp(got.data, text.data, got.len) == 0);
            CHECK_STR_EQ(in->compression, form_names[f]);
            CHECK_UINT_EQ(g.n_closed, 1);
            CHECK_UINT_EQ(sv_input_read_bytes(in), stored.len);
            sv_input_close(in);
            CHECK_UINT_EQ(g.n_closed, 1);
            sv_buf_fini(&got);
        }
        close(fd);
        g.at = g.n_closed = 0; /* one that stops early */
        REQUIRE(sv_input_open_memory(stored.data, stored.len, "m", &in, &err) == SV_OK);
        sv_input_unpack_by(in, form_names[f], &ops, &g);
        CHECK_INT_EQ(sv_input_need(in, 1, &err), 1);
        sv_input_unpack_end(in);
        sv_input_skip(in, in->len);
        CHECK_INT_EQ(sv_input_need(in, 1, &err), 0);
        CHECK_UINT_EQ(g.n_closed, 1);
        sv_input_close(in);
        sv_buf_fini(&text);
        sv_buf_fini(&stored);
    }
}
