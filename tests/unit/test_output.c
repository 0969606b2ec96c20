/* base/output: a file appears whole or not at all, and the first failure is reported. */
#include "core/base/buf.h"
#include "core/files/input.h"
#include "core/files/output.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t temporaries(void)
{
    glob_t g;
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/.*.tmp", test_scratch("."));
    size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
    globfree(&g);
    return n;
}

/* What is stored is, unpacked, at least the expected bytes: all of them if it is whole. */
static void check_stored(const struct sv_buf *stored, const struct sv_buf *expected)
{
    struct sv_err err = {0};
    struct sv_input *in;
    REQUIRE(sv_input_open_memory(stored->data, stored->len, "stored", &in, &err) == SV_OK);
    CHECK_INT_EQ(sv_input_need(in, expected->len + 1, &err), 0);
    CHECK_UINT_EQ(in->len, expected->len);
    CHECK(in->len == expected->len && memcmp(in->data, expected->data, in->len) == 0);
    sv_input_close(in);
}

TEST(appears_at_close)
{
    struct sv_err err = {0};
    struct sv_output *o;
    const char *path = test_scratch("out.json");
    test_write_file(path, "old");
    umask(027);
    REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &o, &err) == SV_OK);
    sv_output_write(o, "new", 3);
    CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK);
    CHECK_STR_EQ(test_read_file(path), "old");
    CHECK_UINT_EQ(temporaries(), 1);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
    CHECK_STR_EQ(test_read_file(path), "new");
    CHECK_UINT_EQ(temporaries(), 0);
    struct stat st;
    REQUIRE(stat(path, &st) == 0);
    CHECK_UINT_EQ(st.st_mode & 0777, 0640);
}

TEST(discard_leaves_no_trace)
{
    struct sv_err err = {0};
    struct sv_output *o;
    const char *path = test_scratch("out.json");
    test_write_file(path, "old");
    REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_GZIP, &o, &err) == SV_OK);
    sv_output_write(o, "new", 3);
    sv_output_discard(o);
    CHECK_STR_EQ(test_read_file(path), "old");
    REQUIRE(sv_output_open(path, SV_OUTPUT_DIRECT, SV_PLAIN, &o, &err) == SV_OK);
    CHECK_STR_EQ(test_read_file(path), "");
    sv_output_write(o, "new", 3);
    CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK);
    CHECK_STR_EQ(test_read_file(path), "new"); /* in place */
    sv_output_discard(o);
    CHECK_STR_EQ(test_read_file(path), "(absent)");
    CHECK_UINT_EQ(temporaries(), 0);
}

/* At one instant two temporary files of one name: the second one finds another. */
TEST(temporary_names_differ)
{
    static const int64_t now = 77;
    struct sv_err err = {0};
    struct sv_output *a, *b;
    const char *path = test_scratch("out.json");
    test_clock_script(&now, 1);
    REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &a, &err) == SV_OK);
    CHECK_INT_EQ(sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &b, &err), SV_OK);
    test_clock_script(NULL, 0);
    CHECK(strcmp(sv_output_file(a), sv_output_file(b)) != 0);
    CHECK_UINT_EQ(temporaries(), 2);
    sv_output_write(a, "a", 1);
    CHECK_INT_EQ(sv_output_end(a, false, &err), SV_OK);
    CHECK_INT_EQ(sv_output_end(b, true, &err), SV_OK);
    CHECK_STR_EQ(test_read_file(path), "a");
    CHECK_UINT_EQ(temporaries(), 0);
}

TEST(files_that_can_be_looked_at)
{
    struct sv_err err = {0};
    struct sv_output *o;
    const char *path = test_scratch("out");
    REQUIRE(sv_output_open(path, SV_OUTPUT_DIRECT, SV_PLAIN, &o, &err) == SV_OK);
    CHECK_STR_EQ(sv_output_file(o), path);
    sv_output_discard(o);
    REQUIRE(sv_output_open(path, SV_OUTPUT_DIRECT, SV_GZIP, &o, &err) == SV_OK);
    CHECK(sv_output_file(o) == NULL);
    sv_output_discard(o);
    REQUIRE(sv_output_open("/dev/null", SV_OUTPUT_RENAME, SV_PLAIN, &o, &err) == SV_OK);
    CHECK(sv_output_file(o) == NULL);
    sv_output_discard(o);
    REQUIRE(sv_output_open_memory(&o) == SV_OK);
    CHECK(sv_output_file(o) == NULL);
    sv_output_discard(o);
    sv_output_discard(NULL);
    CHECK_INT_EQ(access("/dev/null", W_OK), 0); /* not removed */
}

TEST(names_of_compressions)
{
    enum sv_compression c = SV_ZSTD;
    CHECK(sv_compression_named("none", &c) && c == SV_PLAIN);
    CHECK(sv_compression_named("gzip", &c) && c == SV_GZIP);
    CHECK(sv_compression_named("zstd", &c) && c == SV_ZSTD);
    CHECK(!sv_compression_named("", &c) && !sv_compression_named("gz", &c));
}

/* Writes of every size around that of the buffer, and what was flushed can be read before the
 * end. */
TEST(all_sizes_come_out)
{
    static const enum sv_compression forms[] = {SV_PLAIN, SV_GZIP,
#ifdef SV_HAVE_ZSTD
                                                SV_ZSTD
#endif
    };
    static const size_t sizes[] = {1, 65535, 65536, 65537, 262143, 262144, 262145, 5000000, 7, 0};
    static unsigned char bytes[5000000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t f = 0; f < TEST_COUNT(forms); f++) {
        struct sv_err err = {0};
        struct sv_output *o;
        struct sv_buf stored, expected;
        CONTEXT("form %zu", f);
        sv_buf_init(&stored, SIZE_MAX);
        sv_buf_init(&expected, SIZE_MAX);
        REQUIRE(sv_output_open_buf(&stored, forms[f], &o, &err) == SV_OK);
        for (size_t i = 0; i < 2 * TEST_COUNT(sizes); i++) {
            size_t n = sizes[i % TEST_COUNT(sizes)];
            sv_output_write(o, bytes, n);
            sv_buf_add(&expected, bytes, n);
            CHECK_UINT_EQ(sv_output_bytes(o), expected.len);
            if (i < TEST_COUNT(sizes))
                CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK);
            if (i == 0 || i == 9)
                check_stored(&stored, &expected);
        }
        struct sv_buf more;
        sv_buf_init(&more, SIZE_MAX);
        sv_buf_add(&more, "more", 4);
        sv_output_pass_on(o, &more);
        CHECK_UINT_EQ(more.len, 0);
        sv_buf_fini(&more);
        sv_buf_add(&expected, "more", 4);
        CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
        check_stored(&stored, &expected);
        sv_buf_fini(&stored);
        sv_buf_fini(&expected);
    }
}

#ifdef SV_HAVE_ZSTD
/* Frames of one size, so that several can be unpacked at once. */
TEST(zstd_is_cut_into_frames)
{
    enum { FRAME = 2 << 20 };
    static const size_t totals[] = {FRAME, FRAME + 1, 3 * FRAME, 3 * FRAME + 5};
    static const size_t frames[] = {1, 2, 3, 4};
    static char bytes[100000];
    for (size_t t = 0; t < TEST_COUNT(totals); t++) {
        struct sv_err err = {0};
        struct sv_output *o;
        struct sv_buf stored;
        size_t n = 0;
        CONTEXT("%zu bytes", totals[t]);
        sv_buf_init(&stored, SIZE_MAX);
        REQUIRE(sv_output_open_buf(&stored, SV_ZSTD, &o, &err) == SV_OK);
        for (size_t left = totals[t]; left > 0;) {
            size_t piece = left < sizeof bytes ? left : sizeof bytes;
            sv_output_write(o, bytes, piece);
            left -= piece;
        }
        CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
        for (size_t i = 0; i + 4 <= stored.len; i++)
            n += memcmp(stored.data + i, "\x28\xb5\x2f\xfd", 4) == 0;
        CHECK_UINT_EQ(n, frames[t]);
        sv_buf_fini(&stored);
    }
}
#endif

TEST(links_stay_links)
{
    struct sv_err err = {0};
    struct sv_output *o;
    const char *real = test_scratch("real"), *link = test_scratch("link");
    test_write_file(real, "old");
    REQUIRE(symlink(real, link) == 0);
    REQUIRE(sv_output_open(link, SV_OUTPUT_RENAME, SV_PLAIN, &o, &err) == SV_OK);
    sv_output_write(o, "new", 3);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
    struct stat st;
    CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK_STR_EQ(test_read_file(real), "new");
}

TEST(long_names_fit)
{
    struct sv_err err = {0};
    struct sv_output *o;
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    const char *path = test_scratch(name);
    REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &o, &err) == SV_OK);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
    CHECK_STR_EQ(test_read_file(path), "");
}

TEST(places_that_cannot_be_written)
{
    static const struct {
        const char *path, *message;
    } rows[] = {
        {"/", "/: is a directory: name a file in it"},
        {"/nonexistent/out.json",
         "/nonexistent/out.json: cannot create: No such file or directory"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_err err = {0};
        struct sv_output *o;
        CHECK_INT_EQ(sv_output_open(rows[i].path, SV_OUTPUT_RENAME, SV_PLAIN, &o, &err), SV_EIO);
        CHECK_STR_EQ(err.msg, rows[i].message);
    }
}

TEST(a_full_disk_is_reported_once)
{
    static const enum sv_compression forms[] = {SV_PLAIN, SV_GZIP};
    for (size_t f = 0; f < TEST_COUNT(forms); f++) {
        struct sv_err err = {0};
        struct sv_output *o;
        REQUIRE(sv_output_open("/dev/full", SV_OUTPUT_RENAME, forms[f], &o, &err) == SV_OK);
        for (unsigned i = 0; i < 300000; i++)
            sv_output_write(o, &i, sizeof i);
        CHECK_INT_EQ(sv_output_flush(o, NULL), SV_EIO);
        CHECK_INT_EQ(sv_output_close(o, &err), SV_EIO);
        CHECK_STR_EQ(err.msg, "/dev/full: cannot write: No space left on device");
    }
    struct stat st;
    CHECK(stat("/dev/full", &st) == 0 &&
          S_ISCHR(st.st_mode)); /* neither renamed over nor removed */
}

static int full_pipe[2];

/* A pipe that was made non-blocking and is full is waited for. */
static void write_to_full_pipe(void)
{
    static unsigned char bytes[300000];
    struct sv_err err = {0};
    struct sv_output *o;
    int status = -1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i % 251);
    REQUIRE(pipe(full_pipe) == 0);
    pid_t child = fork();
    if (child == 0) {
        unsigned char piece[999];
        size_t at = 0;
        bool is_same = true;
        close(full_pipe[1]);
        for (ssize_t n; (n = read(full_pipe[0], piece, sizeof piece)) > 0;)
            for (ssize_t i = 0; i < n; i++)
                is_same &= piece[i] == at++ % 251;
        _exit(is_same && at == sizeof bytes ? 0 : 1);
    }
    close(full_pipe[0]);
    fcntl(full_pipe[1], F_SETFL, O_NONBLOCK);
    REQUIRE(dup2(full_pipe[1], STDOUT_FILENO) == STDOUT_FILENO);
    close(full_pipe[1]);
    int code = sv_output_open("-", SV_OUTPUT_RENAME, SV_PLAIN, &o, &err);
    sv_output_write(o, bytes, sizeof bytes);
    code = code < 0 ? code : sv_output_close(o, &err);
    bool is_open = fcntl(STDOUT_FILENO, F_GETFD) >= 0; /* not ours to close */
    close(STDOUT_FILENO);
    waitpid(child, &status, 0);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    CHECK_INT_EQ(code, SV_OK);
    CHECK(is_open && status == 0);
}

TEST(a_full_pipe_is_waited_for)
{
    test_in_child(write_to_full_pipe);
}

TEST(a_name_that_goes_before_the_end)
{
    struct sv_err err = {0};
    struct sv_output *o;
    char path[600];
    const char *folder = test_scratch("folder");
    snprintf(path, sizeof path, "%s/out", folder);
    REQUIRE(mkdir(folder, 0700) == 0);
    REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &o, &err) == SV_OK);
    REQUIRE(mkdir(path, 0700) == 0); /* a folder took it */
    CHECK_INT_EQ(sv_output_close(o, &err), SV_EIO);
    CHECK(strstr(err.msg, "cannot rename the finished file to its name") != NULL);
    REQUIRE(rmdir(path) == 0);
    CHECK_INT_EQ(rmdir(folder), 0); /* nothing else is in it */
}

TEST(a_closed_pipe_is_an_error)
{
    test_leaves_open();
    signal(SIGPIPE, SIG_IGN);
    int fds[2];
    REQUIRE(pipe(fds) == 0);
    int saved = dup(STDOUT_FILENO);
    REQUIRE(dup2(fds[1], STDOUT_FILENO) == STDOUT_FILENO);
    close(fds[0]);
    struct sv_err err = {0};
    struct sv_output *o;
    int opened = sv_output_open("-", SV_OUTPUT_RENAME, SV_PLAIN, &o, &err);
    sv_output_write(o, "text", 4);
    int closed = sv_output_close(o, &err);
    dup2(saved, STDOUT_FILENO);
    CHECK_INT_EQ(opened, SV_OK);
    CHECK_INT_EQ(closed, SV_EPIPE);
}

TEST(memory_holds_what_was_written)
{
    struct sv_err err = {0};
    struct sv_output *o;
    size_t len;
    REQUIRE(sv_output_open_memory(&o) == SV_OK);
    sv_output_write(o, "one", 3);
    (void)sv_output_memory(o, &len);
    CHECK_UINT_EQ(len, 3);
    sv_output_write(o, " two", 4);
    const uint8_t *bytes = sv_output_memory(o, &len);
    CHECK_UINT_EQ(len, 7);
    CHECK(memcmp(bytes, "one two", 7) == 0);
    CHECK_UINT_EQ(sv_output_bytes(o), 7);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);

    struct sv_buf small;
    sv_buf_init(&small, 10);
    REQUIRE(sv_output_open_buf(&small, SV_PLAIN, &o, &err) == SV_OK);
    sv_output_write(o, "more than ten bytes", 19);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_ENOMEM);
    sv_buf_fini(&small);
}

/* ---- growing files ---- */

TEST(a_growing_file_is_new_and_stays)
{
    struct sv_err err = {0};
    struct sv_output *o;
    struct stat st;
    const char *part = test_scratch("t.part"), *victim = test_scratch("victim");
    umask(0); /* others could not write it all the same */
    test_write_file(victim, "precious");
    REQUIRE(symlink(victim, part) == 0);
    CHECK_INT_EQ(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err), SV_EIO);
    unlink(part);
    REQUIRE(mkfifo(part, 0600) == 0);
    CHECK_INT_EQ(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, NULL), SV_EIO);
    unlink(part);
    REQUIRE(link(victim, part) == 0); /* left from before: replaced, not written through */
    err = (struct sv_err){0};
    REQUIRE(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err) == SV_OK);
    sv_output_write(o, "one two", 7);
    CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK);
    sv_output_discard(o);
    CHECK_STR_EQ(test_read_file(part), "one two");
    REQUIRE(stat(part, &st) == 0);
    CHECK_UINT_EQ(st.st_mode & 0777, 0600);
    CHECK_STR_EQ(test_read_file(victim), "precious");

    REQUIRE(sv_output_open_at(part, 4, &o, &err) == SV_OK);
    sv_output_write(o, "3", 1);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
    CHECK_STR_EQ(test_read_file(part), "one 3");
    REQUIRE(sv_output_open_at(part, 5, &o, &err) == SV_OK);
    CHECK_UINT_EQ(sv_output_position(o), 5);
    sv_output_write(o, " 4", 2);
    CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK);
    CHECK_UINT_EQ(sv_output_position(o), 7);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
    CHECK_STR_EQ(test_read_file(part), "one 3 4");
    CHECK_INT_EQ(sv_output_open_at(test_scratch("none"), 0, &o, NULL), SV_EIO);
    CHECK_INT_EQ(sv_output_open_at("/dev/null", 0, &o, &err), SV_EIO);
    CHECK_STR_EQ(err.msg, "/dev/null is not a file of yours");
    if (geteuid() == 0) {
        REQUIRE(chown(part, 65534, (gid_t)-1) == 0);
        CHECK_INT_EQ(sv_output_open_at(part, 0, &o, NULL), SV_EIO);
        CHECK_INT_EQ(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, NULL), SV_EIO);
    }
    unlink(part);
    REQUIRE(symlink(victim, part) == 0);
    CHECK_INT_EQ(sv_output_open_at(part, 0, &o, NULL), SV_EIO);
    CHECK_STR_EQ(test_read_file(victim), "precious");
    CHECK(stat(part, &st) == 0);
}

/* What the reader of traces sees of it. */
static void check_unpacked(const char *path, const char *expected)
{
    struct sv_err err = {0};
    struct sv_input *in;
    REQUIRE(sv_input_open(path, &in, &err) == SV_OK);
    CHECK(sv_input_need(in, 4096, &err) >= 0);
    CHECK_INT_EQ(err.code, 0);
    REQUIRE(in->len == strlen(expected));
    CHECK_MEM_EQ(in->data, expected, in->len);
    sv_input_close(in);
}

static void cut_and_continue(enum sv_compression compression)
{
    struct sv_err err = {0};
    struct sv_output *o;
    struct stat st;
    const char *part = test_scratch("packed.part");
    if (sv_output_open(part, SV_OUTPUT_GROW, compression, &o, &err) < 0)
        SKIP("no zstd in this build");
    REQUIRE(sv_output_reserve(o, 4096, &err) == SV_OK);
    sv_output_write(o, "one two ", 8);
    REQUIRE(sv_output_flush(o, &err) == SV_OK);
    uint64_t whole = sv_output_position(o);
    CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK); /* nothing has come: nothing is written */
    CHECK_UINT_EQ(sv_output_position(o), whole);
    sv_output_write(o, "lost", 4);
    CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK);
    CHECK(sv_output_position(o) > whole);
    sv_output_discard(o);
    check_unpacked(part, "one two lost");

    REQUIRE(sv_output_open_at(part, whole, &o, &err) == SV_OK);
    sv_output_write(o, "three", 5);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
    check_unpacked(part, "one two three");
    REQUIRE(truncate(part, (off_t)whole) == 0 && stat(part, &st) == 0);
    check_unpacked(part, "one two ");
}

TEST(a_packed_growing_file_is_whole_at_each_flush_gzip)
{
    cut_and_continue(SV_GZIP);
}

TEST(a_packed_growing_file_is_whole_at_each_flush_zstd)
{
    cut_and_continue(SV_ZSTD);
}

static unsigned grown_mode(const char *wanted)
{
    struct sv_err err = {0};
    struct sv_output *o;
    struct stat st = {0};
    const char *part = test_scratch("mode.part");
    setenv("STAVE_MODE", wanted, 1);
    REQUIRE(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err) == SV_OK);
    sv_output_discard(o);
    CHECK(stat(part, &st) == 0);
    return st.st_mode & 0777;
}

TEST(modes_of_recordings)
{
    static const struct {
        const char *text;
        unsigned mode;
    } rows[] = {{"0600", 0600}, {"0640", 0640}, {"644", 0644}, {"0666", 0600}, {"0664", 0600},
                {"0400", 0600}, {"0755", 0600}, {"", 0600},    {"x", 0600},    {"0644 ", 0600}};
    umask(077); /* what was asked for holds all the same */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CONTEXT("%s", rows[i].text);
        CHECK_UINT_EQ(grown_mode(rows[i].text), rows[i].mode);
    }
}

TEST(a_replaced_file_is_not_opened_to_others)
{
    struct sv_err err = {0};
    struct sv_output *o;
    struct stat st;
    static const struct {
        mode_t before, mask, after;
    } rows[] = {{0600, 022, 0600},
                {0640, 022, 0640},
                {0644, 077, 0600},
                {0666, 022, 0644},
                {0400, 022, 0600}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = test_scratch("replaced");
        umask(022);
        test_write_file(path, "old");
        REQUIRE(chmod(path, rows[i].before) == 0);
        umask(rows[i].mask);
        REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &o, &err) == SV_OK);
        REQUIRE(sv_output_close(o, &err) == SV_OK);
        REQUIRE(stat(path, &st) == 0);
        CHECK_UINT_EQ(st.st_mode & 0777, rows[i].after);
        unlink(path);
    }
}

static size_t fill(struct sv_output *o)
{
    size_t n = 0;
    while (n < 200 && sv_output_failure(o, NULL) == SV_OK) {
        char block[1000];
        memset(block, 'x', sizeof block);
        sv_output_write(o, block, sizeof block);
        sv_output_flush(o, NULL);
        n++;
    }
    return n;
}

/* The limit of a file's size is met before anything is written past it, and the end still fits. */
/* What has its number by now belongs to the program: not a byte of it changes, and it stays
 * open. */
TEST(a_growing_file_whose_descriptor_was_closed)
{
    struct sv_err err = {0};
    struct sv_output *o;
    const char *part = test_scratch("t.part"), *other = test_scratch("other");
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        unlink(part);
        REQUIRE(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err) == SV_OK);
        sv_output_write(o, "first ", 6);
        CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK);
        struct stat st, now;
        REQUIRE(stat(part, &st) == 0);
        int fd = open(other, O_RDWR | O_CREAT | O_TRUNC, 0600), number = -1;
        for (int i = 3; i < 1024; i++)
            if (fstat(i, &now) == 0 && now.st_ino == st.st_ino && now.st_dev == st.st_dev)
                number = i;
        REQUIRE(fd >= 0 && number >= 0 && write(fd, "own", 3) == 3);
        REQUIRE(dup2(fd, number) == number);
        if (is_gone)
            unlink(part);
        sv_output_write(o, "second", 6);
        CHECK_INT_EQ(sv_output_flush(o, &err), is_gone ? SV_EIO : SV_OK);
        CHECK_INT_EQ(sv_output_close(o, &err), is_gone ? SV_EIO : SV_OK);
        if (!is_gone)
            CHECK_STR_EQ(test_read_file(part), "first second");
        CHECK_STR_EQ(test_read_file(other), "own");
        CHECK_INT_EQ(close(number), 0);
        close(fd);
    }
}

TEST(space_for_the_end)
{
    enum { LIMIT = 100000, END = 20000 };
    struct sv_err err = {0};
    struct sv_output *o;
    struct stat st;
    struct rlimit before, limit = {LIMIT, LIMIT};
    const char *part = test_scratch("t.part");
    signal(SIGXFSZ, SIG_DFL); /* it would end the test */
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit.rlim_max = before.rlim_max;
    REQUIRE(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err) == SV_OK);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    REQUIRE(sv_output_reserve(o, END, &err) == SV_OK);
    fill(o);
    CHECK_INT_EQ(sv_output_failure(o, &err), SV_EIO);
    CHECK_STR_EQ(err.msg, "cannot write: File too large");
    sv_output_discard(o);
    REQUIRE(stat(part, &st) == 0);
    CHECK_INT_EQ(st.st_size, (LIMIT - END) / 1000 * 1000);
    err = (struct sv_err){0};
    REQUIRE(sv_output_open_at(part, (uint64_t)st.st_size, &o, &err) == SV_OK);
    char end[END];
    memset(end, 'e', sizeof end);
    sv_output_write(o, end, sizeof end);
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
    REQUIRE(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err) == SV_OK);
    CHECK_INT_EQ(sv_output_reserve(o, LIMIT + 1, &err), SV_EIO);
    sv_output_discard(o);
    setrlimit(RLIMIT_FSIZE, &before);
}

/* What was reserved and not used goes back to the disk. */
TEST(the_reserve_is_given_back)
{
    struct sv_err err = {0};
    struct sv_output *o;
    struct stat st;
    const char *part = test_scratch("t.part");
    REQUIRE(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err) == SV_OK);
    REQUIRE(sv_output_reserve(o, 32768, &err) == SV_OK);
    sv_output_write(o, "text", 4);
    CHECK_INT_EQ(sv_output_flush(o, &err), SV_OK);
    REQUIRE(stat(part, &st) == 0);
    CHECK_INT_EQ(st.st_size, 4);
    bool was_reserved = st.st_blocks > 32;
    CHECK_INT_EQ(sv_output_close(o, &err), SV_OK);
    REQUIRE(stat(part, &st) == 0);
    CHECK_INT_EQ(st.st_size, 4);
    CHECK(st.st_blocks <= 32);
    if (!was_reserved)
        SKIP("this file system reserves nothing");
}

static int fallocate_error;

static void reserve_without(void)
{
    struct sv_err err = {0};
    struct sv_output *o;
    struct stat st;
    const char *part = test_scratch("r.part");
    bool is_possible = fallocate_error != ENOSPC;
    if (!test_refuse_call(SYS_fallocate, 0, 0, fallocate_error))
        SKIP("no filters of system calls here");
    REQUIRE(sv_output_open(part, SV_OUTPUT_GROW, SV_PLAIN, &o, &err) == SV_OK);
    CHECK_INT_EQ(sv_output_reserve(o, 32768, &err), is_possible ? SV_OK : SV_EIO);
    sv_output_write(o, "text", 4);
    CHECK_INT_EQ(sv_output_flush(o, NULL), is_possible ? SV_OK : SV_EIO);
    CHECK_INT_EQ(sv_output_close(o, NULL), is_possible ? SV_OK : SV_EIO);
    CHECK(stat(part, &st) == 0 && st.st_size == (is_possible ? 4 : 0));
}

/* Where no space can be reserved the file grows without; where there is none, that is an error. */
TEST(file_systems_that_reserve_nothing)
{
    static const int errors[] = {EOPNOTSUPP, ENOSYS, EINVAL, ENOSPC};
    for (size_t i = 0; i < TEST_COUNT(errors); i++) {
        CONTEXT("error %d", errors[i]);
        fallocate_error = errors[i];
        if (!test_in_child(reserve_without))
            SKIP("no filters of system calls here");
    }
}

#ifndef SV_HAVE_ZSTD
TEST(zstd_that_was_not_built_in)
{
    struct sv_err err = {0};
    struct sv_output *o;
    CHECK_INT_EQ(sv_output_open("x", SV_OUTPUT_RENAME, SV_ZSTD, &o, &err), SV_EUSAGE);
    CHECK(strstr(err.msg, "cannot write zstd") != NULL);
}
#endif
