/* Clients of a collector: what they may cost, what closes them, and what the journal says of their
 * losses. */
#include "core/base/buf.h"
#include "core/base/report.h"
#include "sdk/collect/clients.h"
#include "sdk/drain/drain.h"
#include "sdk/drain/drain_names.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 16 << 10 };

/* A collector's folder and the files of one client in it, mapped as the client has them. */
struct scene {
    int folder, client;
    struct sv_session_file *session;
    struct sv_ring *ring;
    uint8_t *data;
    struct sv_clients clients;
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_batch batch;
};

static void *map_new(int folder, const char *name, size_t bytes)
{
    int fd = openat(folder, name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(at != MAP_FAILED);
    close(fd);
    return at;
}

/* Site 1: an instant whose name is in the record. */
static void put_names(struct scene *s)
{
    char texts[16] = {'c', 0, 'n', 0, 0, 0, 'k', 0, STAVE_I_NAME};
    struct sv_name_head h = {.size = sizeof h + sizeof texts,
                             .kind = SV_NAME_SITE,
                             .event = STAVE_KIND_INSTANT,
                             .n_args = 1,
                             .id = 1};
    int fd = openat(s->client, "names", O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0 && write(fd, &h, sizeof h) == sizeof h &&
            write(fd, texts, sizeof texts) == sizeof texts);
    close(fd);
    atomic_store(&s->session->names_bytes, h.size);
}

static void open_scene(struct scene *s)
{
    memset(s, 0, sizeof *s);
    const char *path = test_scratch("collector");
    REQUIRE(mkdir(path, 0700) == 0);
    s->folder = open(path, O_RDONLY | O_DIRECTORY);
    REQUIRE(mkdirat(s->folder, "1-a", 0700) == 0);
    s->client = openat(s->folder, "1-a", O_RDONLY | O_DIRECTORY);
    s->session = map_new(s->client, "session", SV_SESSION_BYTES);
    *s->session = (struct sv_session_file){.magic = SV_SESSION_MAGIC,
                                           .version = SV_LAYOUT_VERSION,
                                           .process = sv_process_id_self(),
                                           .state = SV_SESSION_CLIENT,
                                           .n_rings = 1};
    s->ring = map_new(s->client, "ring.0", SV_PAGE + SIZE);
    s->data = (uint8_t *)s->ring + SV_PAGE;
    s->ring->magic = SV_RING_MAGIC;
    s->ring->size = SIZE;
    s->ring->owner = 1;
    s->ring->tid = 7;
    s->ring->head = s->ring->tail = s->ring->mark[0].pos = SIZE;
    put_names(s);
    s->dict = sv_dict_new();
    sv_report_init(&s->report);
    sv_batch_init(&s->batch);
    sv_clients_init(&s->clients, s->folder, s->dict, &s->report);
}

static void close_scene(struct scene *s)
{
    sv_clients_fini(&s->clients);
    sv_batch_fini(&s->batch);
    sv_report_fini(&s->report);
    sv_dict_free(s->dict);
}

/* An instant with a name of so many bytes, all of them `c` and a number. */
static void emit(struct scene *s, uint32_t number, size_t len)
{
    char text[4096];
    memset(text, 'c', sizeof text);
    snprintf(text, sizeof text, "%08x", number);
    text[8] = 'c';
    uint64_t head = atomic_load(&s->ring->head), padded = (len + 7) & ~(size_t)7;
    uint64_t words[3] = {SV_WORD(1, STAVE_KIND_INSTANT, 1, 3 + padded / 8), head, len};
    for (size_t i = 0; i < 24 + padded; i++)
        /* All of `words` is set. NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign) */
        s->data[(head + i) % SIZE] = i < 24 ? ((uint8_t *)words)[i] : (uint8_t)text[i - 24];
    atomic_store(&s->ring->head, head + 24 + padded);
}

/* A round of the collector: all events, and the commit. */
static uint64_t go(struct scene *s)
{
    uint64_t events = 0;
    sv_clients_round(&s->clients, 0, true);
    for (int n; sv_batch_reset(&s->batch),
                (n = s->clients.source.next(&s->clients.source, &s->batch, NULL)) > 0;)
        events += (uint64_t)n;
    sv_clients_mark(&s->clients, s->clients.round + 1);
    sv_clients_release(&s->clients);
    return events;
}

static bool found(const struct scene *s, const char *what, const char *detail)
{
    for (size_t i = 0; i < s->report.n; i++)
        if (strcmp(s->report.rows[i].what, what) == 0 &&
            (!*detail || strstr(s->report.rows[i].first_detail, detail)))
            return true;
    return false;
}

/* No descriptor for the file with the names: its records wait, also when the client has ended
 * meanwhile. */
TEST(waits_for_names_that_cannot_be_read_now)
{
    test_leaves_open();
    static struct scene s;
    struct rlimit usual, none;
    open_scene(&s);
    uint64_t named = atomic_load(&s.session->names_bytes);
    atomic_store(&s.session->names_bytes, 0);
    CHECK_UINT_EQ(go(&s), 0); /* it is met, and its ring is mapped */
    CHECK_UINT_EQ(s.clients.n, 1);
    atomic_store(&s.session->names_bytes, named);
    emit(&s, 1, 20);
    atomic_store(&s.session->state, SV_SESSION_DONE);
    REQUIRE(getrlimit(RLIMIT_NOFILE, &usual) == 0);
    none = (struct rlimit){3, usual.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (int i = 0; i < 3; i++)
        CHECK_UINT_EQ(go(&s), 0);
    REQUIRE(setrlimit(RLIMIT_NOFILE, &usual) == 0);
    CHECK_UINT_EQ(sv_report_count(&s.report, SV_DAMAGE), 0);
    CHECK_UINT_EQ(s.clients.n, 1);
    CHECK_UINT_EQ(go(&s), 1);
    go(&s);
    CHECK_UINT_EQ(s.clients.n, 0);
    close_scene(&s);
}

/* It has ended and `ring` has lost: the client stays until the file has that, also where it has
 * nothing else of it. */
static void stays_until_losses_are_there(struct scene *s, struct sv_ring *ring)
{
    CHECK_UINT_EQ(go(s), 0);
    atomic_store(&ring->lost_full, 5);
    atomic_store(&ring->lost_nested, 0);
    atomic_store(&s->session->state, SV_SESSION_DONE);
    for (int i = 0; i < 3; i++) { /* read, but there is no commit */
        sv_clients_round(&s->clients, 0, true);
        for (sv_batch_reset(&s->batch);
             s->clients.source.next(&s->clients.source, &s->batch, NULL) > 0;)
            sv_batch_reset(&s->batch);
        CHECK_UINT_EQ(s->clients.n, 1);
    }
    go(s);
    go(s);
    CHECK_UINT_EQ(s->clients.n, 0);
    close_scene(s);
}

TEST(losses_are_in_the_file_before_a_client_is_removed)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    stays_until_losses_are_there(&s, s.ring);
}

TEST(losses_of_its_last_ring_are_there_too)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    struct sv_ring *second = map_new(s.client, "ring.1", SV_PAGE + SIZE);
    second->magic = SV_RING_MAGIC;
    second->size = SIZE;
    second->owner = 2;
    second->tid = 8;
    second->head = second->tail = second->mark[0].pos = SIZE;
    s.session->n_rings = 2;
    stays_until_losses_are_there(&s, second);
}

/* After an exec there are two clients of one process: the newer one names it, whichever is met or
 * read last. */
TEST(of_two_programs_of_a_process_the_last_names_it)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    snprintf(s.session->name, sizeof s.session->name, "launcher");
    s.session->ticks[0].boot_ns = 5;
    go(&s);
    REQUIRE(mkdirat(s.folder, "0-b", 0700) == 0);
    int second = openat(s.folder, "0-b", O_RDONLY | O_DIRECTORY);
    struct sv_session_file *newer = map_new(second, "session", SV_SESSION_BYTES);
    *newer = *s.session;
    newer->n_rings = 0;
    newer->ticks[0].boot_ns = 6;
    snprintf(newer->name, sizeof newer->name, "worker");
    emit(&s, 1, 20);
    go(&s);
    emit(&s, 2, 20);
    go(&s);
    sv_track track = sv_dict_process(s.dict, 0, s.session->process.pid);
    CHECK_STR_EQ(sv_dict_text(s.dict, s.dict->tracks[track].name).bytes, "worker");
    close(second);
    close_scene(&s);
}

/* What a client says about its files is compared with them. */
TEST(a_ring_that_is_not_as_large_as_it_says)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    emit(&s, 1, 20);
    s.ring->size = 2 * SIZE;
    CHECK_UINT_EQ(go(&s), 0);
    CHECK(found(&s, "ring is missing or damaged", "ring.0"));
    close_scene(&s);
}

TEST(names_that_are_not_as_many_as_it_says)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    emit(&s, 1, 20);
    atomic_fetch_add(&s.session->names_bytes, 8);
    go(&s);
    CHECK(found(&s, "names are missing", ""));
    CHECK(!found(&s, "names are damaged", ""));
    close_scene(&s);
}

/* What is behind the bytes that it says is not read yet, and is not there when it says fewer. */
TEST(names_that_come_later)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    struct sv_name_head track = {
        .size = 32, .kind = SV_NAME_TRACK, .event = 1, .id = 3, .parent = 1};
    struct sv_name_head bad = {.size = 24, .kind = 99};
    uint64_t named = atomic_load(&s.session->names_bytes);
    int fd = openat(s.client, "names", O_RDWR | O_APPEND);
    REQUIRE(fd >= 0 && write(fd, &track, 24) == 24 && write(fd, "row\0\0\0\0", 8) == 8);
    for (int i = 0; i < 10; i++)
        REQUIRE(write(fd, &bad, sizeof bad) == sizeof bad);
    close(fd);
    emit(&s, 1, 20);
    CHECK_UINT_EQ(go(&s), 1);
    size_t tracks = s.dict->n_tracks;
    atomic_store(&s.session->names_bytes, named + 32);
    go(&s);
    CHECK_UINT_EQ(s.dict->n_tracks, tracks + 1);
    CHECK_UINT_EQ(s.report.n, 0);
    atomic_store(&s.session->names_bytes, named);
    go(&s);
    CHECK(found(&s, "names are missing", ""));
    go(&s);
    CHECK_UINT_EQ(sv_report_count(&s.report, SV_DAMAGE), 1); /* once */
    atomic_store(&s.session->names_bytes, named + 32 + 24);
    go(&s);
    CHECK(found(&s, "damaged name record", ""));
    close_scene(&s);
}

/* A ring in the second directory is read, unless the first one has it; only where it is missing
 * there. */
TEST(rings_in_a_second_directory)
{
    test_leaves_open();
    for (int i = 0; i < 4;
         i++) { /* in the first, in the second, in both, in the first without rights */
        static struct scene s;
        char more[SV_PATH_MAX], path[SV_PATH_MAX + 16];
        CONTEXT("%d", i);
        open_scene(&s);
        snprintf(more, sizeof more, "%s", test_scratch("more"));
        snprintf(path, sizeof path, "%s/ring.0", more);
        REQUIRE(mkdir(more, 0700) == 0);
        snprintf(s.session->more, sizeof s.session->more, "%s", more);
        if (i == 1)
            REQUIRE(renameat(s.client, "ring.0", AT_FDCWD, path) == 0);
        if (i >= 2)
            test_write_file(path, "no ring");
        if (i == 3)
            REQUIRE(fchmodat(s.client, "ring.0", 0666, 0) == 0);
        emit(&s, 1, 20);
        errno = ENOENT; /* of whatever was before */
        CHECK_UINT_EQ(go(&s), i == 3 ? 0 : 1);
        CHECK(found(&s, "ring is missing or damaged", "ring.0") == (i == 3));
        close_scene(&s);
        char command[2 * SV_PATH_MAX];
        snprintf(command, sizeof command, "rm -r %s %s", more, test_scratch("collector"));
        REQUIRE(system(command) == 0);
    }
}

/* What a client costs is what came into the dictionary while it was read. */
TEST(memory_is_counted_for_each)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    sv_clients_round(&s.clients, 0, true);
    REQUIRE(s.clients.n == 1);
    size_t before = sv_dict_used_bytes(s.dict) - s.clients.all[0].dict_bytes;
    for (uint32_t i = 0; i < 100; i++) {
        emit(&s, i, 3000);
        sv_dict_cstr(s.dict, i % 2 ? "of somebody else, one" : "of somebody else, two");
        size_t others = sv_dict_used_bytes(s.dict);
        uint64_t own = s.clients.all[0].dict_bytes;
        CHECK_UINT_EQ(go(&s), 1);
        CHECK_UINT_EQ(s.clients.all[0].dict_bytes - own, sv_dict_used_bytes(s.dict) - others);
    }
    CHECK(s.clients.all[0].dict_bytes <= sv_dict_used_bytes(s.dict) - before);
    CHECK(s.clients.all[0].dict_bytes >= 100 * 3000 / 2); /* it grows in blocks */
    close_scene(&s);
}

TEST(is_read_and_marked)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    for (uint32_t i = 0; i < 10; i++)
        emit(&s, i, 20);
    CHECK_UINT_EQ(go(&s), 10);
    CHECK_UINT_EQ(s.clients.n, 1);
    CHECK_UINT_EQ(s.ring->tail, s.ring->head);
    for (uint32_t i = 0; i < 100; i++) { /* over the ring's end */
        for (uint32_t k = 0; k < 20; k++)
            emit(&s, k, 200);
        CHECK_UINT_EQ(go(&s), 20);
    }
    CHECK_UINT_EQ(s.report.n, 0);
    close_scene(&s);
}

TEST(a_head_inside_of_a_record_is_damage)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    emit(&s, 1, 8);
    s.ring->head += 4;
    CHECK_UINT_EQ(go(&s), 0);
    CHECK(found(&s, "damaged ring", "its end"));
    CHECK_UINT_EQ(s.ring->tail % 8, 0);
    close_scene(&s);
}

/* What a batch refers to, and what follows it in the same window, is the collector's own copy. */
TEST(cannot_change_what_is_being_read)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    for (uint32_t i = 0; i < 400; i++) /* more than one batch */
        emit(&s, i, 8);
    sv_clients_round(&s.clients, 0, true);
    int n = s.clients.source.next(&s.clients.source, &s.batch, NULL);
    CHECK(n > 0 && n < 400);
    memset(s.data, 0xff, SIZE);
    const char *name = sv_dict_text(s.dict, s.batch.events[n - 1].name).bytes;
    CHECK_UINT_EQ(strtoul(name, NULL, 16), (unsigned)n - 1);
    sv_batch_reset(&s.batch);
    CHECK_INT_EQ(s.clients.source.next(&s.clients.source, &s.batch, NULL), 400 - n);
    CHECK_UINT_EQ(s.report.n, 0);
    close_scene(&s);
}

TEST(that_takes_too_much_memory_is_closed)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    s.clients.budget_bytes = 1 << 20;
    uint32_t number = 0;
    uint64_t events = 0;
    for (int round = 0; round < 1000 && (round == 0 || s.clients.n > 0); round++) {
        for (int i = 0; i < 4; i++)
            emit(&s, number++, 3000);
        events += go(&s);
    }
    CHECK_UINT_EQ(s.clients.n, 0);
    CHECK(found(&s, "a client was closed", "more memory"));
    CHECK(events > 100 && events <= number); /* what it had until then is kept */
    CHECK(sv_dict_used_bytes(s.dict) < 2 << 20);
    CHECK_UINT_EQ(s.session->state, SV_SESSION_OFF);
    CHECK_UINT_EQ(go(&s), 0); /* and it is not met again */
    CHECK_UINT_EQ(s.clients.n_ever, 1);
    close_scene(&s);
}

static void cut(const struct scene *s, const char *name)
{
    int fd = openat(s->client, name, O_RDWR);
    REQUIRE(fd >= 0 && ftruncate(fd, 0) == 0);
    close(fd);
}

TEST(that_cuts_its_files_is_closed)
{
    test_leaves_open();
    static const char *const names[] = {"ring.0", "session"};
    for (size_t i = 0; i < TEST_COUNT(names); i++) {
        static struct scene s;
        CONTEXT("%s", names[i]);
        open_scene(&s);
        emit(&s, 1, 20);
        CHECK_UINT_EQ(go(&s), 1);
        cut(&s, names[i]);
        CHECK_UINT_EQ(go(&s), 0);
        CHECK_UINT_EQ(s.clients.n, 0);
        CHECK(found(&s, "a client was closed", "cut"));
        close_scene(&s);
        REQUIRE(unlinkat(s.client, "ring.0", 0) == 0 && unlinkat(s.client, "names", 0) == 0 &&
                unlinkat(s.client, "session", 0) == 0 &&
                unlinkat(s.folder, "1-a", AT_REMOVEDIR) == 0);
        rmdir(test_scratch("collector"));
    }
}

TEST(that_others_can_write_to_is_refused)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    REQUIRE(fchmod(s.client, 0755) == 0);
    CHECK_UINT_EQ(go(&s), 0);
    CHECK(found(&s, "a client is not read", "other users"));
    REQUIRE(fchmod(s.client, 0700) == 0);
    CHECK_UINT_EQ(go(&s), 0); /* for good */
    CHECK_UINT_EQ(s.clients.n_ever, 0);
    close_scene(&s);
}

static uint64_t losses(struct scene *s)
{
    uint64_t lost = 0;
    sv_clients_round(&s->clients, 0, true);
    for (int n; sv_batch_reset(&s->batch),
                (n = s->clients.source.next(&s->clients.source, &s->batch, NULL)) > 0;)
        for (int i = 0; i < n; i++)
            if (s->batch.events[i].kind == SV_LOSS)
                lost += (uint64_t)s->batch.events[i].args[0].i;
    return lost;
}

/* Recovery begins where the last round that was made so has ended: behind its losses, too. */
TEST(losses_are_journalled)
{
    test_leaves_open();
    static struct scene s;
    open_scene(&s);
    emit(&s, 1, 20);
    s.ring->lost_full = 100;
    s.ring->lost_nested = 7;
    CHECK_UINT_EQ(losses(&s), 107);
    sv_clients_mark(&s.clients, 1);
    sv_clients_release(&s.clients);
    s.ring->lost_full = 150;
    CHECK_UINT_EQ(losses(&s), 50);
    sv_clients_mark(&s.clients, 2); /* but the round was not made so */
    struct sv_ring_progress p = sv_ring_committed(s.ring, SIZE, 1);
    CHECK_UINT_EQ(p.lost_full, 100);
    CHECK_UINT_EQ(p.lost_nested, 7);
    CHECK_UINT_EQ(p.pos, s.ring->head);
    p = sv_ring_committed(s.ring, SIZE, 2);
    CHECK_UINT_EQ(p.lost_full, 150);
    p = sv_ring_committed(s.ring, SIZE, 0);
    CHECK_UINT_EQ(p.lost_full, 0);
    CHECK_UINT_EQ(p.pos, SIZE);
    s.ring->mark[0].pos = s.ring->mark[1].pos = SIZE + 4; /* no place where a record can begin */
    CHECK_UINT_EQ(sv_ring_committed(s.ring, SIZE, 2).pos, SIZE);
    close_scene(&s);
}

static bool read_track(struct sv_drain_names *n, struct sv_report *r, uint32_t id)
{
    char record[sizeof(struct sv_name_head) + 8] = {0};
    struct sv_name_head h = {
        .size = sizeof record, .kind = SV_NAME_TRACK, .event = 1, .id = id, .parent = 1};
    memcpy(record, &h, sizeof h);
    uint64_t before = sv_report_count(r, SV_DAMAGE);
    CHECK_UINT_EQ(sv_drain_names_read(n, r, (const uint8_t *)record, sizeof record), sizeof record);
    return sv_report_count(r, SV_DAMAGE) == before;
}

TEST(numbers_far_apart_cost_nothing)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_drain_names n;
    sv_report_init(&report);
    sv_drain_names_init(&n, dict, 1);
    CHECK(read_track(&n, &report, 3));
    CHECK(!read_track(&n, &report, 100));
    CHECK(!read_track(&n, &report, (1u << 24) - 1));
    CHECK(!read_track(&n, &report, UINT32_MAX));
    CHECK(!read_track(&n, &report, 0));
    CHECK(read_track(&n, &report, 4)); /* records between may be damaged */
    CHECK(sv_drain_names_bytes(&n) < 4096);
    for (uint32_t i = 5; i < 10000; i++)
        CHECK(read_track(&n, &report, i));
    CHECK(sv_drain_names_bytes(&n) < 100000);
    sv_drain_names_fini(&n);
    sv_report_fini(&report);
    sv_dict_free(dict);
}
