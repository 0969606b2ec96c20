/* What clients of the server may hold: bytes by client and together, and time. */
#include "net/http_gate.h"
#include "tests/harness/test.h"

#include <dirent.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum limit { HEADER, REQUEST, ANSWER, IDLE, NONE };

/* Only this limit is short: the others must not end a connection while the test waits for a
 * processor. */
static struct sv_gate *open_gate(enum limit is_short)
{
    enum { SHORT_MS = 20, LONG_MS = 1000000 };
    struct sv_gate *g;
    struct sv_gate_limits limits = {.all_bytes = 100,
                                    .client_bytes = 60,
                                    .header_ms = is_short == HEADER ? SHORT_MS : LONG_MS,
                                    .request_ms = is_short == REQUEST ? SHORT_MS : LONG_MS,
                                    .idle_ms = is_short == IDLE ? SHORT_MS : LONG_MS,
                                    .answer_ms = is_short == ANSWER ? SHORT_MS : LONG_MS};
    REQUIRE(sv_gate_open(&limits, &g, NULL) == 0);
    return g;
}

TEST(bytes_are_limited_by_client_and_together)
{
    struct sv_gate *g = open_gate(NONE);
    struct sv_visitor *a = sv_gate_enter(g, -1, 1), *b = sv_gate_enter(g, -1, 1);
    struct sv_visitor *c = sv_gate_enter(g, -1, 2);
    CHECK_INT_EQ(sv_gate_hold(g, a, 40), SV_GATE_OK);
    CHECK_INT_EQ(sv_gate_hold(g, b, 21), SV_GATE_CLIENT_FULL);
    CHECK_INT_EQ(sv_gate_hold(g, b, SIZE_MAX), SV_GATE_CLIENT_FULL);
    CHECK_INT_EQ(sv_gate_hold(g, b, 20), SV_GATE_OK);
    CHECK_INT_EQ(sv_gate_hold(g, b, 1), SV_GATE_CLIENT_FULL);
    CHECK_INT_EQ(sv_gate_hold(g, c, 41), SV_GATE_ALL_FULL);
    CHECK_INT_EQ(sv_gate_hold(g, c, 40), SV_GATE_OK);
    CHECK_UINT_EQ(sv_gate_count(g).bytes, 100);
    sv_gate_give_back(g, a);
    CHECK_INT_EQ(sv_gate_hold(g, b, 40), SV_GATE_OK); /* the other's place */
    sv_gate_done(g, b);
    sv_gate_leave(g, c);
    CHECK_UINT_EQ(sv_gate_count(g).bytes, 0);
    CHECK_INT_EQ(sv_gate_hold(g, a, 60), SV_GATE_OK);
    sv_gate_leave(g, b);
    sv_gate_leave(g, a);
    struct sv_gate_counts n = sv_gate_count(g);
    CHECK_UINT_EQ(n.bytes, 0);
    CHECK_UINT_EQ(n.connections, 0);
    CHECK_UINT_EQ(n.client_full, 3);
    CHECK_UINT_EQ(n.all_full, 1);
    sv_gate_close(g);
}

/* What comes out of the other end until it is closed. */
static const char *last_words(int fd)
{
    static char text[1024];
    ssize_t n, at = 0;
    while ((n = read(fd, text + at, sizeof text - 1 - (size_t)at)) > 0)
        at += n;
    text[at] = '\0';
    return text;
}

TEST(time_is_limited_until_a_request_is_complete)
{
    for (enum limit step = HEADER; step <= IDLE; step++) {
        CONTEXT("step %d", (int)step);
        struct sv_gate *g = open_gate(step);
        int ends[2];
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        struct sv_visitor *v = sv_gate_enter(g, ends[0], 1);
        if (step == REQUEST)
            sv_gate_headers(g, v);
        if (step == ANSWER)
            sv_gate_answer(g, v);
        if (step == IDLE)
            sv_gate_done(g, v);
        const char *text = last_words(ends[1]); /* waits for the end */
        CHECK(step <= REQUEST ? strncmp(text, "HTTP/1.1 408 ", 13) == 0 : text[0] == '\0');
        CHECK_UINT_EQ(sv_gate_count(g).late, step <= REQUEST);
        sv_gate_leave(g, v);
        close(ends[0]);
        close(ends[1]);
        sv_gate_close(g);
    }
    CONTEXT("the server works");
    struct sv_gate *g = open_gate(REQUEST);
    int ends[2], other[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0);
    struct sv_visitor *works = sv_gate_enter(g, ends[0], 1);
    sv_gate_complete(g, works); /* no limit while the server works */
    struct sv_visitor *late = sv_gate_enter(g, other[0], 1);
    sv_gate_headers(g, late);
    last_words(other[1]);
    CHECK(send(ends[1], "x", 1, MSG_NOSIGNAL) == 1);
    CHECK_UINT_EQ(sv_gate_count(g).late, 1);
    sv_gate_leave(g, works);
    sv_gate_leave(g, late);
    sv_gate_close(g);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(other[i]);
    }
}

/* Slow clients do not keep others out: one more takes the place of the one that has waited longest
 * for its client, unless the server works for it. */
TEST(one_more_takes_the_place_of_the_slowest)
{
    struct sv_gate *g;
    struct sv_gate_limits limits = {.all_bytes = 100,
                                    .client_bytes = 60,
                                    .header_ms = 1000000,
                                    .request_ms = 1000000,
                                    .idle_ms = 1000000,
                                    .answer_ms = 1000000,
                                    .connections = 3};
    int ends[4][2];
    struct sv_visitor *v[4];
    REQUIRE(sv_gate_open(&limits, &g, NULL) == 0);
    for (int i = 0; i < 4; i++) {
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) == 0);
        if (i == 3)
            sv_gate_complete(g, v[0]); /* the oldest is being worked for */
        v[i] = sv_gate_enter(g, ends[i][0], 1);
        usleep(2000); /* the order of their times */
    }
    CHECK(strstr(last_words(ends[1][1]), "503") != NULL);
    CHECK_UINT_EQ(sv_gate_count(g).displaced, 1);
    char byte;
    for (int i = 0; i < 4; i++)
        if (i != 1)
            CHECK_INT_EQ(recv(ends[i][1], &byte, 1, MSG_DONTWAIT), -1); /* open, nothing said */
    for (int i = 0; i < 4; i++) {
        sv_gate_leave(g, v[i]);
        close(ends[i][0]);
        close(ends[i][1]);
    }
    sv_gate_close(g);
}

/* ---- how many ---- */

TEST(connections_of_a_user)
{
    struct sv_gate *g = open_gate(NONE);
    struct sv_visitor *a = sv_gate_enter(g, -1, 1), *b = sv_gate_enter(g, -1, 1);
    struct sv_visitor *c = sv_gate_enter(g, -1, 1);
    CHECK_UINT_EQ(sv_gate_count_user(g, 0), 0); /* nobody is known */
    sv_gate_of_user(g, a, 0);
    sv_gate_of_user(g, b, 7);
    sv_gate_of_user(g, c, 7);
    CHECK_UINT_EQ(sv_gate_count_user(g, 0), 1);
    CHECK_UINT_EQ(sv_gate_count_user(g, 7), 2);
    CHECK_UINT_EQ(sv_gate_count_user(g, 8), 0);
    sv_gate_leave(g, b);
    CHECK_UINT_EQ(sv_gate_count_user(g, 7), 1);
    sv_gate_leave(g, a);
    sv_gate_leave(g, c);
    CHECK_UINT_EQ(sv_gate_count_user(g, 7), 0);
    sv_gate_close(g);
}

/* Three quarters of the descriptors that the process may still open; as many of them as it may ask
 * for. */
static void of_a_limit(void)
{
    static const rlim_t rows[][2] = {{64, 64}, {100, 100}, {64, 128}, {1000, 1000}};
    for (size_t i = TEST_COUNT(rows); i-- > 0;) {
        struct rlimit limit = {rows[i][0], rows[i][1]};
        size_t n_open = 0;
        CONTEXT("row %zu", i);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        DIR *d = opendir("/proc/self/fd");
        while (d && readdir(d))
            n_open++;
        REQUIRE(d && closedir(d) == 0);
        size_t left = (size_t)rows[i][1] - n_open;
        CHECK_UINT_EQ(sv_gate_connections(SIZE_MAX), left - left / 4);
        CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == rows[i][1]);
        CHECK_UINT_EQ(sv_gate_connections(5), 5);
        CHECK_UINT_EQ(sv_gate_connections(left), left - left / 4);
    }
    REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){2, 2}) == 0);
    CHECK_UINT_EQ(sv_gate_connections(100), 2);
}

TEST(connections_that_fit)
{
    test_in_child(of_a_limit);
}
