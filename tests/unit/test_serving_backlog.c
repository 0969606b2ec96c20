/* Calls of a traced server that wait for a free processor: all of them, in their order, whatever is
 * in memory and in the file. */
#include "lib/serving/backlog.h"
#include "lib/serving/processors.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MAX = 2000 };

/* What call number i consists of follows from i. */
static uint32_t words_of(uint64_t i)
{
    return i % 7 == 0 ? (uint32_t)(i * 2654435761u % WORDS_MAX) : (uint32_t)(i % 3);
}

static bool put(struct sv_backlog *b, uint64_t i)
{
    uint64_t words[WORDS_MAX];
    struct sv_call_cell c = {.id = i, .time_ns = -(int64_t)i, .words = words_of(i)};
    for (uint32_t k = 0; k < c.words; k++)
        words[k] = i * 31 + k;
    return sv_backlog_put(b, &c, words);
}

static bool take(struct sv_backlog *b, uint64_t i)
{
    struct sv_call_cell c;
    const uint64_t *words;
    uint64_t lost = 0;
    if (!sv_backlog_take(b, &c, &words, &lost) || lost > 0)
        return false;
    bool is_right = c.id == i && c.time_ns == -(int64_t)i && c.words == words_of(i);
    for (uint32_t k = 0; is_right && k < c.words; k++)
        is_right = words[k] == i * 31 + k;
    return is_right;
}

static uint64_t file_bytes(const struct sv_backlog *b)
{
    struct stat st;
    return fstat(b->fd, &st) == 0 ? (uint64_t)st.st_size : UINT64_MAX;
}

TEST(a_backlog_gives_its_calls_in_their_order)
{
    struct sv_backlog b;
    struct sv_call_cell c;
    const uint64_t *words;
    uint64_t in = 0, out = 0, lost = 0, largest = 0;
    unsigned seed = 7;
    sv_backlog_init(&b, "/tmp");
    for (int round = 0; round < 200; round++) {
        for (int n = rand_r(&seed) % 300; n > 0; n--)
            REQUIRE(put(&b, in++));
        largest = file_bytes(&b) > largest ? file_bytes(&b) : largest;
        uint64_t keep = round % 20 == 19 ? 0 : (uint64_t)rand_r(&seed) % 2000;
        while (in - out > keep)
            REQUIRE(take(&b, out++));
        CHECK_INT_EQ(b.n, in - out);
    }
    while (out < in)
        REQUIRE(take(&b, out++));
    CHECK(!sv_backlog_take(&b, &c, &words, &lost));
    CHECK_INT_EQ(lost, 0);
    CHECK(largest > 1000000); /* it was there */
    CHECK_INT_EQ(file_bytes(&b), 0);
    sv_backlog_fini(&b);
}

TEST(a_backlog_refuses_what_it_cannot_hold)
{
    struct sv_backlog b;
    sv_backlog_init(&b, "/tmp");
    struct sv_call_cell huge = {.words = 1 << 20};
    uint64_t *words = calloc(1 << 20, sizeof *words), in = 0, out = 0;
    CHECK(!sv_backlog_put(&b, &huge, words));
    free(words);
    b.limit = 1 << 20;
    while (put(&b, in))
        in++;
    CHECK(file_bytes(&b) >= 1 << 20 && file_bytes(&b) < 2 << 20);
    CHECK(sv_backlog_is_long(&b));
    while (out < in)
        REQUIRE(take(&b, out++));
    CHECK(!sv_backlog_is_long(&b));
    CHECK(put(&b, in)); /* and has space again */
    sv_backlog_fini(&b);

    sv_backlog_init(&b, "/nowhere"); /* without a file: what fits in memory */
    for (in = out = 0; put(&b, in); in++)
        ;
    CHECK(in > 100);
    while (out < in)
        REQUIRE(take(&b, out++));
    sv_backlog_fini(&b);
}

TEST(a_backlog_counts_what_its_file_lost)
{
    struct sv_backlog b;
    struct sv_call_cell c;
    const uint64_t *words;
    uint64_t in = 0, out = 0, lost = 0;
    sv_backlog_init(&b, "/tmp");
    while (b.written == 0)
        REQUIRE(put(&b, in++));
    REQUIRE(ftruncate(b.fd, 100) == 0);
    while (sv_backlog_take(&b, &c, &words, &lost))
        CHECK_INT_EQ(c.id, out++);
    CHECK(lost > 0);
    CHECK_INT_EQ(out + lost, in);
    CHECK_INT_EQ(b.n, 0);
    sv_backlog_fini(&b);
}

static bool is_busy_with(const char *text, int processors)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", test_scratch("loadavg"));
    FILE *f = fopen(path, "w+");
    REQUIRE(f);
    fputs(text, f);
    fflush(f);
    bool is_busy =
        sv_processors_are_busy(&(struct sv_processors){.fd = fileno(f), .expected = processors});
    fclose(f);
    return is_busy;
}

TEST(processors_are_busy_when_more_threads_want_to_run)
{
    struct sv_processors real;
    CHECK(is_busy_with("0.20 0.18 0.12 5/80 11206\n", 4));
    CHECK(!is_busy_with("0.20 0.18 0.12 4/80 11206\n", 4));
    CHECK(!is_busy_with("9.20 9.18 9.12 1/80 11206\n", 1));
    CHECK(!is_busy_with("", 1));
    CHECK(!is_busy_with("nothing", 1));
    sv_processors_init(&real);
    CHECK(real.fd >= 0 && real.expected > 0);
    real.expected = 1 << 30;
    CHECK(!sv_processors_are_busy(&real));
    real.expected = 0; /* the one that asks is one */
    CHECK(sv_processors_are_busy(&real));
    sv_processors_fini(&real);
}
