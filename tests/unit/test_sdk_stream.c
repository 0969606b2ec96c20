/* Streams: addresses, and a program with a listener that is made by hand, or with none. */
#include "sdk/session/stream_address.h"
#include "sdk/write/stream_wire.h"
#include "sdk/write/writer.h"
#include "tests/unit/sdk_scene.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(addresses)
{
    static const struct {
        const char *text;
        uint32_t host; /* 0: it is refused */
        uint16_t port;
    } rows[] = {{"tcp:127.0.0.1:8000", 0x7f000001, 8000},
                {"tcp:localhost:1", 0x7f000001, 1},
                {"tcp:10.1.2.3:65535", 0x0a010203, 65535},
                {"tcp:10.1.2.3:65536", 0, 0},
                {"tcp:10.1.2.3:0", 0, 0},
                {"tcp:10.1.2.3:", 0, 0},
                {"tcp:10.1.2.3:8x", 0, 0},
                {"tcp:10.1.2.3", 0, 0},
                {"tcp:10.1.2:80", 0, 0},
                {"tcp::80", 0, 0},
                {"tcp:", 0, 0},
                {"tcp:name.example:80", 0, 0},
                {"tcp:0123456789012345678901234567890123456789012345678901234567890123:80", 0, 0},
                {"unix:", 0, 0}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        union sv_stream_address a;
        CONTEXT("%s", rows[i].text);
        CHECK(sv_stream_is(rows[i].text));
        socklen_t size = sv_stream_parse(rows[i].text, &a);
        CHECK_UINT_EQ(size, rows[i].host ? sizeof a.inet : 0);
        CHECK((sv_stream_check(rows[i].text) == NULL) == (rows[i].host != 0));
        if (rows[i].host) {
            CHECK_INT_EQ(a.inet.sin_family, AF_INET);
            CHECK_UINT_EQ(ntohl(a.inet.sin_addr.s_addr), rows[i].host);
            CHECK_UINT_EQ(ntohs(a.inet.sin_port), rows[i].port);
        }
    }
    CHECK(!sv_stream_is("t.pftrace") && !sv_stream_is("unix") && !sv_stream_is("tcp.pftrace"));
    union sv_stream_address a;
    char path[160] = "unix:";
    size_t most = sizeof a.local.sun_path - 1;
    memset(path + 5, 'x', most);
    CHECK_UINT_EQ(sv_stream_parse(path, &a), sizeof a.local);
    CHECK(a.local.sun_family == AF_UNIX && strcmp(a.local.sun_path, path + 5) == 0);
    path[5 + most] = 'x';
    CHECK_UINT_EQ(sv_stream_parse(path, &a), 0);
}

/* ---- a listener ---- */

struct listener {
    int fd;
    char address[200], greeting[300];
    const char *reply;
    int close_after; /* so many frames, without an answer to the last; 0: never */
    struct sv_buf bytes;
    struct sv_frame last;
    int frames;
    bool has_ended; /* the connection, by the program */
    pthread_t thread;
    sem_t is_there;
};

static bool get(int fd, void *to, size_t n)
{
    return n == 0 || recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

static void *serve(void *arg)
{
    struct listener *l = arg;
    sem_post(&l->is_there);
    int fd = accept(l->fd, NULL, NULL);
    size_t n = 0;
    while (n + 1 < sizeof l->greeting && get(fd, l->greeting + n, 1) && l->greeting[n] != '\n')
        n++;
    l->greeting[n] = '\0';
    if (send(fd, l->reply, strlen(l->reply), MSG_NOSIGNAL) < 0 || strncmp(l->reply, "OK", 2) != 0) {
        close(fd);
        return NULL;
    }
    uint64_t taken = 0;
    uint8_t head[SV_FRAME_HEAD], answer[SV_TAKEN_BYTES];
    while (get(fd, head, sizeof head)) {
        l->last = sv_frame_get(head);
        char *bytes = malloc(l->last.bytes + 1);
        if (!bytes || !get(fd, bytes, l->last.bytes))
            break;
        __atomic_add_fetch(&l->frames, 1, __ATOMIC_RELEASE);
        if (l->close_after && l->frames == l->close_after) {
            free(bytes);
            close(fd);
            return NULL;
        }
        sv_buf_add(&l->bytes, bytes, l->last.bytes);
        free(bytes);
        taken += sizeof head + l->last.bytes;
        sv_number_put(answer, taken);
        if (send(fd, answer, 3, MSG_NOSIGNAL) != 3 || send(fd, answer + 3, 5, MSG_NOSIGNAL) != 5)
            break;
    }
    l->has_ended = recv(fd, head, 1, 0) == 0;
    close(fd);
    return NULL;
}

static void listen_at(struct listener *l, const char *reply, int close_after)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int small = 4096;
    memset(l, 0, sizeof *l);
    l->reply = reply;
    l->close_after = close_after;
    sv_buf_init(&l->bytes, (size_t)1 << 28);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", test_scratch("socket"));
    unlink(a.sun_path);
    snprintf(l->address, sizeof l->address, "unix:%s", a.sun_path);
    l->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(l->fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(l->fd, 4) == 0);
    setsockopt(l->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    REQUIRE(sem_init(&l->is_there, 0, 0) == 0);
    REQUIRE(pthread_create(&l->thread, NULL, serve, l) == 0);
    /* A fork while it starts would leave the sanitizer's allocator locked in the child. */
    REQUIRE(sem_wait(&l->is_there) == 0);
}

static void end_listener(struct listener *l)
{
    pthread_join(l->thread, NULL);
    close(l->fd);
}

static int start_to(const char *address)
{
    struct stave_options o = {
        .size = sizeof o, .out = address, .full = STAVE_FULL_BLOCK, .buffer_bytes = 4 << 20};
    return stave_start(&o, NULL);
}

/* Frames that are larger than what a socket takes at once. */
TEST(a_listener_gets_everything)
{
    static struct sdk_scene s;
    static struct listener l;
    static char text[30000];
    memset(text, 'x', sizeof text - 1);
    sdk_fresh(&s);
    setenv("STAVE_TOKEN", "secret", 1);
    listen_at(&l, "OK\n", 0);
    REQUIRE(start_to(l.address) == 0);
    sdk_hold();
    for (int i = 0; i < 40; i++)
        STAVE_INSTANT("c", "large", "i", i, "text", text);
    sdk_release();
    CHECK_INT_EQ(stave_flush(), 0);
    struct stave_counts n = {.size = sizeof n};
    stave_count(&n);
    CHECK_UINT_EQ(n.events, 40);
    STAVE_BEGIN("c", "last");
    STAVE_END("c");
    CHECK_INT_EQ(stave_stop(), 0);
    unsetenv("STAVE_TOKEN");
    end_listener(&l);
    CHECK_STR_EQ(l.greeting, SV_GREETING "secret");
    CHECK(l.has_ended && l.frames >= 2);
    CHECK_UINT_EQ(l.last.flags, SV_FRAME_LAST);
    CHECK_UINT_EQ(l.last.events, 41);
    read_bytes(&s.file, l.bytes.data, l.bytes.len, 0);
    s.is_read = true;
    check_no_damage(&s.file);
    REQUIRE(s.file.got.n == 42);
    for (size_t i = 0; i < 40; i++)
        CHECK(s.file.got.events[i].n_args == 2 && s.file.got.events[i].args[0].i == (int64_t)i &&
              s.file.got.events[i].args[1].size == sizeof text - 1);
    sv_buf_fini(&l.bytes);
    sdk_done(&s);
}

#define X32       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LONG_LINE X32 X32 X32 X32 X32 X32 X32 X32 "\n" /* longer than an answer may be */

/* Where there is none, or one that goes, events go to a file; nothing is lost or twice. */
TEST(without_a_listener)
{
    static const struct {
        const char *reply, *said; /* NULL: nobody is there */
        int close_after;
    } rows[] = {{NULL, "cannot reach the listener", 0},
                {"NO for \x1b a reason\n", "the listener refused: for ? a reason;", 0},
                {"HELLO\n", "the listener refused: its protocol is unknown;", 0},
                {"", "the listener has closed the connection;", 0},
                {LONG_LINE, "the listener has closed the connection;", 0},
                {"OK\n", "the listener has closed the connection;", 1},
                {"OK\n", "the listener has closed the connection;", 2}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        static struct sdk_scene s;
        static struct listener l;
        CONTEXT("row %zu", i);
        sdk_fresh(&s);
        setenv("STAVE_STREAM_FILE", s.out, 1);
        sdk_hear();
        if (rows[i].reply)
            listen_at(&l, rows[i].reply, rows[i].close_after);
        else
            snprintf(l.address, sizeof l.address, "unix:%s", test_scratch("nobody"));
        REQUIRE(start_to(l.address) == 0);
        STAVE_INSTANT("c", "first");
        CHECK_INT_EQ(stave_flush(), 0);
        STAVE_INSTANT("c", "second");
        CHECK_INT_EQ(stave_flush(), 0);
        STAVE_INSTANT("c", "third");
        const char *lines = sdk_stop(&s); /* the file */
        const char *all =
            "instant thread first c\ninstant thread second c\ninstant thread third c\n";
        if (rows[i].reply)
            end_listener(&l);
        size_t frames = rows[i].close_after == 2 ? (size_t)l.frames - 1 : 0;
        CHECK_STR_EQ(lines, frames ? strstr(all, "instant thread second") : all);
        if (rows[i].reply) {
            CHECK(frames ? l.bytes.len > 0 : l.bytes.len == 0);
            sv_buf_fini(&l.bytes);
        }
        sdk_done(&s);
        const char *text = sdk_heard();
        CHECK(strstr(text, rows[i].said) != NULL);
        CHECK(strstr(text, "events go to ") && strstr(text, s.out));
        unsetenv("STAVE_STREAM_FILE");
        unlink(s.out);
    }
}

/* Each number of a file once more. */
static void mark(const struct read *file, char *seen, size_t size)
{
    for (size_t i = 0; i < file->got.n; i++) {
        const struct sv_event *e = &file->got.events[i];
        CHECK(e->kind == SV_INSTANT && e->n_args == 1 && (uint64_t)e->args[0].i < size);
        if (e->n_args == 1 && (uint64_t)e->args[0].i < size)
            seen[e->args[0].i]++;
    }
}

/* After a while the program looks for a listener again: from then on it has the events. */
TEST(the_next_listener_gets_the_rest)
{
    static struct sdk_scene s;
    static struct listener l;
    enum { MOST = 100000 };
    static char seen[MOST];
    int n = 0;
    sdk_fresh(&s);
    setenv("STAVE_STREAM_FILE", s.out, 1);
    sdk_hear();
    listen_at(&l, "OK\n", 1);
    REQUIRE(start_to(l.address) == 0);
    STAVE_INSTANT("c", "n", "i", n++);
    CHECK_INT_EQ(stave_flush(), 0);
    end_listener(&l);
    sv_buf_fini(&l.bytes);
    listen_at(&l, "OK\n", 0);
    while (__atomic_load_n(&l.frames, __ATOMIC_ACQUIRE) == 0 && n < MOST) {
        STAVE_INSTANT("c", "n", "i", n++);
        CHECK_INT_EQ(stave_flush(), 0);
        usleep(2000);
    }
    STAVE_INSTANT("c", "n", "i", n++);
    sdk_stop(&s); /* the file */
    mark(&s.file, seen, MOST);
    CHECK(s.file.got.n > 0 && s.file.got.n < (size_t)n);
    end_listener(&l);
    CHECK_UINT_EQ(l.last.flags, SV_FRAME_LAST);
    CHECK_UINT_EQ(l.last.events + s.file.got.n, n);
    done(&s.file, NULL);
    read_bytes(&s.file, l.bytes.data, l.bytes.len, 0);
    check_no_damage(&s.file);
    mark(&s.file, seen, MOST);
    for (int i = 0; i < n; i++)
        CHECK_INT_EQ(seen[i], 1);
    sv_buf_fini(&l.bytes);
    sdk_done(&s);
    CHECK(strstr(sdk_heard(), "the listener has closed the connection;") != NULL);
    unsetenv("STAVE_STREAM_FILE");
}

/* Without a place for such a file tracing is off, or ends; the rings keep what was not taken. */
TEST(without_a_listener_and_a_file)
{
    static struct sdk_scene s;
    sdk_fresh(&s);
    setenv("STAVE_STREAM_FILE", "", 1);
    sdk_hear();
    char address[300];
    snprintf(address, sizeof address, "unix:%s", test_scratch("nobody"));
    CHECK_INT_EQ(start_to(address), STAVE_EOUTPUT);
    CHECK(!stave_enabled(NULL));
    unsetenv("STAVE_STREAM_FILE");
    sdk_done(&s);
    CHECK(strstr(sdk_heard(), "cannot reach the listener") != NULL);
}

/* A file of an earlier program is left alone. */
TEST(the_file_gets_a_number)
{
    static struct sdk_scene s;
    sdk_fresh(&s);
    test_write_file(s.out, "old");
    setenv("STAVE_STREAM_FILE", s.out, 1);
    sdk_hear();
    char address[300];
    snprintf(address, sizeof address, "unix:%s", test_scratch("nobody"));
    REQUIRE(start_to(address) == 0);
    STAVE_INSTANT("c", "n");
    CHECK_INT_EQ(stave_stop(), 0);
    CHECK_STR_EQ(sdk_read(&s, test_scratch("t.2.pftrace")), "instant thread n c\n");
    CHECK_STR_EQ(test_read_file(s.out), "old");
    unsetenv("STAVE_STREAM_FILE");
    sdk_done(&s);
    sdk_heard();
}

/* As under an old kernel: the writer's descriptors are in the program's table. */
static bool forbid_own_tables(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unshare, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {TEST_COUNT(code), code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

/* A program with a child that lives until a byte comes. Its exit code says what was wrong. */
static int run_with_child(const char *address, bool shares, int from)
{
    if (shares && !forbid_own_tables())
        return 2;
    if (start_to(address) != 0 || sv_process->writer->has_own_table == shares)
        return 3;
    STAVE_INSTANT("c", "n");
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        _exit(read(from, &c, 1) == 1 ? 0 : 1);
    }
    STAVE_INSTANT("c", "n");
    return pid < 0 || stave_stop() != 0 ? 4 : 0;
}

/* A child that lives longer does not keep the connection. With ThreadSanitizer the table is always
 * the program's. */
TEST(a_forked_child_has_no_connection)
{
    for (int shares = TEST_HAS_TSAN; shares < 2; shares++) {
        static struct sdk_scene s;
        static struct listener l;
        CONTEXT("%d", shares);
        sdk_fresh(&s);
        listen_at(&l, "OK\n", 0);
        int ends[2], status;
        REQUIRE(pipe(ends) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            int code = run_with_child(l.address, shares, ends[0]);
            stave_finish();
            _exit(code);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        end_listener(&l); /* which sees the end of the connection, and only then the byte comes */
        CHECK(l.has_ended && l.last.events == 2 && l.last.flags == SV_FRAME_LAST);
        CHECK(write(ends[1], "x", 1) == 1);
        close(ends[0]);
        close(ends[1]);
        sv_buf_fini(&l.bytes);
        sdk_done(&s);
    }
}
