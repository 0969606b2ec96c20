/* Ranks that relate their clocks: the server of pings is asked by hand, its client is answered by
 * hand, and workers meet both. tests/system/sync.sh has clocks that really differ. */
#include "core/base/buf.h"
#include "core/files/process_id.h"
#include "record/sync/ping.h"
#include "record/sync/sync.h"
#include "tests/harness/test.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND ((int64_t)1000000000)
#define TOKEN  "00112233445566778899aabbccddeeff"
enum { WELCOME = 368, PINGS_MAX = 64, PATIENCE_MS = 5000 };

static const uint8_t *token_bytes(void)
{
    static uint8_t token[SV_PING_TOKEN];
    REQUIRE(sv_ping_token_parse(TOKEN, token));
    return token;
}

TEST(tokens)
{
    static const struct {
        const char *text;
        bool is_one;
    } rows[] = {{TOKEN, true},
                {TOKEN "\n", true},
                {TOKEN "0", false},
                {TOKEN " ", false},
                {"00112233445566778899aabbccddeef", false},
                {"00112233445566778899aabbccddeefg", false},
                {"g0112233445566778899aabbccddeeff", false},
                {"00112233445566778899AABBCCDDEEFF", false},
                {"0011223344556677889:aabbccddeeff", false},
                {"0011223344556677889/aabbccddeeff", false},
                {"", false}};
    uint8_t token[SV_PING_TOKEN], other[SV_PING_TOKEN];
    char text[SV_PING_TOKEN_TEXT];
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("'%s'", rows[i].text);
        CHECK_INT_EQ(sv_ping_token_parse(rows[i].text, token), rows[i].is_one);
    }
    REQUIRE(sv_ping_token_parse("0123456789abcdef00ff10a0090f9f99", token));
    CHECK_INT_EQ(token[0], 0x01);
    CHECK_INT_EQ(token[5], 0xab);
    CHECK_INT_EQ(token[15], 0x99);
    sv_ping_token_text(token, text);
    CHECK_STR_EQ(text, "0123456789abcdef00ff10a0090f9f99");
    CHECK(sv_ping_token_new(token) && sv_ping_token_new(other));
    CHECK(memcmp(token, other, sizeof token) != 0);
}

/* ---- addresses ---- */

/* The server's own name of itself without the port, which must not be 0; or the error. */
static const char *listens_as(const char *address)
{
    static char text[600];
    struct sv_ping_server *s;
    struct sv_err err = {0};
    int code = sv_ping_server_open(address, token_bytes(), &s, &err);
    if (code < 0) {
        CHECK(!s);
        snprintf(text, sizeof text, "%d %s", code, err.msg);
        return text;
    }
    snprintf(text, sizeof text, "%s", sv_ping_server_address(s));
    char *port = strrchr(text, ':');
    REQUIRE(port && strtol(port + 1, NULL, 10) > 0);
    *port = '\0';
    sv_ping_server_close(s);
    return text;
}

TEST(where_a_server_listens)
{
    char long_host[1100], usage[64];
    memset(long_host, 'h', sizeof long_host);
    long_host[sizeof long_host - 1] = '\0';
    CHECK_STR_EQ(listens_as("127.0.0.1"), "127.0.0.1");
    CHECK_STR_EQ(listens_as("127.0.0.1:"), "127.0.0.1");
    CHECK_STR_EQ(listens_as("127.0.0.1:0"), "127.0.0.1");
    CHECK_STR_EQ(listens_as("[127.0.0.1]"), "127.0.0.1");
    CHECK_STR_EQ(listens_as("[127.0.0.1]:0"), "127.0.0.1");
    snprintf(usage, sizeof usage, "%d ", SV_EUSAGE);
    static const char *const bad[] = {"",
                                      ":0",
                                      "[",
                                      "[]:0",
                                      "[127.0.0.1",
                                      "127.0.0.1:x",
                                      "127.0.0.1:1x",
                                      "[127.0.0.1]x",
                                      "[127.0.0.1]0",
                                      "127.0.0.1:1:2"};
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        char want[200];
        CONTEXT("%s", bad[i]);
        snprintf(want, sizeof want, "%d '%s' is not HOST or HOST:PORT", SV_EUSAGE, bad[i]);
        CHECK_STR_EQ(listens_as(bad[i]), want);
    }
    CHECK(strncmp(listens_as(long_host), usage, strlen(usage)) == 0);
    char port[80];
    snprintf(port, sizeof port, "127.0.0.1:%060d", 1);
    CHECK(strncmp(listens_as(port), usage, strlen(usage)) == 0);
    /* No such address here, and no such name. */
    snprintf(usage, sizeof usage, "%d cannot listen on 192.0.2.1: ", SV_EIO);
    CHECK(strncmp(listens_as("192.0.2.1"), usage, strlen(usage)) == 0);
    snprintf(usage, sizeof usage, "%d not..a..name: ", SV_EIO);
    CHECK(strncmp(listens_as("not..a..name"), usage, strlen(usage)) == 0);
}

TEST(a_server_may_have_many_descriptors)
{
    struct rlimit was, low, now;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &was) == 0);
    if (was.rlim_max < 8500)
        SKIP("the limit of descriptors is low here");
    low = (struct rlimit){100, was.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
    CHECK_STR_EQ(listens_as("127.0.0.1"), "127.0.0.1");
    REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0);
    CHECK_UINT_EQ(now.rlim_cur, 8192 + 256);
    low = (struct rlimit){100, 200};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
    CHECK_STR_EQ(listens_as("127.0.0.1"), "127.0.0.1");
    REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0);
    CHECK_UINT_EQ(now.rlim_cur, 200);
}

/* ---- the server, asked by hand ---- */

static int connect_to(const char *address)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)strtol(strrchr(address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0);
    return fd;
}

/* Something is on its way to it. */
static void turn(struct sv_ping_server *s)
{
    sv_ping_server_turn(s, PATIENCE_MS);
}

static int open_peer(struct sv_ping_server *s)
{
    int fd = connect_to(sv_ping_server_address(s));
    turn(s);
    return fd;
}

static void say(struct sv_ping_server *s, int fd, const void *bytes, size_t n)
{
    CHECK_INT_EQ(send(fd, bytes, n, MSG_NOSIGNAL), n);
    turn(s);
}

/* What comes: bytes, or 0 when it was cut off. */
static ssize_t heard(int fd, void *to, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    poll(&p, 1, PATIENCE_MS);
    return recv(fd, to, size, MSG_DONTWAIT);
}

static bool is_quiet(int fd)
{
    char c;
    return recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static void hello(uint8_t to[24])
{
    memcpy(to, "STVSYNC1", 8);
    memcpy(to + 8, token_bytes(), SV_PING_TOKEN);
}

static int open_friend(struct sv_ping_server *s)
{
    uint8_t in[24], out[WELCOME + 1];
    struct sv_clock_owner self;
    hello(in);
    int fd = open_peer(s);
    say(s, fd, in, 10);
    CHECK(is_quiet(fd));
    say(s, fd, in + 10, 14);
    CHECK_INT_EQ(heard(fd, out, sizeof out), WELCOME);
    sv_clock_owner_self(&self);
    CHECK(memcmp(out, "STVSYNC1", 8) == 0 && memcmp(out + 8, &self, sizeof self) == 0);
    return fd;
}

static struct sv_ping_server *open_server(void)
{
    struct sv_ping_server *s;
    struct sv_err err = {0};
    REQUIRE(sv_ping_server_open("127.0.0.1", token_bytes(), &s, &err) == 0);
    return s;
}

static void check_counts(const struct sv_ping_server *s, size_t met, size_t peers)
{
    CHECK_UINT_EQ(sv_ping_server_met(s), met);
    CHECK_UINT_EQ(sv_ping_server_peers(s), peers);
}

TEST(a_server_answers_with_when_it_heard)
{
    static const int64_t at[] = {100 * SECOND + 7};
    struct sv_ping_server *s = open_server();
    int a = open_friend(s), b = open_friend(s);
    uint64_t number = htole64(0x1122334455667788), out[4];
    check_counts(s, 2, 2);
    test_clock_script(at, 1);
    say(s, a, &number, 3);
    CHECK(is_quiet(a));
    say(s, a, (uint8_t *)&number + 3, 5);
    test_clock_script(NULL, 0);
    REQUIRE(heard(a, out, sizeof out) == 24);
    CHECK_UINT_EQ(out[0], number);
    CHECK_UINT_EQ(le64toh(out[1]), at[0]);
    CHECK_UINT_EQ(le64toh(out[2]), at[0]);
    CHECK(is_quiet(b));
    /* Two at once are two answers. */
    uint64_t two[2] = {htole64(1), htole64(2)}, both[7];
    int64_t before = sv_ping_now_ns();
    say(s, b, two, sizeof two);
    turn(s);
    REQUIRE(recv(b, both, 48, MSG_WAITALL) == 48);
    CHECK_UINT_EQ(both[0], two[0]);
    CHECK_UINT_EQ(both[3], two[1]);
    CHECK((int64_t)le64toh(both[1]) >= before && le64toh(both[1]) <= le64toh(both[2]));
    CHECK(le64toh(both[2]) <= le64toh(both[4]) && le64toh(both[4]) <= le64toh(both[5]));
    CHECK((int64_t)le64toh(both[5]) <= sv_ping_now_ns());
    close(a);
    turn(s);
    check_counts(s, 2, 1);
    say(s, b, two, 8);
    CHECK_INT_EQ(heard(b, both, sizeof both), 24);
    close(b);
    turn(s);
    check_counts(s, 2, 0);
    sv_ping_server_close(s);
}

TEST(who_has_no_token_is_cut_off_without_a_word)
{
    struct sv_ping_server *s = open_server();
    for (size_t i = 0; i < 24; i++) {
        uint8_t in[24], out[WELCOME];
        CONTEXT("byte %zu", i);
        hello(in);
        in[i] ^= 0x20;
        int fd = open_peer(s);
        say(s, fd, in, 24);
        CHECK_INT_EQ(heard(fd, out, sizeof out), 0);
        close(fd);
    }
    check_counts(s, 0, 0);
    close(open_friend(s));
    turn(s);
    check_counts(s, 1, 0);
    sv_ping_server_close(s);
}

TEST(the_silent_are_cut_off_after_a_while)
{
    enum { STRANGER_S = 5, FRIEND_S = 600 };
    struct sv_ping_server *s = open_server();
    int64_t at[1] = {1000 * SECOND};
    uint8_t out[8];
    test_clock_script(at, 1);
    int friend = open_friend(s), stranger = open_peer(s);
    at[0] += STRANGER_S * SECOND;
    sv_ping_server_turn(s, 0);
    CHECK(is_quiet(stranger));
    at[0] += 1; /* it looks once a second */
    sv_ping_server_turn(s, 0);
    CHECK(is_quiet(stranger));
    at[0] += SECOND - 1;
    sv_ping_server_turn(s, 0);
    CHECK_INT_EQ(heard(stranger, out, sizeof out), 0);
    CHECK(is_quiet(friend));
    check_counts(s, 1, 1);
    at[0] = (1000 + FRIEND_S) * SECOND;
    sv_ping_server_turn(s, 0);
    check_counts(s, 1, 1);
    at[0] += SECOND;
    sv_ping_server_turn(s, 0);
    check_counts(s, 1, 0);
    CHECK_INT_EQ(heard(friend, out, sizeof out), 0);
    test_clock_script(NULL, 0);
    close(friend);
    close(stranger);
    sv_ping_server_close(s);
}

/* The oldest of them goes for a new one; those with the token stay. */
TEST(strangers_are_at_most_64)
{
    enum { MOST = 64 };
    struct sv_ping_server *s = open_server();
    int64_t at[1] = {1000 * SECOND};
    int fds[MOST + 2];
    uint8_t out[8];
    test_clock_script(at, 1);
    int friend = open_friend(s);
    for (int i = 0; i < MOST + 2; i++) {
        at[0] = 1000 * SECOND +
                (i == 1 ? -1 : i); /* the second is the oldest, the first the next */
        fds[i] = open_peer(s);
        if (i == MOST - 1)
            CHECK(is_quiet(fds[1]));
        if (i == MOST) {
            CHECK_INT_EQ(heard(fds[1], out, sizeof out), 0);
            CHECK(is_quiet(fds[0]));
        }
    }
    CHECK_INT_EQ(heard(fds[0], out, sizeof out), 0);
    CHECK(is_quiet(fds[2]));
    CHECK(is_quiet(fds[MOST + 1]));
    check_counts(s, 1, 1);
    uint64_t number = 1;
    say(s, friend, &number, sizeof number);
    CHECK_INT_EQ(heard(friend, out, sizeof out), sizeof out);
    /* One that shows the token late is none any more. */
    uint8_t in[24], welcome[WELCOME];
    hello(in);
    say(s, fds[2], in, sizeof in);
    CHECK_INT_EQ(heard(fds[2], welcome, sizeof welcome), WELCOME);
    check_counts(s, 2, 2);
    int more = open_peer(s);
    CHECK(is_quiet(fds[3]));
    int yet_more = open_peer(s);
    CHECK_INT_EQ(heard(fds[3], out, sizeof out), 0);
    test_clock_script(NULL, 0);
    for (int i = 0; i < MOST + 2; i++)
        close(fds[i]);
    close(friend), close(more), close(yet_more);
    turn(s);
    sv_ping_server_close(s);
}

/* ---- the client, answered by hand ---- */

enum lie { TRUTH, SHORT, NO_TEXT, NO_BOOT, OTHER_MAGIC, OTHER_NUMBER, BACKWARD, STOPS };

struct far {
    int fd;
    char address[64];
    pthread_t thread;
    enum lie lie;
    int64_t fixed_ns, offset_ns; /* 0: its clock is ours and so much more */
    uint64_t n_pings;            /* answered */
    bool is_greeted;
};

static bool take(int fd, void *to, size_t n)
{
    return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

static void greet(struct far *f, int fd)
{
    uint8_t welcome[WELCOME] = "STVSYNC1far";
    memcpy(welcome + 8 + 256, "99999999-9999-4999-8999-999999999999", 36);
    if (f->lie == OTHER_MAGIC)
        welcome[7]++;
    if (f->lie == NO_BOOT)
        welcome[8 + 256] = 0;
    if (f->lie == NO_TEXT)
        memset(welcome + 8 + 256 + 40, 'x', 64);
    size_t n = f->lie == SHORT ? 100 : WELCOME, half = n / 2;
    if (send(fd, welcome, half, 0) != (ssize_t)half ||
        send(fd, welcome + half, n - half, 0) != (ssize_t)(n - half))
        abort();
}

/* The pings of one connection are numbered from 1 on in each round. */
static void *answer(void *arg)
{
    struct far *f = arg;
    uint8_t in[24], want[24];
    int fd = accept(f->fd, NULL, NULL);
    hello(want);
    f->is_greeted = take(fd, in, sizeof in) && memcmp(in, want, sizeof in) == 0;
    greet(f, fd);
    for (uint64_t number; f->lie != SHORT && take(fd, &number, sizeof number);) {
        struct timespec t;
        clock_gettime(CLOCK_BOOTTIME, &t);
        int64_t own = (int64_t)t.tv_sec * SECOND + t.tv_nsec;
        int64_t now = (f->fixed_ns ? f->fixed_ns : own) + f->offset_ns;
        if (f->lie == STOPS && f->n_pings == 5)
            break;
        f->n_pings++;
        uint64_t out[3] = {f->lie == OTHER_NUMBER ? number + 1 : number, htole64((uint64_t)now),
                           htole64((uint64_t)(f->lie == BACKWARD ? now - SECOND : now))};
        if (send(fd, out, sizeof out, MSG_NOSIGNAL) != (ssize_t)sizeof out)
            break;
    }
    close(fd);
    return NULL;
}

static void far_open(struct far *f)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(f->fd >= 0 && bind(f->fd, (struct sockaddr *)&a, len) == 0 && listen(f->fd, 8) == 0);
    REQUIRE(getsockname(f->fd, (struct sockaddr *)&a, &len) == 0);
    snprintf(f->address, sizeof f->address, "127.0.0.1:%d", ntohs(a.sin_port));
    REQUIRE(pthread_create(&f->thread, NULL, answer, f) == 0);
}

static void far_close(struct far *f)
{
    pthread_join(f->thread, NULL);
    close(f->fd);
    CHECK(f->is_greeted);
}

static int connect_client(struct sv_ping_client *c, const struct far *f, struct sv_err *err)
{
    return sv_ping_connect(c, f->address, token_bytes(), 5000, err);
}

/* On a clock that stands still a round has as many pings as it may have, and knows the offset. */
TEST(a_round_of_pings)
{
    static const int64_t still[] = {50 * SECOND};
    int64_t runs[] = {50 * SECOND, 50 * SECOND + SECOND / 5};
    struct far f = {.fixed_ns = 50 * SECOND, .offset_ns = 12345};
    struct sv_ping_client c;
    struct sv_sync_round round = {0};
    struct sv_err err = {0};
    far_open(&f);
    REQUIRE(connect_client(&c, &f, &err) == 0);
    CHECK_STR_EQ(c.server.host, "far");
    CHECK_STR_EQ(c.server.boot, "99999999-9999-4999-8999-999999999999");
    CHECK_STR_EQ(c.server.times, "");
    test_clock_script(still, 1);
    CHECK_INT_EQ(sv_ping_round(&c, &round, &err), 0);
    CHECK_UINT_EQ(f.n_pings, PINGS_MAX);
    CHECK_INT_EQ(round.at_ns, still[0]);
    CHECK_INT_EQ(round.low_ns, 12345 - 1);
    CHECK_INT_EQ(round.high_ns, 12345 + 1);
    /* When they took a while, it ends; but not with too few. */
    f.n_pings = 0;
    test_clock_script(runs, 2);
    CHECK_INT_EQ(sv_ping_round(&c, &round, &err), 0);
    CHECK_UINT_EQ(f.n_pings, 8);
    test_clock_script(NULL, 0);
    sv_ping_disconnect(&c);
    CHECK_INT_EQ(c.fd, -1);
    sv_ping_disconnect(&c);
    far_close(&f);
}

TEST(what_a_client_does_not_believe)
{
    static const struct {
        enum lie lie;
        bool connects;
        const char *why;
    } rows[] = {
        {SHORT, false,
         "%s closed the connection or gave no greeting (is the token the same on both sides?): "
         "Connection reset by peer"},
        {OTHER_MAGIC, false, "%s does not answer as 'stave sync' does"},
        {NO_BOOT, false, "%s does not answer as 'stave sync' does"},
        {NO_TEXT, false, "%s does not answer as 'stave sync' does"},
        {OTHER_NUMBER, true, "no answer from host far: Protocol error"},
        {BACKWARD, true, "host far answers with times that cannot be"},
        {STOPS, true, "no answer from host far: Connection reset by peer"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct far f = {.lie = rows[i].lie};
        struct sv_ping_client c;
        struct sv_sync_round round;
        struct sv_err err = {0};
        char want[300];
        far_open(&f);
        int code = connect_client(&c, &f, &err);
        CONTEXT("%s: %s", rows[i].why, err.msg);
        CHECK_INT_EQ(code, rows[i].connects ? 0 : SV_EIO);
        if (code == 0)
            CHECK_INT_EQ(sv_ping_round(&c, &round, &err), SV_EIO);
        snprintf(want, sizeof want, rows[i].why[0] == '%' ? "%s%s" : "%.0s%s", f.address,
                 rows[i].why + (rows[i].why[0] == '%' ? 2 : 0));
        CHECK_STR_EQ(err.msg, want);
        CHECK_INT_EQ(c.fd, -1);
        if (f.lie == STOPS)
            CHECK_UINT_EQ(f.n_pings, 5);
        far_close(&f);
    }
}

TEST(where_a_client_cannot_connect)
{
    struct sv_ping_client c;
    struct sv_err err = {0};
    char free_port[64], want[200];
    struct sv_ping_server *s = open_server();
    snprintf(free_port, sizeof free_port, "%s", sv_ping_server_address(s));
    sv_ping_server_close(s);
    CHECK_INT_EQ(sv_ping_connect(&c, free_port, token_bytes(), 5000, &err), SV_EIO);
    snprintf(want, sizeof want, "cannot connect to %s: Connection refused", free_port);
    CHECK_STR_EQ(err.msg, want);
    CHECK_INT_EQ(c.fd, -1);
    static const char *const bad[] = {"127.0.0.1", "127.0.0.1:0", "127.0.0.1:", "[::1]"};
    for (size_t i = 0; i < TEST_COUNT(bad); i++) {
        sv_err_clear(&err);
        CHECK_INT_EQ(sv_ping_connect(&c, bad[i], token_bytes(), 5000, &err), SV_EUSAGE);
        snprintf(want, sizeof want, "'%s' is not HOST:PORT", bad[i]);
        CHECK_STR_EQ(err.msg, want);
    }
    /* One that listens and says nothing: the clock jumps over the limit. */
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 && listen(fd, 8) == 0);
    REQUIRE(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    snprintf(free_port, sizeof free_port, "127.0.0.1:%d", ntohs(a.sin_port));
    sv_err_clear(&err);
    int64_t times[] = {10 * SECOND, 10 * SECOND, 16 * SECOND};
    test_clock_script(times, TEST_COUNT(times));
    CHECK_INT_EQ(sv_ping_connect(&c, free_port, token_bytes(), 5000, &err), SV_EIO);
    test_clock_script(NULL, 0);
    snprintf(want, sizeof want,
             "%s closed the connection or gave no greeting (is the token the same on both "
             "sides?): Connection timed out",
             free_port);
    CHECK_STR_EQ(err.msg, want);
    CHECK_INT_EQ(c.fd, -1);
    close(fd);
}

/* ---- plans ---- */

static void be_rank(const char *rank, const char *size)
{
    static const char *const others[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                         "SLURM_PROCID", "LOCAL_RANK"};
    for (size_t i = 0; i < TEST_COUNT(others); i++)
        unsetenv(others[i]);
    setenv("RANK", rank, 1);
    setenv("WORLD_SIZE", size, 1);
}

static struct sv_sync_plan plan_of(const char *out, const char *out_dir)
{
    struct sv_sync_plan plan;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_sync_plan(&plan, out, out_dir, NULL, &err), 0);
    return plan;
}

/* The folder of the file, which is called .stave-sync- and 16 digits. */
static const char *folder_of(const struct sv_sync_plan *plan)
{
    static char folder[300];
    snprintf(folder, sizeof folder, "%.290s", plan->path);
    char *name = strrchr(folder, '/');
    REQUIRE(name && strncmp(name, "/.stave-sync-", 13) == 0);
    CHECK_UINT_EQ(strspn(name + 13, "0123456789abcdef"), 16);
    CHECK_UINT_EQ(strlen(name + 13), 16);
    *name = '\0';
    return folder;
}

TEST(where_the_ranks_of_a_job_meet)
{
    static const struct {
        const char *out, *out_dir, *folder;
    } rows[] = {
        {"t.pftrace", NULL, "."},         {"x/t.pftrace", NULL, "x"}, {"/t.pftrace", NULL, ""},
        {"/tmp/t.pftrace", NULL, "/tmp"}, {NULL, NULL, "."},          {NULL, "runs", "runs"},
        {"x/t.pftrace", "runs", "runs"}};
    be_rank("1", "4");
    unsetenv("SLURM_JOB_ID");
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct sv_sync_plan plan = plan_of(rows[i].out, rows[i].out_dir);
        const char *folder = folder_of(&plan);
        CHECK_STR_EQ(folder[0] == '/' && folder[1] == '\0' ? ""
                     : rows[i].folder[0]                   ? folder
                                                           : "",
                     rows[i].folder);
        CHECK_INT_EQ(plan.launcher.rank, 1);
        CHECK_INT_EQ(plan.launcher.size, 4);
        CHECK(!plan.address);
    }
    /* The same for all ranks; another one for another output, or another job. */
    struct sv_sync_plan one = plan_of("x/t.pftrace", NULL), other;
    be_rank("3", "4");
    other = plan_of("x/t.pftrace", NULL);
    CHECK_STR_EQ(one.path, other.path);
    other = plan_of("x/u.pftrace", NULL);
    CHECK(strcmp(one.path, other.path) != 0);
    setenv("SLURM_JOB_ID", "77", 1);
    other = plan_of("x/t.pftrace", NULL);
    CHECK(strcmp(one.path, other.path) != 0);
    unsetenv("SLURM_JOB_ID");

    struct sv_err err = {0};
    be_rank("0", "1");
    CHECK_INT_EQ(sv_sync_plan(&one, "t.pftrace", NULL, NULL, &err), SV_EUSAGE);
    CHECK_STR_EQ(err.msg, "--sync relates the ranks of a launcher such as mpirun, and there is "
                          "none here: 'stave sync' relates two hosts");
    unsetenv("RANK");
    CHECK_INT_EQ(sv_sync_plan(&one, "t.pftrace", NULL, NULL, &err), SV_EUSAGE);
}

/* ---- workers ---- */

static struct sv_sync_plan plan_here(const char *rank, const char *size)
{
    char out[300];
    be_rank(rank, size);
    snprintf(out, sizeof out, "%s", test_scratch("t.pftrace"));
    return plan_of(out, NULL);
}

static struct sv_sync_worker *start(const struct sv_sync_plan *plan)
{
    struct sv_err err = {0};
    struct sv_sync_worker *w = sv_sync_start(plan, &err);
    CHECK_STR_EQ(err.msg, "");
    return w;
}

/* What stopping says; "related" for a relation. */
static const char *stopped(struct sv_sync_worker *w, struct sv_buf *json)
{
    static char why[256];
    bool is_related = sv_sync_stop(w, json, why, sizeof why);
    CHECK(!is_related || !why[0]);
    return is_related ? "related" : why;
}

TEST(ranks_of_one_clock_need_no_relation)
{
    struct sv_buf json;
    struct stat st;
    sv_buf_init(&json, 1 << 20);
    struct sv_sync_plan first = plan_here("0", "2"), second = plan_here("1", "2");
    struct sv_sync_worker *a = start(&first);
    REQUIRE(stat(first.path, &st) == 0);
    CHECK_INT_EQ(st.st_mode & 07777, 0600);
    struct sv_sync_worker *b = start(&second);
    CHECK(!sv_sync_poll(a, &json));
    CHECK_STR_EQ(stopped(b, &json), "");
    CHECK_STR_EQ(stopped(a, &json), "");
    CHECK(stat(first.path, &st) != 0 && errno == ENOENT);
    CHECK_UINT_EQ(json.len, 0);
    sv_buf_fini(&json);
}

static const char *published(const char *address, const struct sv_process_id *id, const char *end)
{
    static char text[1024];
    char boot[2 * SV_BOOT_ID_BYTES + 1];
    for (size_t i = 0; i < SV_BOOT_ID_BYTES; i++)
        snprintf(boot + 2 * i, 3, "%02x", id->boot[i]);
    snprintf(text, sizeof text, "stave-sync 1\n%s\n" TOKEN "\n%u %" PRIu64 " %" PRIu64 " %s\n%s\n",
             address, id->pid, id->pid_namespace, id->start_ticks, boot, end);
    return text;
}

static void publish(const struct sv_sync_plan *plan, const char *text)
{
    unlink(plan->path);
    test_write_file(plan->path, text);
    REQUIRE(chmod(plan->path, 0600) == 0);
}

/* Rank 0's file is what others read: its address, token, and who holds it. */
TEST(what_rank_0_publishes)
{
    struct sv_process_id self = sv_process_id_self();
    struct sv_sync_plan plan = plan_here("0", "1000");
    plan.launcher.size = -1; /* nobody says how many: it waits for nobody */
    struct sv_sync_worker *w = start(&plan);
    char text[1024], want[1024], address[300], token[64];
    struct sv_buf json;
    sv_buf_init(&json, 1 << 20);
    snprintf(text, sizeof text, "%s", test_read_file(plan.path));
    REQUIRE(sscanf(text, "stave-sync 1\n%299s\n%63s\n", address, token) == 2);
    CHECK(strncmp(address, "127.0.0.1:", 10) == 0 && strlen(token) == 32);
    snprintf(want, sizeof want, "%s", published(address, &self, "end"));
    memcpy(strstr(want, TOKEN), token, 32);
    CHECK_STR_EQ(text, want);
    /* It is ours and we run: nobody takes its place. */
    struct sv_err err = {0};
    struct sv_sync_worker *again = sv_sync_start(&plan, &err);
    CHECK_INT_EQ(err.code, SV_EHELD);
    snprintf(want, sizeof want,
             "--sync: %.200s belongs to another job; remove it if that has ended", plan.path);
    CHECK_STR_EQ(err.msg, want);
    CHECK_STR_EQ(stopped(again, &json), "");
    CHECK_STR_EQ(test_read_file(plan.path), text);
    CHECK_STR_EQ(stopped(w, &json), "");
    CHECK_STR_EQ(test_read_file(plan.path), "(absent)");
    /* The others cannot reach these. */
    static const char *const everywhere[] = {"0.0.0.0", "[::]"};
    for (size_t i = 0; i < TEST_COUNT(everywhere); i++) {
        plan.address = everywhere[i];
        sv_err_clear(&err);
        w = sv_sync_start(&plan, &err);
        if (i == 0 || err.code == SV_EUSAGE) { /* without IPv6: another error */
            snprintf(want, sizeof want,
                     "--sync-address: give the address by which the other hosts reach this one, "
                     "not %s",
                     everywhere[i]);
            CHECK_STR_EQ(err.msg, want);
        }
        CHECK_STR_EQ(stopped(w, &json), "");
        CHECK_STR_EQ(test_read_file(plan.path), "(absent)");
    }
    sv_buf_fini(&json);
}

static struct sv_process_id ended_process(void)
{
    struct sv_process_id self = sv_process_id_self();
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    self.start_ticks = sv_process_start_ticks((uint32_t)pid) + 1;
    self.pid = (uint32_t)pid;
    waitpid(pid, NULL, 0);
    return self;
}

TEST(what_a_killed_job_left_is_replaced)
{
    struct sv_process_id gone = ended_process(), elsewhere = gone;
    struct sv_sync_plan plan = plan_here("0", "1000");
    struct sv_buf json;
    struct sv_err err = {0};
    plan.launcher.size = -1;
    sv_buf_init(&json, 1 << 20);
    publish(&plan, published("127.0.0.1:1", &gone, "end"));
    struct sv_sync_worker *w = start(&plan);
    CHECK(!strstr(test_read_file(plan.path), "127.0.0.1:1\n"));
    CHECK_STR_EQ(stopped(w, &json), "");
    CHECK_STR_EQ(test_read_file(plan.path), "(absent)");
    /* What is no such file, or of another machine, stays. */
    elsewhere.boot[3] ^= 1;
    elsewhere.machine[3] ^= 1;
    char texts[4][1024];
    snprintf(texts[0], sizeof texts[0], "%s", published("127.0.0.1:1", &elsewhere, "end"));
    snprintf(texts[1], sizeof texts[1], "%s", published("127.0.0.1:1", &gone, "en"));
    snprintf(texts[2], sizeof texts[2], "%s", published("127.0.0.1:1", &gone, "end"));
    texts[2][strlen("stave-sync ")] = '2';
    snprintf(texts[3], sizeof texts[3], "stave-sync 1\n127.0.0.1:1\n" TOKEN "\n");
    for (size_t i = 0; i < TEST_COUNT(texts); i++) {
        CONTEXT("text %zu", i);
        publish(&plan, texts[i]);
        sv_err_clear(&err);
        w = sv_sync_start(&plan, &err);
        CHECK_INT_EQ(err.code, SV_EHELD);
        CHECK_STR_EQ(stopped(w, &json), "");
        CHECK_STR_EQ(test_read_file(plan.path), texts[i]);
    }
    unlink(plan.path);
    sv_buf_fini(&json);
}

/* A rank finds a server on another clock: one relation early, all rounds at the end. */
TEST(a_rank_relates_its_clock)
{
    enum { OFFSET = 777000000, CLOSE = 500000000 };
    struct sv_process_id self = sv_process_id_self();
    struct sv_sync_plan plan = plan_here("1", "2");
    struct far f = {.offset_ns = OFFSET};
    struct sv_relation r;
    struct sv_err err = {0};
    struct sv_clock_owner own;
    struct sv_buf json;
    sv_buf_init(&json, 1 << 20);
    far_open(&f);
    struct sv_sync_worker *w = start(&plan); /* before there is anybody */
    CHECK(!sv_sync_poll(w, &json));
    publish(&plan, published(f.address, &self, "end"));
    while (!sv_sync_poll(w, &json))
        usleep(1000);
    CHECK(!sv_sync_poll(w, &json));
    REQUIRE(sv_relation_parse(&r, (const char *)json.data, json.len, &err) == 0);
    CHECK_UINT_EQ(r.n, 1);
    CHECK_STR_EQ(r.reference.host, "far");
    sv_clock_owner_self(&own);
    CHECK(sv_clock_owner_equal(&r.local, &own));
    sv_relation_fini(&r);
    json.len = 0;
    CHECK_STR_EQ(stopped(w, &json), "related");
    far_close(&f);
    REQUIRE(sv_relation_parse(&r, (const char *)json.data, json.len, &err) == 0);
    CHECK_UINT_EQ(r.n, 2);
    for (size_t i = 0; i < r.n; i++)
        CHECK(r.rounds[i].low_ns <= OFFSET && OFFSET <= r.rounds[i].high_ns);
    CHECK(f.n_pings >= 16);
    sv_relation_fini(&r);
    unlink(plan.path);
    sv_buf_fini(&json);
}

TEST(why_a_rank_has_no_relation)
{
    struct sv_process_id self = sv_process_id_self(), elsewhere = self;
    struct sv_sync_plan plan = plan_here("1", "2");
    struct sv_buf json;
    char want[400], none[64];
    sv_buf_init(&json, 1 << 20);
    elsewhere.boot[0] ^= 1;
    struct sv_ping_server *s = open_server();
    snprintf(none, sizeof none, "%s", sv_ping_server_address(s));
    sv_ping_server_close(s);
    CHECK_STR_EQ(stopped(start(&plan), &json),
                 "rank 0 has not published its address (--sync needs one folder for all ranks)");
    static const char *const loopback[] = {"127.0.0.1:1", "127.1.2.3:4", "[::1]:1"};
    for (size_t i = 0; i < TEST_COUNT(loopback); i++) {
        publish(&plan, published(loopback[i], &elsewhere, "end"));
        CHECK_STR_EQ(stopped(start(&plan), &json),
                     "rank 0 is on another host and listens on its loopback device only: give "
                     "--sync-address HOST");
    }
    publish(&plan, published(none, &self, "end"));
    snprintf(want, sizeof want, "cannot connect to %s: Connection refused", none);
    CHECK_STR_EQ(stopped(start(&plan), &json), want);
    /* Somebody who was related for a while and then was left alone keeps what it has. */
    struct far f = {.lie = OTHER_NUMBER};
    far_open(&f);
    publish(&plan, published(f.address, &self, "end"));
    CHECK_STR_EQ(stopped(start(&plan), &json), "no answer from host far: Protocol error");
    far_close(&f);
    unlink(plan.path);
    sv_buf_fini(&json);
}
