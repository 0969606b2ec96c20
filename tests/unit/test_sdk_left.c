/* What processes leave behind: looking at their sessions, reading the rings, removing the files;
 * and the session of a collector. */
#include "core/files/trusted.h"
#include "sdk/collect/client_files.h"
#include "sdk/collect/collect.h"
#include "sdk/recover/abandoned.h"
#include "tests/unit/sdk_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- killed programs ---- */

struct left {
    struct sdk_scene s;
    char dir[SV_PATH_MAX]; /* of the session */
};

static int take_dir(void *ctx, const char *dir)
{
    snprintf(ctx, SV_PATH_MAX, "%s", dir);
    return 0;
}

/* A program with so many forked children that is killed with all of them, with `in_file` events in
 * its file and `in_rings` in the rings of each. */
static void make_left(struct left *l, int children, int in_file, int in_rings)
{
    sdk_fresh(&l->s);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        struct stave_options o = {.size = sizeof o, .out = l->s.out, .buffer_bytes = 64 << 10};
        stave_start(&o, NULL);
        stave_set_process_name("parent");
        stave_set_thread_name("its thread");
        for (int i = 0; i < in_file; i++)
            STAVE_INSTANT("c", "file", "i", i);
        stave_flush();
        sdk_hold(); /* from here on nobody reads, nor does a fork wait for it */
        for (int i = 0; i < in_rings; i++)
            STAVE_INSTANT("c", "ring", "i", i);
        for (int k = 0; k < children; k++) {
            pid_t child = fork();
            if (child == 0) {
                for (int i = 0; i < in_rings; i++)
                    STAVE_INSTANT("c", "child", "i", i);
                if (write(ends[1], "x", 1) != 1)
                    _exit(1);
                for (;;)
                    pause();
            }
            if (child < 0)
                _exit(1);
        }
        if (write(ends[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    REQUIRE(pid > 0);
    for (int i = 0; i < children + 1; i++) {
        char c;
        REQUIRE(read(ends[0], &c, 1) == 1);
    }
    kill(-pid, SIGKILL);
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    close(ends[0]);
    close(ends[1]);
    struct sv_folder f = {.is_given = true};
    snprintf(f.path, sizeof f.path, "%s", l->s.dir);
    l->dir[0] = '\0';
    CHECK_INT_EQ(sv_abandoned_each(&f, take_dir, l->dir), 0);
    REQUIRE(l->dir[0] != '\0');
}

/* Children of killed parents are reaped by somebody else: they may still be there for a moment. */
static void look(const struct left *l, struct sv_abandoned *d)
{
    struct sv_err err = {0};
    for (int i = 0; i < 10000; i++) {
        REQUIRE(sv_abandoned_look(l->dir, d, &err) == 0);
        if (d->process == SV_PROCESS_GONE && d->clients == SV_PROCESS_GONE)
            return;
        usleep(1000);
    }
    CHECK(false);
}

static const char *source_lines(struct left *l, const struct sv_abandoned *d,
                                struct sv_report *report)
{
    struct sv_err err = {0};
    struct sv_source *source;
    struct sv_batch b;
    struct sv_dict *dict = sv_dict_new();
    struct sv_buf one;
    sv_buf_init(&one, 1 << 20);
    sv_buf_clear(&l->s.text);
    REQUIRE(sv_abandoned_source(d, dict, report, &source, &err) == 0);
    sv_batch_init(&b);
    int n;
    while ((n = source->next(source, &b, &err)) > 0) {
        for (size_t i = 0; i < b.n; i++) {
            const char *line = dump(&one, dict, &b.events[i], 1);
            const struct sv_track_info *t = &dict->tracks[b.events[i].track];
            sv_buf_printf(&l->s.text, "%s %s %s%s", sv_kind_name(b.events[i].kind),
                          sv_dict_text(dict, dict->tracks[t->parent].name).bytes,
                          sv_dict_text(dict, t->name).bytes, strchr(line, '#') + 17);
        }
        sv_batch_reset(&b);
    }
    CHECK_INT_EQ(n, 0);
    source->close(source);
    sv_batch_fini(&b);
    sv_dict_free(dict);
    sv_buf_fini(&one);
    return sv_buf_cstr(&l->s.text);
}

TEST(of_a_program_with_children)
{
    static struct left l;
    static struct sv_abandoned d;
    struct sv_report report;
    make_left(&l, 2, 3, 2);
    look(&l, &d);
    CHECK_STR_EQ(d.dir, l.dir);
    CHECK_STR_EQ(d.session.out, l.s.out);
    CHECK_STR_EQ(d.session.name, "parent");
    CHECK_UINT_EQ(d.n_clients, 2);
    CHECK_UINT_EQ(d.ring_bytes, 3 * 2 * 24);
    CHECK_UINT_EQ(d.ring_losses, 0);
    CHECK_UINT_EQ(d.running_client, 0);
    CHECK(sv_abandoned_has_trace(&d) && !sv_abandoned_is_kept(&d) && !d.is_other_version);
    struct stat st;
    CHECK(stat(d.session.part, &st) == 0 && (uint64_t)st.st_size >= d.part_bytes &&
          d.part_bytes > 0);
    sv_report_init(&report);
    const char *lines = source_lines(&l, &d, &report);
    CHECK_UINT_EQ(report.n, 0);
    CHECK(
        strncmp(
            lines,
            "instant parent its thread ring c i=int:0\ninstant parent its thread ring c i=int:1\n",
            82) == 0);
    size_t n = 0;
    for (const char *at = lines; (at = strstr(at, " child c i=int:")); at++)
        n++;
    CHECK_UINT_EQ(n, 4);
    CHECK_STR_EQ(lines, source_lines(&l, &d, &report)); /* nothing was changed */
    sv_abandoned_note_kept(&d);
    look(&l, &d);
    CHECK(sv_abandoned_is_kept(&d) && sv_abandoned_has_trace(&d));
    CHECK(sv_abandoned_remove(&d));
    CHECK_UINT_EQ(sdk_entries(l.s.dir), 0);
    CHECK(!sv_abandoned_remove(&d));
    sv_report_fini(&report);
    sdk_done(&l.s);
}

/* Times of a program that was killed when it had compared its clocks once: by now they can be
 * compared again. */
TEST(with_one_reading_of_the_clocks)
{
    static struct left l;
    static struct sv_abandoned d;
    struct sv_report report;
    struct sv_source *source;
    struct sv_err err = {0};
    struct sv_batch b;
    int64_t before = stave_now_ns();
    make_left(&l, 0, 1, 2);
    int64_t after = stave_now_ns();
    look(&l, &d);
    CHECK(atomic_load(&d.session.n_ticks) > 1);
    struct sv_tick tick = d.session.ticks[0];
    int64_t boot_minus_mono = tick.boot_ns - tick.mono_ns;
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    sv_batch_init(&b);
    for (uint64_t n = 0; n < 3; n++) {
        CONTEXT("%d readings", (int)n);
        atomic_store(&d.session.n_ticks, n);
        REQUIRE(sv_abandoned_source(&d, dict, &report, &source, &err) == 0);
        sv_batch_reset(&b);
        REQUIRE(source->next(source, &b, &err) == 2);
        int64_t slack = n == 0 ? INT64_MAX / 4 : 1000000; /* with none, the pair of now is all */
        for (size_t i = 0; i < 2; i++)
            CHECK(b.events[i].ts_ns - boot_minus_mono >= before - slack &&
                  b.events[i].ts_ns - boot_minus_mono <= after + slack);
        source->close(source);
    }
    CHECK(sv_abandoned_remove(&d));
    sv_batch_fini(&b);
    sv_report_fini(&report);
    sv_dict_free(dict);
    sdk_done(&l.s);
}

/* A client whose files are damaged is named, and the others are read. */
TEST(of_which_one_is_damaged)
{
    static struct left l;
    static struct sv_abandoned d;
    char path[2 * SV_PATH_MAX];
    struct sv_report report;
    make_left(&l, 1, 1, 1);
    look(&l, &d);
    snprintf(path, sizeof path, "%s/0-none", l.dir);
    REQUIRE(mkdir(path, 0700) == 0); /* no session in it */
    look(&l, &d);
    CHECK_UINT_EQ(d.n_clients, 1);
    sv_report_init(&report);
    const char *lines = source_lines(&l, &d, &report);
    CHECK(strstr(lines, " ring c i=int:0") && strstr(lines, " child c i=int:0"));
    CHECK_UINT_EQ(sv_report_count(&report, SV_DAMAGE), 1);
    CHECK_STR_EQ(report.rows[0].what, "a process left no session");
    CHECK(strstr(report.rows[0].first_detail, "/0-none") != NULL);
    rmdir(path);
    CHECK(sv_abandoned_remove(&d));
    sv_report_fini(&report);
    sdk_done(&l.s);
}

TEST(that_are_no_sessions)
{
    static struct left l;
    static struct sv_abandoned d;
    struct sv_err err = {0};
    char path[SV_PATH_MAX + 16], copy[SV_PATH_MAX + 16];
    make_left(&l, 0, 1, 1);
    snprintf(path, sizeof path, "%s/session", l.dir);
    snprintf(copy, sizeof copy, "%s/copy", l.dir);
    REQUIRE(chmod(l.dir, 0755) == 0);
    CHECK_INT_EQ(sv_abandoned_look(l.dir, &d, &err), SV_EINPUT);
    CHECK(strstr(err.msg, "another user could have written it; it is not read") != NULL);
    REQUIRE(chmod(l.dir, 0700) == 0);
    REQUIRE(rename(path, copy) == 0);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_abandoned_look(l.dir, &d, &err), SV_EINPUT);
    CHECK(strstr(err.msg, "is not a session directory") != NULL);
    static const struct {
        off_t at, size; /* size 0: as it is */
        uint32_t value;
        const char *message;
    } rows[] = {{offsetof(struct sv_session_file, magic), 0, 1, "the session file is damaged"},
                {offsetof(struct sv_session_file, version), 0, SV_LAYOUT_VERSION + 1,
                 "made by another version of libstave"},
                {0, SV_SESSION_BYTES - 1, SV_SESSION_MAGIC, "the session file is damaged"},
                {0, SV_SESSION_BYTES, SV_SESSION_MAGIC, ""}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        char command[3 * SV_PATH_MAX];
        snprintf(command, sizeof command, "cp -p %s %s", copy, path);
        REQUIRE(system(command) == 0);
        int fd = open(path, O_RDWR);
        REQUIRE(fd >= 0 && pwrite(fd, &rows[i].value, 4, rows[i].at) == 4);
        REQUIRE(rows[i].size == 0 || ftruncate(fd, rows[i].size) == 0);
        close(fd);
        err = (struct sv_err){0};
        CHECK_INT_EQ(sv_abandoned_look(l.dir, &d, &err), rows[i].message[0] ? SV_EFORMAT : 0);
        CHECK(strstr(err.msg, rows[i].message) != NULL);
        CHECK_INT_EQ(d.is_other_version, i == 1);
    }
    CHECK_INT_EQ(sv_abandoned_look("/nowhere/at/all", &d, &err), SV_EINPUT);
    unlink(copy);
    CHECK(sv_abandoned_remove(&d) == false); /* the look before has another name in it */
    look(&l, &d);
    CHECK(sv_abandoned_remove(&d));
    sdk_done(&l.s);
}

/* ---- a collector's own session ---- */

struct collected {
    struct sdk_scene s;
    char dir[300];
    struct sv_collect *c;
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_batch batch;
    struct sv_err err;
    struct sv_abandoned look;
};

static void open_collector(struct collected *t)
{
    memset(t, 0, sizeof *t);
    sdk_fresh(&t->s);
    t->dict = sv_dict_new();
    sv_report_init(&t->report);
    sv_batch_init(&t->batch);
    snprintf(t->dir, sizeof t->dir, "%s", test_scratch("collector"));
    REQUIRE(sv_collect_open(t->dir, "out.pftrace", "/x/part", t->dict, &t->report, &t->c,
                            &t->err) == 0);
}

static void close_collector(struct collected *t)
{
    struct stat st;
    sv_collect_close(t->c, false);
    CHECK(stat(t->dir, &st) != 0 && errno == ENOENT);
    CHECK_UINT_EQ(t->report.n, 0);
    sv_batch_fini(&t->batch);
    sv_report_fini(&t->report);
    sv_dict_free(t->dict);
    sdk_done(&t->s);
}

TEST(the_session_of_a_collector)
{
    static struct collected t;
    struct stat st;
    char path[400], here[SV_PATH_MAX], out[SV_PATH_MAX + 16];
    open_collector(&t);
    CHECK_STR_EQ(sv_collect_dir(t.c), t.dir);
    snprintf(path, sizeof path, "%s/session", t.dir);
    CHECK(stat(t.dir, &st) == 0 && (st.st_mode & 07777) == 0700);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600 && st.st_size == SV_SESSION_BYTES);
    struct sv_collect *second = NULL;
    CHECK_INT_EQ(sv_collect_open(t.dir, "", "", t.dict, &t.report, &second, &t.err), SV_EIO);
    CHECK(strstr(t.err.msg, "cannot make ") != NULL);
    REQUIRE(sv_abandoned_look(t.dir, &t.look, &t.err) == 0);
    const struct sv_session_file *s = &t.look.session;
    snprintf(out, sizeof out, "%s/out.pftrace", getcwd(here, sizeof here));
    CHECK_STR_EQ(s->out, out);
    CHECK_STR_EQ(s->part, "/x/part");
    CHECK_STR_EQ(s->command, "collector");
    CHECK(t.look.process == SV_PROCESS_RUNS && atomic_load(&s->n_ticks) == 1);
    CHECK_UINT_EQ(s->process.pid, getpid());
    CHECK(sv_abandoned_has_trace(&t.look) && t.look.n_clients == 0);
    close_collector(&t);
}

TEST(a_client_of_a_collector)
{
    static struct collected t;
    int ends[2], status;
    open_collector(&t);
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char x;
        setenv("STAVE_SESSION", t.dir, 1);
        bool ok = stave_start(NULL, NULL) == 0;
        STAVE_INSTANT("c", "of a client");
        ok = ok && read(ends[0], &x, 1) == 1; /* until the parent says so */
        stave_finish();
        _exit(ok ? 0 : 1);
    }
    uint64_t bytes = 0;
    for (int i = 0; i < 10000 && bytes == 0; i++) {
        bytes = sv_collect_round(t.c, true);
        usleep(1000);
    }
    CHECK_UINT_EQ(bytes, 16);
    CHECK_UINT_EQ(sv_collect_n_ever(t.c), 1);
    CHECK_UINT_EQ(sv_collect_n_running(t.c), 1);
    CHECK(sv_collect_has(t.c, (uint32_t)pid) && !sv_collect_has(t.c, (uint32_t)getpid()));
    struct sv_source *source = sv_collect_source(t.c);
    CHECK_INT_EQ(source->next(source, &t.batch, &t.err), 1);
    CHECK_STR_EQ(sv_dict_text(t.dict, t.batch.events[0].name).bytes, "of a client");
    sv_collect_commit(t.c, 1234);
    REQUIRE(sv_abandoned_look(t.dir, &t.look, &t.err) == 0);
    CHECK(t.look.part_bytes == 1234 && t.look.n_clients == 1 && t.look.ring_bytes == 0);
    CHECK_UINT_EQ(t.look.running_client, pid);
    CHECK(t.look.clients == SV_PROCESS_RUNS);
    CHECK(write(ends[1], "x", 1) == 1);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    for (int i = 0; i < 10000 && sv_collect_n_running(t.c) > 0; i++) {
        sv_collect_round(t.c, true);
        sv_batch_reset(&t.batch);
        CHECK_INT_EQ(source->next(source, &t.batch, &t.err), 0);
        sv_collect_commit(t.c, 1234);
    }
    CHECK_UINT_EQ(sv_collect_n_running(t.c), 0);
    close(ends[0]);
    close(ends[1]);
    close_collector(&t);
}

/* ---- files ---- */

static void make_session(const char *dir, uint32_t n_rings, const char *more)
{
    char path[SV_PATH_MAX + 32];
    static struct sv_session_file file;
    file = (struct sv_session_file){
        .magic = SV_SESSION_MAGIC, .version = SV_LAYOUT_VERSION, .n_rings = n_rings};
    snprintf(file.more, sizeof file.more, "%s", more);
    REQUIRE(mkdir(dir, 0700) == 0);
    snprintf(path, sizeof path, "%s/session", dir);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0 && write(fd, &file, sizeof file) == sizeof file);
    close(fd);
    snprintf(path, sizeof path, "%s/names", dir);
    test_write_file(path, "names");
}

static void put_file(const char *dir, const char *name)
{
    char path[SV_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    test_write_file(path, "x");
}

/* Of the directory what is a session's; of a second one of the same name only rings; with and
 * without memory. */
TEST(files_that_are_removed)
{
    for (int without_memory = 0; without_memory < 2; without_memory++) {
        char dir[300], more[300], stranger[300];
        CONTEXT("without memory: %d", without_memory);
        snprintf(dir, sizeof dir, "%s", test_scratch("1-a"));
        snprintf(more, sizeof more, "%s/1-a", test_scratch("elsewhere"));
        snprintf(stranger, sizeof stranger, "%s", test_scratch("stranger"));
        mkdir(test_scratch("elsewhere"), 0700);
        REQUIRE(mkdir(more, 0700) == 0);
        make_session(dir, 3, more);
        put_file(dir, "ring.0");
        put_file(dir, "ring.2");
        put_file(more, "ring.1");
        test_alloc_fail(without_memory ? 1 : 0);
        bool is_removed = sv_client_files_remove(AT_FDCWD, dir);
        test_alloc_fail(0);
        CHECK(is_removed);
        CHECK(access(dir, F_OK) != 0 && access(more, F_OK) != 0);
        CHECK(!sv_client_files_remove(AT_FDCWD, dir)); /* it is gone */

        REQUIRE(mkdir(stranger, 0700) == 0); /* of another name: nothing of it */
        put_file(stranger, "ring.0");
        make_session(dir, 1, stranger);
        put_file(dir, "of somebody else");
        test_alloc_fail(without_memory ? 1 : 0);
        is_removed = sv_client_files_remove(AT_FDCWD, dir);
        test_alloc_fail(0);
        CHECK(!is_removed);
        CHECK_UINT_EQ(sdk_entries(dir), 1);
        CHECK_UINT_EQ(sdk_entries(stranger), 1);
        char command[700];
        snprintf(command, sizeof command, "rm -r %s %s", dir, stranger);
        REQUIRE(system(command) == 0);
    }
}
