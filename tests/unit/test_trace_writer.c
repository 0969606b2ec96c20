/* The writer of ferrum's files: what is in the file, and how it stays whole. The ways to end are
 * in tests/stress/trace_writer.sh. */
#include "compat/unwritten.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stave/trace_writer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct stave_trace_event make_event(const char *name, const char *args)
{
    return (struct stave_trace_event){
        .name = name, .cat = "c", .ts = 5, .dur = 7, .pid = 1, .tid = 2, .args = args};
}

static size_t open_descriptors(void)
{
    size_t n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) != -1;
    return n;
}

#define PLAIN "{\"name\":\"n\",\"cat\":\"c\",\"ph\":\"X\",\"ts\":5,\"dur\":7,\"pid\":1,\"tid\":2"

TEST(events_and_their_arguments)
{
    static const struct {
        const char *args, *more; /* what follows the plain event */
        int status;
    } rows[] = {{NULL, "}", 0},
                {"", "}", 0},
                {"{}", "}", 0},
                {" { } ", "}", 0},
                {"{\"k\":[1,{}]}", ",\"args\":{\"k\":[1,{}]}}", 0},
                {"[1]", "}", STAVE_EFORMAT},
                {"{\"k\":}", "}", STAVE_EFORMAT},
                {"{\"k\":1}{", "}", STAVE_EFORMAT},
                {"1", "}", STAVE_EFORMAT}};
    char text[512], expected[512], file[2048] = "[";
    const char *path = test_scratch("t.json");
    struct stave_trace_writer *w = stave_trace_writer_open(path);
    REQUIRE(stave_trace_writer_is_enabled(w));
    CHECK_STR_EQ(test_read_file(path), "[]");
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct stave_trace_event e = make_event("n", rows[i].args);
        snprintf(expected, sizeof expected, "%s%s", PLAIN, rows[i].more);
        int n = stave_trace_event_json(&e, text, sizeof text);
        CHECK_INT_EQ(n, rows[i].status ? rows[i].status : (int)strlen(expected));
        CHECK_STR_EQ(text, expected);
        CHECK_INT_EQ(stave_trace_event_json(&e, text, strlen(expected) + 1), n);
        CHECK_INT_EQ(stave_trace_event_json(&e, text, strlen(expected)), STAVE_ELIMIT);
        CHECK_INT_EQ(stave_trace_writer_push_event(w, &e), rows[i].status);
        snprintf(file + strlen(file), sizeof file - strlen(file), "%s%s", i ? "," : "", expected);
        char whole[2100];
        snprintf(whole, sizeof whole, "%s]", file);
        CHECK_INT_EQ(stave_trace_writer_flush(w, NULL), 0);
        CHECK_STR_EQ(test_read_file(path), whole);
    }
    CHECK_INT_EQ(stave_trace_writer_flush(w, NULL), 0);
    stave_trace_writer_close(w);
}

/* Names of every length, with bytes that become six, around where the heap is used. */
TEST(texts_of_every_length)
{
    static char name[4000], json[24000], rest[300];
    snprintf(rest, sizeof rest,
             "\",\"cat\":\"c\",\"ph\":\"X\",\"ts\":%llu,\"dur\":%llu,\"pid\":%u,\"tid\":%u,"
             "\"args\":{\"k\":1}}",
             (unsigned long long)UINT64_MAX, (unsigned long long)UINT64_MAX, UINT32_MAX,
             UINT32_MAX);
    for (size_t n = 200; n < 800; n++) {
        CONTEXT("%zu bytes", n);
        memset(name, 1, n);
        name[n] = '\0';
        struct stave_trace_event e = make_event(name, "{\"k\":1}");
        e.ts = e.dur = UINT64_MAX;
        e.pid = e.tid = UINT32_MAX;
        int len = stave_trace_event_json(&e, json, sizeof json);
        if (!CHECK_INT_EQ(len, 9 + 6 * n + strlen(rest)))
            break;
        CHECK_MEM_EQ(json, "{\"name\":\"", 9);
        for (size_t i = 0; i < n; i++)
            CHECK_MEM_EQ(json + 9 + 6 * i, "\\u0001", 6);
        CHECK_STR_EQ(json + 9 + 6 * n, rest);
    }
    struct stave_trace_event e = make_event(name, NULL);
    e.name_len = (1 << 26) + 1;
    CHECK_INT_EQ(stave_trace_event_json(&e, json, sizeof json), STAVE_ELIMIT);
    test_alloc_fail(1);
    e.name_len = 3000;
    CHECK_INT_EQ(stave_trace_event_json(&e, json, sizeof json), STAVE_EMEMORY);
    test_alloc_fail(0);
}

/* Arguments alone fill the space to the last byte. */
TEST(arguments_of_every_length)
{
    static char args[4000], json[6000];
    for (size_t n = 10; n < 3000; n++) {
        CONTEXT("%zu bytes", n);
        memset(args, 'x', n);
        memcpy(args, "{\"k\":\"", 6);
        memcpy(args + n - 2, "\"}", 3);
        struct stave_trace_event e = make_event("n", args);
        int len = stave_trace_event_json(&e, json, sizeof json);
        if (!CHECK_INT_EQ(len, strlen(PLAIN) + 8 + n + 1) ||
            !CHECK_MEM_EQ(json + strlen(PLAIN), ",\"args\":", 8) ||
            !CHECK_MEM_EQ(json + strlen(PLAIN) + 8, args, n))
            break;
    }
}

TEST(writers_of_one_file)
{
    char path[300];
    snprintf(path, sizeof path, "%s", test_scratch("t.json"));
    size_t before = open_descriptors();
    struct stave_trace_writer *a = stave_trace_writer_open(path),
                              *b = stave_trace_writer_open(path);
    CHECK(a && a == b);
    CHECK_UINT_EQ(open_descriptors(), before + 1);
    struct stat st;
    bool has_flag = false;
    for (int fd = 3; fd < 256; fd++)
        if (fcntl(fd, F_GETFD) == FD_CLOEXEC && fstat(fd, &st) == 0 && st.st_size == 2)
            has_flag = true; /* programs that are started do not get it */
    CHECK(has_flag);
    stave_trace_writer_close(a);
    CHECK_UINT_EQ(open_descriptors(), before + 1);
    CHECK_INT_EQ(stave_trace_writer_push(b, "n", "c", 1, 2), 0);
    stave_trace_writer_close(b);
    CHECK_UINT_EQ(open_descriptors(), before);
    CHECK(strstr(test_read_file(path), "\"n\"") != NULL);
    stave_trace_writer_close(NULL);
    CHECK(!stave_trace_writer_is_enabled(NULL) && stave_trace_writer_open("") == NULL);
    CHECK_INT_EQ(stave_trace_writer_push(NULL, "n", "c", 1, 2), 0);
    CHECK_INT_EQ(stave_trace_writer_flush(NULL, NULL), 0);
}

/* What cannot be opened says so once, and every event fails. */
TEST(files_that_cannot_be_opened)
{
    static char longer[5000];
    memset(longer, 'x', sizeof longer - 1);
    const struct {
        const char *path;
        int error;
    } rows[] = {{"/nowhere/at/all.json", ENOENT}, {"/dev/null", ESPIPE}, {longer, ENAMETOOLONG}};
    int kept = dup(STDERR_FILENO), fd = open("/dev/null", O_WRONLY);
    dup2(fd, STDERR_FILENO);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct stave_trace_writer *w = stave_trace_writer_open(rows[i].path);
        CHECK(stave_trace_writer_is_enabled(w));
        CHECK_INT_EQ(stave_trace_writer_push(w, "n", "c", 1, 2), STAVE_EOUTPUT);
        struct stave_error error;
        CHECK_INT_EQ(stave_trace_writer_flush(w, &error), STAVE_EOUTPUT);
        CHECK_INT_EQ(error.os_error, rows[i].error);
        stave_trace_writer_close(w);
    }
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(fd);
}

/* What the writer says on standard error is not of interest. */
static int quiet_begin(void)
{
    int kept = dup(STDERR_FILENO), fd = open("/dev/null", O_WRONLY);
    dup2(fd, STDERR_FILENO);
    close(fd);
    return kept;
}

static void quiet_end(int kept)
{
    dup2(kept, STDERR_FILENO);
    close(kept);
}

/* A limit of the size: as many whole events as fit are in the file, the others wait and follow when
 * there is space. */
TEST(a_file_at_its_limit)
{
    char path[300], name[200], file[2000];
    snprintf(path, sizeof path, "%s", test_scratch("t.json"));
    struct stave_trace_writer *w = stave_trace_writer_open(path);
    struct rlimit usual, small;
    REQUIRE(getrlimit(RLIMIT_FSIZE, &usual) == 0);
    memset(name, '}', sizeof name);
    memcpy(name + 50, "\"],[{\\", 6);
    name[sizeof name - 1] = '\0';
    struct stave_trace_event e = make_event("n", "{\"k\":[{}]}"), large = make_event(name, NULL);
    small = (struct rlimit){2 * (strlen(PLAIN ",\"args\":{\"k\":[{}]}}") + 1) + 1, usual.rlim_max};
    CHECK_INT_EQ(stave_trace_writer_push_event(w, &e), 0);
    CHECK_INT_EQ(stave_trace_writer_flush(w, NULL), 0);
    int kept = quiet_begin();
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    CHECK_INT_EQ(stave_trace_writer_push_event(w, &e), 0); /* to the byte */
    CHECK_INT_EQ(stave_trace_writer_push_event(w, &large), 0);
    CHECK_INT_EQ(stave_trace_writer_push_event(w, &e), 0);
    CHECK_INT_EQ(stave_trace_writer_flush(w, NULL), STAVE_EOUTPUT);
#define WITH_ARGS PLAIN ",\"args\":{\"k\":[{}]}}"
    CHECK_STR_EQ(test_read_file(path), "[" WITH_ARGS "," WITH_ARGS "]");
    setrlimit(RLIMIT_FSIZE, &usual);
    CHECK_INT_EQ(stave_trace_writer_flush(w, NULL), 0);
    quiet_end(kept);
    int n = stave_trace_event_json(&large, name, 0);
    CHECK_INT_EQ(n, STAVE_ELIMIT);
    snprintf(file, sizeof file, "%s", test_read_file(path));
    CHECK(strstr(file, "}}}\\\"],[{\\\\}}}") && strlen(file) > 400);
    CHECK_STR_EQ(file + strlen(file) - strlen(WITH_ARGS) - 2, "," WITH_ARGS "]");
    stave_trace_writer_close(w);
}

/* Where the file takes no more for long: what does not fit into memory is lost, and counted as an
 * error. */
TEST(memory_that_is_full)
{
    char path[300];
    snprintf(path, sizeof path, "%s", test_scratch("t.json"));
    struct stave_trace_writer *w = stave_trace_writer_open(path);
    struct rlimit usual, small;
    struct stave_trace_event e = make_event("n", NULL);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &usual) == 0);
    small = (struct rlimit){100, usual.rlim_max};
    int kept = quiet_begin(), status = 0, n = 0;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    while (n < 10000 && (status = stave_trace_writer_push_event(w, &e)) == 0)
        n++;
    CHECK_INT_EQ(status, STAVE_EOUTPUT);
    CHECK(n > 800 && n < 1100);
    setrlimit(RLIMIT_FSIZE, &usual);
    CHECK_INT_EQ(stave_trace_writer_flush(w, NULL), STAVE_EOUTPUT); /* of the one that is lost */
    quiet_end(kept);
    struct stat st;
    REQUIRE(stat(path, &st) == 0);
    CHECK_INT_EQ(st.st_size, 1 + n * (int)(strlen(PLAIN) + 2));
    stave_trace_writer_close(w);
}

TEST(files_that_others_change)
{
    char path[300], moved[300], folder[300];
    snprintf(folder, sizeof folder, "%s", test_scratch("sessions")); /* an event stays there */
    setenv("STAVE_SESSION_DIR", folder, 1);
    snprintf(path, sizeof path, "%s", test_scratch("t.json"));
    snprintf(moved, sizeof moved, "%s", test_scratch("moved.json"));
    struct stave_trace_writer *w = stave_trace_writer_open(path);
    struct stave_trace_event e = make_event("n", NULL);
#define PUSH()                                             \
    CHECK_INT_EQ(stave_trace_writer_push_event(w, &e), 0); \
    CHECK_INT_EQ(stave_trace_writer_flush(w, NULL), 0)
    PUSH();
    REQUIRE(truncate(path, 0) == 0);
    PUSH();
    CHECK_STR_EQ(test_read_file(path), "[" PLAIN "}]");
    REQUIRE(unlink(path) == 0);
    PUSH();
    CHECK_STR_EQ(test_read_file(path), "[" PLAIN "}]");
    PUSH();
    REQUIRE(rename(path, moved) == 0); /* the file keeps its descriptor */
    PUSH();
    CHECK_STR_EQ(test_read_file(moved), "[" PLAIN "}," PLAIN "}," PLAIN "}]");
    REQUIRE(unlink(moved) == 0);
    test_write_file(path, "of another program");
    int kept = quiet_begin();
    CHECK_INT_EQ(stave_trace_writer_push_event(w, &e), 0);
    CHECK_INT_EQ(stave_trace_writer_flush(w, NULL), STAVE_EOUTPUT);
    CHECK_STR_EQ(test_read_file(path), "of another program");
    stave_trace_writer_close(w);
    quiet_end(kept);
}

/* ---- what a killed process leaves ---- */

/* A child opens the writer, whose first event is written at once; the others wait when it ends
 * without the end of a program. */
static void leave(const char *path, int n)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        struct stave_trace_writer *w = stave_trace_writer_open(path);
        struct stave_trace_event e = make_event("n", NULL);
        for (int i = 0; i < n; i++)
            stave_trace_writer_push_event(w, &e);
        _exit(0);
    }
    REQUIRE(waitpid(child, NULL, 0) == child);
}

struct found {
    struct sv_unwritten_left left;
    int n;
};

static int keep_it(void *ctx, const struct sv_unwritten_left *l)
{
    struct found *f = ctx;
    f->left = *l;
    f->n++;
    return 0;
}

static struct found *find_left(void)
{
    static struct found f;
    f = (struct found){0};
    sv_unwritten_each(keep_it, &f);
    return &f;
}

TEST(events_of_a_killed_process)
{
    char path[300], folder[300];
    snprintf(path, sizeof path, "%s", test_scratch("t.json"));
    snprintf(folder, sizeof folder, "%s", test_scratch("sessions"));
    setenv("STAVE_SESSION_DIR", folder, 1);
    struct sv_err err = {0};
    leave(path, 3);
    struct found *f = find_left();
    REQUIRE(f->n == 1);
    CHECK_STR_EQ(f->left.path, path);
    CHECK(!sv_unwritten_is_held(&f->left));
    CHECK_UINT_EQ(f->left.n, 2 * (strlen(PLAIN) + 2));
    CHECK_STR_EQ(test_read_file(path), "[" PLAIN "}]");
    for (int i = 0; i < 2; i++) { /* the second time changes nothing */
        CHECK_INT_EQ(sv_unwritten_complete(&f->left, path, &err), 0);
        CHECK_STR_EQ(test_read_file(path), "[" PLAIN "}," PLAIN "}," PLAIN "}]");
    }
    /* Killed inside of the write: a part of the text, without the bracket. */
    REQUIRE(truncate(path, (off_t)(f->left.at + 10)) == 0);
    CHECK_INT_EQ(sv_unwritten_complete(&f->left, path, &err), 0);
    CHECK_STR_EQ(test_read_file(path), "[" PLAIN "}," PLAIN "}," PLAIN "}]");
    int fd = open(path, O_RDWR);
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX) == 0);
    CHECK(sv_unwritten_is_held(&f->left));
    CHECK_INT_EQ(sv_unwritten_complete(&f->left, path, &err), SV_EHELD);
    close(fd);
    REQUIRE(truncate(path, 0) == 0);
    sv_err_clear(&err);
    CHECK_INT_EQ(sv_unwritten_complete(&f->left, path, &err), SV_EINPUT);
    CHECK_STR_EQ(test_read_file(path), "");
    leave(path, 1); /* begins anew: what was left before is of no use */
    f = find_left();
    CHECK_INT_EQ(f->n, 1);
    CHECK_UINT_EQ(f->left.n, 0);
    sv_unwritten_discard(f->left.dir);
    CHECK_INT_EQ(find_left()->n, 0);
}

/* Nothing of a damaged one is believed, and none has two names. */
TEST(events_that_are_damaged)
{
    char path[300], folder[300], file[SV_PATH_MAX + 10];
    static uint8_t bytes[SV_UNWRITTEN_HEAD + SV_UNWRITTEN_RING];
    snprintf(path, sizeof path, "%s", test_scratch("t.json"));
    snprintf(folder, sizeof folder, "%s", test_scratch("sessions"));
    setenv("STAVE_SESSION_DIR", folder, 1);
    leave(path, 3);
    struct found *f = find_left();
    REQUIRE(f->n == 1);
    snprintf(file, sizeof file, "%.1000s/events", f->left.dir);
    int fd = open(file, O_RDWR);
    REQUIRE(fd >= 0 && read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    struct sv_unwritten *u = (struct sv_unwritten *)(void *)bytes, good = *u;
    for (int i = 0; i < 8; i++) {
        CONTEXT("damage %d", i);
        *u = good;
        switch (i) {
        case 0: u->magic++; break;
        case 1: u->version++; break;
        case 2: u->pushed = u->written - 1; break;
        case 3: u->pushed = u->written + SV_UNWRITTEN_RING + 1; break;
        case 4: u->origin = u->written + 1; break;
        case 5: memset(u->path, 'x', sizeof u->path); break;
        case 6: memset(u->path, '/', sizeof u->path); break;
        default: u->path[0] = '\0'; break;
        }
        REQUIRE(pwrite(fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes);
        CHECK_INT_EQ(find_left()->n, 0);
    }
    *u = good;
    REQUIRE(pwrite(fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes);
    CHECK_INT_EQ(find_left()->n, 1);
    REQUIRE(fchmod(fd, 0644) == 0);
    CHECK_INT_EQ(find_left()->n, 0);
    REQUIRE(fchmod(fd, 0600) == 0 && ftruncate(fd, 5000) == 0);
    CHECK_INT_EQ(find_left()->n, 0);
    close(fd);
}

TEST(texts_as_json)
{
    static char text[3000], to[20000], whole[20000];
    for (size_t n = 0; n < 1100; n += 7) {
        CONTEXT("%zu bytes", n);
        size_t at = 0;
        whole[at++] = '"';
        for (size_t i = 0; i < n; i += 2) {
            memcpy(text + i, "\xc3\xa4", 2); /* pieces end between characters */
            memcpy(whole + at, "\xc3\xa4", 2);
            at += 2;
        }
        size_t len = (n + 1) / 2 * 2;
        whole[at++] = '"';
        memset(to, 'z', sizeof to);
        CHECK_UINT_EQ(stave_trace_json_text(text, len, to, sizeof to), at);
        CHECK_MEM_EQ(to, whole, at);
        CHECK_INT_EQ(to[at], 'z');
        memset(to, 'z', sizeof to);
        CHECK_UINT_EQ(stave_trace_json_text(text, len, to, at / 2), at);
        CHECK_MEM_EQ(to, whole, at / 2);
        CHECK_INT_EQ(to[at / 2], 'z');
    }
    CHECK_UINT_EQ(stave_trace_json_text("\1\"", 2, to, sizeof to), 10);
    CHECK_MEM_EQ(to, "\"\\u0001\\\"\"", 10);
}
