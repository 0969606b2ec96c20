/* Sessions from start to end: options, names, files, forked children, signals; and what the
 * program around them notices, which is nothing. */
#include "core/base/json_scan.h"
#include "sdk/write/writer.h"
#include "tests/unit/sdk_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the program's own state ---- */

static bool is_masked(int sig)
{
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, sig) == 1;
}

static bool has_default(int sig)
{
    struct sigaction act;
    return sigaction(sig, NULL, &act) == 0 && act.sa_handler == SIG_DFL;
}

TEST(signals_of_the_program_are_as_before)
{
    static struct sdk_scene s;
    static const int endings[] = {SIGTERM, SIGINT, SIGHUP};
    signal(SIGTERM, SIG_DFL); /* who starts the tests may ignore them */
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_IGN);
    sdk_start(&s, NULL);
    for (size_t i = 0; i < TEST_COUNT(endings); i++)
        CHECK(!is_masked(endings[i]));
    CHECK(!has_default(SIGTERM) && !has_default(SIGINT));
    STAVE_INSTANT("c", "n");
    stave_flush();
    CHECK_STR_EQ(sdk_stop(&s), "instant thread n c\n");
    CHECK(has_default(SIGTERM) && has_default(SIGINT));
    struct sigaction act;
    CHECK(sigaction(SIGHUP, NULL, &act) == 0 && act.sa_handler == SIG_IGN);
    sdk_done(&s);
    for (size_t i = 0; i < TEST_COUNT(endings); i++)
        CHECK(!is_masked(endings[i]));
    signal(SIGHUP, SIG_DFL);
    setenv("STAVE_SIGNALS", "0", 1);
    sdk_start(&s, NULL);
    CHECK(has_default(SIGTERM) && has_default(SIGINT) && has_default(SIGHUP));
    sdk_stop(&s);
    unsetenv("STAVE_SIGNALS");
    sdk_done(&s);
}

static void *flush(void *is_done)
{
    stave_flush();
    atomic_store((_Atomic bool *)is_done, true);
    return NULL;
}

/* A forked child finds no lock of the allocator taken: the writer does nothing from before the
 * fork until after it. */
TEST(the_writer_pauses_for_forks)
{
    static struct sdk_scene s;
    static _Atomic bool is_done;
    is_done = false;
    sdk_start(&s, NULL);
    sdk_hold();
    STAVE_INSTANT("c", "waits");
    const struct sv_ring *ring = sv_self->ring;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, flush, &is_done) == 0);
    for (int i = 0; i < 200 && !is_done; i++) /* a writer that does not pause would do it by then */
        usleep(1000);
    CHECK(!is_done && atomic_load(&ring->tail) != atomic_load(&ring->head));
    sdk_release();
    pthread_join(thread, NULL);
    CHECK(is_done && atomic_load(&ring->tail) == atomic_load(&ring->head));
    CHECK_STR_EQ(sdk_stop(&s), "instant thread waits c\n");
    sdk_done(&s);
}

/* ---- options and the environment ---- */

TEST(values_of_the_environment)
{
    static const struct {
        const char *variable, *value, *complaint; /* "": it is taken */
        uint64_t ring_bytes;
    } rows[] = {
        {"STAVE_BUFFER", "16k", "", 16 << 10},
        {"STAVE_BUFFER", "16384", "", 16 << 10},
        {"STAVE_BUFFER", "16383", "expected a size from 16k to 1G", 0},
        {"STAVE_BUFFER", "17K", "", 32 << 10},
        {"STAVE_BUFFER", "2m", "", 2 << 20},
        {"STAVE_BUFFER", "1025m", "expected a size from 16k to 1G", 0},
        {"STAVE_BUFFER", "2g", "expected a size from 16k to 1G", 0},
        {"STAVE_BUFFER", "18014398509481985k", "expected a size from 16k to 1G", 0},
        {"STAVE_BUFFER", "99999999999999999999", "expected a size from 16k to 1G", 0},
        {"STAVE_BUFFER", "64kb", "expected a size from 16k to 1G", 0},
        {"STAVE_BUFFER", "k", "expected a size from 16k to 1G", 0},
        {"STAVE_BUFFER", "-64k", "expected a size from 16k to 1G", 0},
        {"STAVE_BUFFER", "", "", 1 << 20},
        {"STAVE_FULL", "block", "", 1 << 20},
        {"STAVE_FULL", "blocks", "expected drop, block or overwrite", 0},
        {"STAVE_KEEP_MS", "5", "", 1 << 20},
        {"STAVE_KEEP_MS", "5x", "expected a number", 0},
        {"STAVE_AFTER_MS", "x", "expected a number", 0},
        {"STAVE_AFTER_MS", "99999999999999999999", "expected a number", 0},
        {"STAVE_TRIGGER", "name:5", "", 1 << 20},
        {"STAVE_TRIGGER", "name", "expected NAME:MILLISECONDS", 0},
        {"STAVE_TRIGGER", ":5", "expected NAME:MILLISECONDS", 0},
        {"STAVE_TRIGGER", "name:", "expected a number", 0},
        {"STAVE_COMPRESS", "gzip or zstd or what", "too long", 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        static struct sdk_scene s;
        char text[512] = "", expected[480] = "";
        CONTEXT("%s=%s", rows[i].variable, rows[i].value);
        sdk_fresh(&s);
        sdk_hear();
        setenv(rows[i].variable, rows[i].value, 1);
        struct stave_options o = {.size = sizeof o, .out = s.out};
        struct stave_error error;
        int code = rows[i].complaint[0] ? STAVE_EUSAGE : STAVE_OK;
        CHECK_INT_EQ(stave_start(&o, &error), code);
        CHECK_INT_EQ(error.code, code);
        if (rows[i].complaint[0])
            snprintf(expected, sizeof expected, "%s=%s: %s; tracing is off", rows[i].variable,
                     strstr(rows[i].complaint, "number") && strchr(rows[i].value, ':')
                         ? ""
                         : rows[i].value,
                     rows[i].complaint);
        else
            CHECK_UINT_EQ(sv_process->ring_bytes, rows[i].ring_bytes);
        CHECK_STR_EQ(error.text, expected);
        CHECK_INT_EQ(stave_stop(), 0);
        unsetenv(rows[i].variable);
        sdk_done(&s);
        if (expected[0])
            snprintf(text, sizeof text, "stave: %s\n", expected);
        CHECK_STR_EQ(sdk_heard(), text);
        unlink(s.out);
    }
}

TEST(options_that_are_given)
{
    static struct sdk_scene s;
    sdk_start(&s, &(struct stave_options){.buffer_bytes = 20000, .full = STAVE_FULL_BLOCK});
    CHECK_UINT_EQ(sv_process->ring_bytes, 32768);
    CHECK_UINT_EQ(sv_self->ring->size, 32768);
    CHECK_UINT_EQ(sv_process->full, STAVE_FULL_BLOCK);
    stave_i_default_full(STAVE_FULL_DROP); /* of a binding: only where nobody has chosen */
    CHECK_UINT_EQ(sv_process->full, STAVE_FULL_BLOCK);
    sdk_stop(&s);
    sdk_done(&s);
    sdk_start(&s, NULL);
    CHECK_UINT_EQ(sv_process->full, STAVE_FULL_DROP);
    stave_i_default_full(STAVE_FULL_OVERWRITE); /* none of a binding's */
    CHECK_UINT_EQ(sv_process->full, STAVE_FULL_DROP);
    stave_i_default_full(STAVE_FULL_BLOCK);
    CHECK_UINT_EQ(sv_process->full, STAVE_FULL_BLOCK);
    sdk_stop(&s);
    sdk_done(&s);
    sdk_start(&s, NULL);
    CHECK_UINT_EQ(sv_process->full, STAVE_FULL_BLOCK); /* from now on */
    stave_i_default_full(STAVE_FULL_DROP);
    sdk_stop(&s);
    sdk_done(&s);
}

TEST(counts_and_errors_of_other_sizes)
{
    static struct sdk_scene s;
    struct {
        struct stave_counts counts;
        uint8_t guard[16];
    } n;
    sdk_start(&s, NULL);
    STAVE_INSTANT("c", "n");
    stave_flush();
    memset(&n, 0x5a, sizeof n);
    n.counts.size = offsetof(struct stave_counts, lost_full); /* of an older program */
    stave_count(&n.counts);
    CHECK_UINT_EQ(n.counts.events, 1);
    CHECK_UINT_EQ(n.counts.lost_full, 0x5a5a5a5a5a5a5a5a);
    n.counts.size = sizeof n;
    stave_count(&n.counts);
    CHECK_UINT_EQ(n.counts.lost_overwritten, 0);
    CHECK_INT_EQ(n.guard[0], 0x5a);
    sdk_stop(&s);
    sdk_done(&s);
    sdk_fresh(&s);
    sdk_hear();
    struct stave_options o = {.size = sizeof o, .out = "/nowhere/at/all.pftrace"};
    struct stave_error error;
    CHECK_INT_EQ(stave_start(&o, &error), STAVE_EOUTPUT);
    CHECK_INT_EQ(error.code, STAVE_EOUTPUT);
    CHECK_INT_EQ(strncmp(error.text, "/nowhere/at/all.pftrace", 23), 0);
    sdk_done(&s);
    CHECK(strstr(sdk_heard(), "/nowhere/at/all.pftrace") != NULL);
}

/* ---- names ---- */

static const char *track_name(const struct sdk_scene *s, enum sv_track_kind kind, int64_t id)
{
    const struct sv_dict *d = s->file.dict;
    for (sv_track t = 1; t < d->n_tracks; t++)
        if (d->tracks[t].kind == kind &&
            (kind == SV_TRACK_PROCESS ? d->tracks[t].pid : d->tracks[t].tid) == id)
            return sv_dict_text(d, d->tracks[t].name).bytes;
    return "(absent)";
}

TEST(names_of_the_process_and_its_threads)
{
    static struct sdk_scene s;
    char longer[200];
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    sdk_start(&s, NULL);
    stave_set_process_name("first");
    stave_set_process_name("the process");
    stave_set_thread_name(longer);
    STAVE_INSTANT("c", "n");
    sdk_stop(&s);
    CHECK_STR_EQ(track_name(&s, SV_TRACK_PROCESS, getpid()), "the process");
    snprintf(longer + SV_GIVEN_NAME - 4, 4, "...");
    CHECK_STR_EQ(track_name(&s, SV_TRACK_THREAD, gettid()), longer);
    sdk_done(&s);
    sdk_start(&s, NULL); /* neither has one by hand */
    STAVE_INSTANT("c", "n");
    sdk_stop(&s);
    CHECK(strcmp(track_name(&s, SV_TRACK_PROCESS, getpid()), "the process") != 0);
    CHECK_STR_EQ(track_name(&s, SV_TRACK_THREAD, gettid()), program_invocation_short_name);
    sdk_done(&s);
}

/* The first record of all may be a track's. */
TEST(tracks_before_everything_else)
{
    for (int i = 0; i < 3; i++) { /* numbers are given once: a new log has few of them */
        static struct sdk_scene s;
        char name[16], expected[64];
        snprintf(name, sizeof name, "row %d", i);
        sdk_fresh(&s);
        sv_process_init();
        sv_registry_drop();
        stave_track_t row = stave_track(STAVE_PROCESS, name);
        CHECK_UINT_EQ(stave_track(STAVE_PROCESS, name), row);
        struct stave_options o = {.size = sizeof o, .out = s.out};
        REQUIRE(stave_start(&o, NULL) == 0);
        static struct stave_site site; /* of its own: the log is new */
        static const char *const keys[] = {"", 0};
        static const uint8_t types[] = {STAVE_I_TRACK};
        static struct stave_i_dso dso;
        site = (struct stave_site){.state = 1,
                                   .kind = STAVE_KIND_INSTANT,
                                   .n_args = 1,
                                   .cat = "c",
                                   .name = "n",
                                   .keys = keys,
                                   .types = types,
                                   .dso = &dso};
        memset(&dso, 0, sizeof dso);
        stave_i_emit(&site, (uint64_t[]){row});
        snprintf(expected, sizeof expected, "instant %s n c\n", name);
        CHECK_STR_EQ(sdk_stop(&s), expected);
        stave_i_dso_gone(&dso);
        sdk_done(&s);
        unlink(s.out);
    }
}

/* Beyond what is mapped of the file they are written; where that fails, events of new places are
 * counted. */
TEST(names_that_cannot_be_written)
{
    static struct sdk_scene s;
    struct rlimit usual, small;
    char name[1000];
    sdk_hear();
    sdk_start(&s, &(struct stave_options){.full = STAVE_FULL_OVERWRITE});
    REQUIRE(getrlimit(RLIMIT_FSIZE, &usual) == 0);
    small = (struct rlimit){SV_NAMES_MAPPED, usual.rlim_max};
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 50; i++) {
        snprintf(name, 16, "%d", i);
        name[strlen(name)] = 'x';
        name[sizeof name - 1] = '\0';
        stave_track(STAVE_PROCESS, name);
    }
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    struct stave_counts n = {.size = sizeof n};
    for (int i = 0; i < 2; i++)
        STAVE_INSTANT("c", "place 1");
    STAVE_INSTANT("c", "place 2");
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_ring, 3);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &usual) == 0);
    atomic_store(&sv_process->names_failed_ns, 0); /* it is tried again after a second */
    STAVE_INSTANT("c", "place 3");
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_ring, 3);
    CHECK_INT_EQ(stave_trigger("now"), 1);
    CHECK_INT_EQ(stave_stop(), 0);
    sdk_done(&s);
    const char *text = sdk_heard();
    CHECK(strstr(text, "cannot write the names of events") && strstr(text, "File too large"));
}

/* ---- files ---- */

/* The program closes all descriptors, and their numbers are other files' then. */
TEST(descriptors_that_the_program_closes)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    struct sv_process *p = sv_process;
    int dir = p->dir_fd, names = p->names_fd;
    CHECK_INT_EQ(sv_files_dir(p), dir);
    CHECK_INT_EQ(sv_files_names(p), names);
    int other = open("/", O_RDONLY | O_DIRECTORY);
    REQUIRE(dup2(other, dir) == dir && dup2(other, names) == names);
    int again = sv_files_dir(p);
    CHECK(again >= 0 && again != dir && sv_file_id_is(again, &p->dir_id));
    CHECK_INT_EQ(sv_files_dir(p), again);
    again = sv_files_names(p);
    CHECK(again >= 0 && again != names && sv_file_id_is(again, &p->names_id));
    CHECK_INT_EQ(sv_files_names(p), again);
    STAVE_INSTANT("c", "n");
    CHECK_STR_EQ(sdk_stop(&s), "instant thread n c\n");
    sdk_done(&s);
    struct stat st;
    CHECK(fstat(dir, &st) == 0 && fstat(names, &st) == 0); /* the program's, and left alone */
    close(dir);
    close(names);
    close(other);
}

/* The growing file is removed with its folder: it is written again, with its rights. */
TEST(a_growing_file_that_is_removed)
{
    static struct sdk_scene s;
    char folder[300], part[SV_PATH_MAX];
    struct stat st;
    sdk_fresh(&s);
    sdk_hear();
    snprintf(folder, sizeof folder, "%s", test_scratch("folder"));
    snprintf(s.out, sizeof s.out, "%s/t.pftrace", folder);
    REQUIRE(mkdir(folder, 0700) == 0);
    struct stave_options o = {.size = sizeof o, .out = s.out};
    REQUIRE(stave_start(&o, NULL) == 0);
    STAVE_INSTANT("c", "before");
    stave_flush();
    snprintf(part, sizeof part, "%s", sv_process->session->part);
    REQUIRE(chmod(part, 0640) == 0 && unlink(part) == 0);
    STAVE_INSTANT("c", "after");
    CHECK_STR_EQ(sdk_stop(&s), "instant thread before c\ninstant thread after c\n");
    CHECK(stat(s.out, &st) == 0 && (st.st_mode & 0777) == 0640);
    CHECK_UINT_EQ(sdk_entries(folder), 1);
    sdk_done(&s);
    CHECK(strstr(sdk_heard(), "it was removed while it was written, and is written again") != NULL);
}

/* Near a limit of the file's size each batch is made whole. */
TEST(limits_of_the_files_size)
{
    static const struct {
        rlim_t limit;
        bool is_near;
    } rows[] = {{RLIM_INFINITY, false},
                {100 << 20, false},
                {1100 << 10, false},
                {1 << 20, true},
                {500 << 10, true}};
    struct rlimit usual;
    REQUIRE(getrlimit(RLIMIT_FSIZE, &usual) == 0);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        static struct sdk_scene s;
        CONTEXT("row %zu", i);
        sdk_start(&s, &(struct stave_options){.buffer_bytes = 16 << 10});
        CHECK(!sv_process->writer->is_near_limit);
        struct rlimit limit = {rows[i].limit, usual.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        STAVE_INSTANT("c", "n");
        stave_flush();
        CHECK_INT_EQ(sv_process->writer->is_near_limit, rows[i].is_near);
        CHECK_STR_EQ(sdk_stop(&s), "instant thread n c\n");
        setrlimit(RLIMIT_FSIZE, &usual);
        sdk_done(&s);
        unlink(s.out);
    }
}

/* ---- threads and processes ---- */

static void *one_event(void *ring)
{
    STAVE_INSTANT("c", "of a thread");
    *(const struct sv_ring **)ring = sv_self->ring;
    return NULL;
}

/* A ring whose thread has ended is the next one's, once it was read. */
TEST(rings_of_threads_that_have_ended)
{
    static struct sdk_scene s;
    const struct sv_ring *rings[3] = {0};
    sdk_start(&s, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        if (i == 1)
            sdk_hold();
        REQUIRE(pthread_create(&t, NULL, one_event, &rings[i]) == 0);
        pthread_join(t, NULL);
        if (i == 0)
            stave_flush();
    }
    sdk_release();
    CHECK(rings[0] && rings[0] == rings[1] && rings[2] && rings[1] != rings[2]);
    CHECK_UINT_EQ(atomic_load(&sv_process->n_rings), 3);
    sdk_stop(&s);
    CHECK_UINT_EQ(s.file.got.n, 3);
    CHECK(s.file.got.n == 3 && s.file.got.events[0].track != s.file.got.events[1].track &&
          s.file.got.events[1].track != s.file.got.events[2].track);
    sdk_done(&s);
}

static int status_of(pid_t pid)
{
    int status = -1;
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

/* A forked child has rings of its own, of the same size, in its parent's session, and its parent
 * writes them. */
TEST(forked_children_are_clients)
{
    static struct sdk_scene s;
    for (int ends_by_exit = 0; ends_by_exit < 2; ends_by_exit++) {
        CONTEXT("%d", ends_by_exit);
        sdk_start(&s, &(struct stave_options){.buffer_bytes = 32 << 10, .full = STAVE_FULL_BLOCK});
        STAVE_BEGIN("c", "of the parent");
        pid_t pid = fork();
        if (pid == 0) {
            STAVE_END("c"); /* it has begun nothing */
            STAVE_INSTANT("c", "of the child");
            bool ok = sv_self->ring && sv_self->ring->size == 32 << 10 && sv_process->collector &&
                      sv_process->full == STAVE_FULL_BLOCK && !sv_process->has_writer &&
                      sv_process->ring_bytes_given;
            ok = ok && stave_flush() == 0; /* it is in the parent's file */
            if (ends_by_exit)
                stave_finish();
            _exit(ok ? 0 : 1);
        }
        CHECK_INT_EQ(status_of(pid), 0);
        stave_flush();
        STAVE_END("c");
        sdk_stop(&s);
        CHECK_UINT_EQ(s.file.got.n, 3);
        CHECK(strstr(sv_buf_cstr(&s.text), " of the child c\n") != NULL);
        for (size_t i = 0; i < s.file.got.n; i++) {
            const struct sv_event *e = &s.file.got.events[i];
            if (e->kind == SV_INSTANT)
                CHECK_INT_EQ(s.file.dict->tracks[e->track].tid, pid);
        }
        sdk_done(&s);
        unlink(s.out);
    }
}

static bool wait_for_byte(int fd)
{
    char c;
    return read(fd, &c, 1) == 1;
}

static const char *own_file(pid_t pid)
{
    char name[64];
    snprintf(name, sizeof name, "t.%d.pftrace", (int)pid);
    return test_scratch(name);
}

/* A child that lives longer than its parent's session goes on into a file of its own, from where
 * the parent has read. */
TEST(forked_children_that_go_on)
{
    static struct sdk_scene s;
    int ends[2], begun[2];
    sdk_start(&s, NULL);
    REQUIRE(pipe(ends) == 0 && pipe(begun) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        STAVE_INSTANT("c", "one");
        bool ok = stave_flush() == 0 && write(begun[1], "x", 1) == 1 && wait_for_byte(ends[0]);
        ok = ok && sv_process->collector;
        STAVE_INSTANT("c", "two");
        ok = ok && stave_flush() == 0 && sv_process->has_writer && !sv_process->collector;
        STAVE_INSTANT("c", "three");
        stave_finish();
        _exit(ok ? 0 : 1);
    }
    CHECK(wait_for_byte(begun[0]));
    sdk_stop(&s);
    CHECK_UINT_EQ(s.file.got.n, 1);
    CHECK_UINT_EQ(sdk_entries(s.dir), 2); /* of both */
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK_INT_EQ(status_of(pid), 0);
    sdk_read(&s, own_file(pid));
    REQUIRE(s.file.got.n == 2);
    CHECK_STR_EQ(sv_dict_text(s.file.dict, s.file.got.events[0].name).bytes, "two");
    CHECK_INT_EQ(s.file.dict->tracks[s.file.got.events[0].track].tid, pid);
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(begun[i]);
    }
    sdk_done(&s);
}

/* The parent is killed: the child finds that out, and has what the rings hold. */
TEST(forked_children_of_a_killed_program)
{
    static struct sdk_scene s;
    int ends[2], begun[2];
    sdk_fresh(&s);
    sdk_hear();
    REQUIRE(pipe(ends) == 0 && pipe(begun) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct stave_options o = {.size = sizeof o, .out = s.out};
        stave_start(&o, NULL);
        sdk_hold();
        if (fork() == 0) {
            STAVE_INSTANT("c", "one");
            pid_t self = getpid();
            bool ok = write(begun[1], &self, sizeof self) == sizeof self && wait_for_byte(ends[0]);
            STAVE_INSTANT("c", "two");
            stave_finish();
            _exit(ok && write(begun[1], "x", 1) == 1 ? 0 : 1);
        }
        for (;;)
            pause();
    }
    pid_t child = 0;
    close(begun[1]); /* a child that ends early is an end here, too */
    CHECK(read(begun[0], &child, sizeof child) == sizeof child);
    kill(parent, SIGKILL);
    CHECK(WIFSIGNALED(status_of(parent)));
    CHECK(write(ends[1], "x", 1) == 1 && wait_for_byte(begun[0]));
    sdk_read(&s, own_file(child));
    CHECK_UINT_EQ(s.file.got.n, 2);
    CHECK_UINT_EQ(sdk_entries(s.dir), 1); /* the parent's, for `stave recover` */
    for (int i = 0; i < 2; i++)
        close(ends[i]);
    close(begun[0]);
    sdk_heard();
}

static void emit_number(int i)
{
    STAVE_INSTANT("c", "n", "i", i);
}

/* The file cannot grow any more: it is cut where it is whole, and says how many are missing. */
TEST(a_file_at_its_limit)
{
    static const char *const suffixes[] = {"pftrace", "json"};
    for (size_t k = 0; k < TEST_COUNT(suffixes); k++) {
        static struct sdk_scene s;
        struct rlimit usual, small;
        struct stat st;
        enum { EVENTS = 3000 };
        CONTEXT("%s", suffixes[k]);
        sdk_fresh(&s);
        sdk_hear();
        snprintf(s.out, sizeof s.out, "%s.%s", test_scratch("limit"), suffixes[k]);
        struct stave_options o = {.size = sizeof o, .out = s.out, .full = STAVE_FULL_BLOCK};
        REQUIRE(stave_start(&o, NULL) == 0);
        emit_number(0); /* its name is known before there is a limit */
        CHECK_INT_EQ(stave_flush(), 0);
        REQUIRE(stat(sv_process->session->part, &st) == 0 && getrlimit(RLIMIT_FSIZE, &usual) == 0);
        small = (struct rlimit){(rlim_t)st.st_size + 9000, usual.rlim_max};
        REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
        for (int i = 1; i < EVENTS; i++)
            emit_number(i);
        CHECK_INT_EQ(stave_flush(), STAVE_EOUTPUT);
        struct stave_counts n = {.size = sizeof n};
        CHECK_INT_EQ(stave_stop(), STAVE_EOUTPUT);
        stave_count(&n);
        setrlimit(RLIMIT_FSIZE, &usual);
        CHECK(n.lost_output > 0 && n.lost_output < EVENTS);
        CHECK(stat(s.out, &st) == 0 && st.st_size <= (off_t)small.rlim_cur);
        if (k == 0) {
            int64_t lost = 0, kept = 0;
            sdk_read(&s, s.out);
            for (size_t i = 0; i < s.file.got.n; i++) {
                const struct sv_event *e = &s.file.got.events[i];
                if (e->kind == SV_LOSS)
                    lost += e->args[0].i;
                else
                    CHECK_INT_EQ(e->args[0].i, kept++); /* the first ones */
            }
            CHECK_INT_EQ(kept + lost, EVENTS);
            CHECK_INT_EQ(lost, n.lost_output);
        } else {
            FILE *f = fopen(s.out, "r");
            static char text[1 << 20];
            size_t len = f ? fread(text, 1, sizeof text - 64, f) : 0;
            CHECK(len > 0 && sv_json_valid((const uint8_t *)text, len));
            if (f)
                fclose(f);
        }
        sdk_done(&s);
        const char *text = sdk_heard();
        CHECK(strstr(text, "File too large; further events are lost and counted\n") != NULL);
    }
}

/* With %p in the name a child has a file of its own. */
TEST(forked_children_with_files)
{
    static struct sdk_scene s;
    char expected[300];
    sdk_fresh(&s);
    struct stave_options o = {.size = sizeof o, .out = test_scratch("t.%p.pftrace")};
    REQUIRE(stave_start(&o, NULL) == 0);
    CHECK_STR_EQ(stave_session(), "");
    pid_t pid = fork();
    if (pid == 0) {
        STAVE_INSTANT("c", "of the child");
        bool ok = sv_process->has_writer && !sv_process->collector;
        stave_finish();
        _exit(ok ? 0 : 1);
    }
    CHECK_INT_EQ(status_of(pid), 0);
    CHECK_INT_EQ(stave_stop(), 0);
    snprintf(expected, sizeof expected, "t.%d.pftrace", (int)pid);
    sdk_read(&s, test_scratch(expected));
    CHECK_UINT_EQ(s.file.got.n, 1);
    sdk_done(&s);
}

/* A signal that ends the program completes the file first. */
TEST(ends_by_a_signal)
{
    static struct sdk_scene s;
    static const int endings[] = {SIGTERM, SIGINT, SIGHUP, SIGKILL};
    for (size_t i = 0; i < TEST_COUNT(endings); i++) {
        CONTEXT("signal %d", endings[i]);
        sdk_fresh(&s);
        sdk_hear();
        if (endings[i] != SIGKILL)
            signal(endings[i], SIG_DFL); /* who starts the tests may ignore it */
        pid_t pid = fork();
        if (pid == 0) {
            struct stave_options o = {.size = sizeof o, .out = s.out};
            stave_start(&o, NULL);
            STAVE_INSTANT("c", "n");
            raise(endings[i]);
            _exit(0);
        }
        int status = status_of(pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == endings[i]);
        if (endings[i] == SIGKILL) {
            CHECK_STR_EQ(sdk_read(&s, s.out), "(absent)");
            CHECK_UINT_EQ(sdk_entries(s.dir), 1);
            sdk_heard();
            break;
        }
        sdk_read(&s, s.out);
        CHECK_UINT_EQ(s.file.got.n, 1);
        sdk_done(&s);
        CHECK_STR_EQ(sdk_heard(), "");
        unlink(s.out);
    }
}
