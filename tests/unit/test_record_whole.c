/* Whole recordings in this process, with kernel programs and without: what is in the file, what the
 * summary says, which exit code comes out. What the parts do has tests of their own; here they are
 * together. */
#include "cmd/commands.h"
#include "core/files/input.h"
#include "record/kernel/kernel.h"
#include "tests/harness/test.h"
#include "tests/unit/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int record(const char *line)
{
    return verb(&sv_command_record, line);
}

/* The rows of a query over t.pftrace, as CSV without its head. */
static const char *ask(const char *file, const char *sql)
{
    static char line[2048];
    snprintf(line, sizeof line, "--to csv %s '%s'", file, sql);
    if (!CHECK_INT_EQ(verb(&sv_command_query, line), 0))
        printf("%s\n%s\n", line, verb_message);
    const char *rows = strchr(verb_shown, '\n');
    return rows ? rows + 1 : "";
}

static void need_sql(void)
{
#ifndef SV_HAVE_SQLITE
    SKIP("built without SQLite, which looks into the trace");
#endif
}

static void need_kernel(void)
{
    need_sql();
    struct sv_kernel_options options = {0};
    struct sv_kernel *k;
    struct sv_err err = {0};
    static char why[600];
    if (!sv_kernel_is_built())
        SKIP("built without eBPF");
    if (sv_kernel_open(&options, &k, &err) < 0) {
        snprintf(why, sizeof why, "no kernel programs here: %.500s", err.msg);
        SKIP(why);
    }
    sv_kernel_close(k);
}

/* A file of 1,000 bytes; a program that reads it, writes it to another one and ends with 7; one
 * that opens it 3,000 times and ends with 3. */
static void make_work(void)
{
    char text[1001];
    memset(text, 'x', sizeof text - 1);
    text[1000] = '\0';
    test_write_file("in", text);
    test_write_file("work.sh", "dd if=in of=out bs=500 status=none\nexit 7\n");
    test_write_file("many.sh", "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); : <in; done; exit 3\n");
}

/* What was said has this, however many blanks are between the words. */
static bool says(const char *text)
{
    char line[sizeof verb_said];
    size_t n = 0;
    for (const char *c = verb_said; *c; c++)
        if (*c != ' ' || (n > 0 && line[n - 1] != ' '))
            line[n++] = *c;
    line[n] = '\0';
    return strstr(line, text) != NULL;
}

static uint64_t number_of(const char *file, const char *sql)
{
    return strtoull(ask(file, sql), NULL, 10);
}

/* "139 system calls": the number before the words. */
static uint64_t number_before(const char *text, const char *words)
{
    uint64_t n = 0, unit = 1;
    const char *at = strstr(text, words);
    for (; at && at > text && (at[-1] == ',' || (at[-1] >= '0' && at[-1] <= '9')); at--)
        if (at[-1] != ',')
            n += (uint64_t)(at[-1] - '0') * unit, unit *= 10;
    return n;
}

static uint64_t said_number(const char *words)
{
    return number_before(verb_said, words);
}

#define CALLS     "SELECT count(*) FROM slice WHERE category = \"syscall\""
#define OPENS     "SELECT count(*) FROM slice WHERE name = \"openat\" AND "
#define PATH_ENDS "extract_arg(arg_set_id, \"path\") GLOB "

static void check_files(const char *file)
{
    CHECK_STR_EQ(ask(file,
                     "SELECT name, sum(extract_arg(arg_set_id, \"bytes\")) AS n FROM slice "
                     "WHERE category = \"syscall\" AND (" PATH_ENDS "\"*/whole/in\" OR " PATH_ENDS
                     "\"*/whole/out\") GROUP BY name HAVING n > 0 ORDER BY name"),
                 "read,1000\nwrite,1000\n");
    CHECK_STR_EQ(ask(file, "SELECT name FROM process WHERE name IN (\"sh\", \"dd\") ORDER BY 1"),
                 "dd\nsh\n");
}

static void with_kernel(void)
{
    char text[64];
    need_kernel();
    verb_enter("whole");
    make_work();
    CHECK_INT_EQ(record("-o t.pftrace --strict --no-explain -- /bin/sh work.sh"), 7);
    CHECK_STR_EQ(verb_files(), "in many.sh out t.pftrace work.sh");
    CHECK(says(" 1000 B dd (")); /* what it has written */
    CHECK(says(" read written busiest processes (2 in all)\n"));
    CHECK(says(" recorded: ") && says(" system calls, 2 processes, "));
    CHECK(says("t.pftrace (") && !says("lost") && !says("kept as"));
    uint64_t n = said_number(" system calls");
    CHECK(n > 20);
    CHECK_UINT_EQ(number_of("t.pftrace", CALLS), n);
    check_files("t.pftrace");
    CHECK_STR_EQ(ask("t.pftrace",
                     "SELECT name, str_value FROM metadata WHERE name IN (\"command\", "
                     "\"writer\", \"hooks\") OR name GLOB \"recorded.*\""),
                 "command,/bin/sh work.sh\nwriter,stave record\nrecorded.states,kernel\n"
                 "recorded.waits,kernel min_ns=1000000\nrecorded.calls,kernel\n"
                 "recorded.sockets,kernel groups=waiting\nrecorded.block,kernel\n"
                 "recorded.page_cache,kernel\nrecorded.faults,kernel\n"
                 "recorded.processes,kernel\nrecorded.samples,kernel every_ns=52631578\n"
                 "recorded.counters,proc every_ns=100000000\nrecorded.gpu,no\n"
                 "recorded.sdk,program\nhooks,btf\n");
    /* Into another format, with the summary as JSON. */
    CHECK_INT_EQ(record("-o t.json --json --no-explain -- /bin/sh work.sh"), 7);
    CHECK_STR_EQ(verb_files(), "in many.sh out t.json t.pftrace work.sh");
    CHECK_STR_EQ(verb_shown, "");
    CHECK(strstr(verb_said, "{\"version\":1,\"trace\":\"t.json\",\"bytes\":"));
    CHECK(strstr(verb_said, ",\"lost\":0,\"by\":\"kernel programs\",\"partial\":false,"
                            "\"exit_code\":7}"));
    struct stat st;
    REQUIRE(stat("t.json", &st) == 0);
    snprintf(text, sizeof text, "\"bytes\":%lld,", (long long)st.st_size);
    CHECK(strstr(verb_said, text));
    check_files("t.json");
    verb_leave();
}

TEST(a_command_with_kernel_programs)
{
    test_in_child(with_kernel);
}

/* However records and events go, all of them are there. */
static void all_ways(void)
{
    static const struct {
        const char *options, *spool;
    } rows[] = {{"", "never"},
                {"", "always"},
                {"--spool 0", "always"},
                {"--last 1000s", "never"},
                {"--paths once", "always"},
                {"--no-block --no-page-cache --no-offcpu", "always"},
                {"--light", "never"}};
    need_kernel();
    verb_enter("ways");
    make_work();
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char line[200];
        CONTEXT("%s, STAVE_SPOOL=%s", rows[i].options, rows[i].spool);
        setenv("STAVE_SPOOL", rows[i].spool, 1);
        snprintf(line, sizeof line, "-o t.pftrace --strict --no-explain %s -- /bin/sh many.sh",
                 rows[i].options);
        CHECK_INT_EQ(record(line), 3);
        CHECK_STR_EQ(verb_files(), "in many.sh t.pftrace work.sh");
        CHECK(says(" 3000 0 B 0 B ") && says("/ways/in\n") && says(" processes (1 in all)"));
        uint64_t n = said_number(" system calls");
        CHECK(n >= 12000);
        CHECK_UINT_EQ(number_of("t.pftrace", CALLS), n);
        CHECK_UINT_EQ(number_of("t.pftrace", OPENS PATH_ENDS "\"*/ways/in\""), 3000);
        unlink("t.pftrace");
    }
    unsetenv("STAVE_SPOOL");
    verb_leave();
}

TEST(all_calls_are_there_whatever_way_they_go)
{
    test_in_child(all_ways);
}

static void in_parts(void)
{
    need_kernel();
    verb_enter("parts");
    make_work();
    CHECK_INT_EQ(record("-o t.pftrace --rotate 256K --strict --no-explain -- /bin/sh many.sh"), 3);
    CHECK_STR_EQ(verb_files(), "in many.sh t-0001.pftrace t.pftrace work.sh");
    CHECK(says("2 parts; the newest is t.pftrace"));
    uint64_t n = said_number(" system calls");
    CHECK_UINT_EQ(number_of("t-0001.pftrace", CALLS) + number_of("t.pftrace", CALLS), n);
    CHECK(number_of("t-0001.pftrace", CALLS) > n / 3);
    CHECK_UINT_EQ(number_of("t-0001.pftrace", OPENS PATH_ENDS "\"*/parts/in\"") +
                      number_of("t.pftrace", OPENS PATH_ENDS "\"*/parts/in\""),
                  3000);
    verb_leave();
}

TEST(a_recording_in_parts)
{
    test_in_child(in_parts);
}

/* The file may have 350,000 bytes: what is in it is whole, what is not is counted, and the command
 * has run to its end. */
static void limited(void)
{
    struct rlimit limit = {350000, RLIM_INFINITY};
    need_kernel();
    verb_enter("full");
    make_work();
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_INT_EQ(record("-o t.pftrace --no-explain -- /bin/sh many.sh"), SV_EIO);
    CHECK_STR_EQ(verb_files(), "in many.sh t.pftrace work.sh");
    CHECK(
        says("t.pftrace: cannot write: File too large: later events are counted but not recorded"));
    CHECK(strstr(verb_message, "t.pftrace: cannot write: File too large: the trace ends "));
    CHECK(strstr(verb_message, "; raise the limit (ulimit -f) or record less"));
    CHECK(says(" 3000 0 B 0 B "));
    uint64_t all = said_number(" system calls"), lost = number_before(verb_message, " events of ");
    uint64_t n = number_of("t.pftrace", CALLS);
    CONTEXT("%llu of %llu, %llu lost", (unsigned long long)n, (unsigned long long)all,
            (unsigned long long)lost);
    CHECK(n > 0 && n < all && lost >= all - n && lost < 2 * all);
    struct stat st;
    CHECK(stat("t.pftrace", &st) == 0 && st.st_size <= 350000);
    verb_leave();
}

TEST(a_full_disk_ends_the_file_not_the_command)
{
    test_in_child(limited);
}

static void without_kernel(void)
{
    need_sql();
    REQUIRE(test_refuse_call(SYS_bpf, 0, 0, EPERM));
    verb_enter("looks");
    make_work();
    CHECK_INT_EQ(record("-o t.pftrace --no-explain -- /bin/sh work.sh"), 7);
    CHECK_STR_EQ(verb_files(), "in many.sh out t.pftrace work.sh");
    CHECK(
        says("without system calls and block I/O: cannot load the kernel programs: not permitted; "
             "needs root or the capabilities CAP_BPF and CAP_PERFMON (run 'stave doctor' for "
             "details); recorded instead: states, waits and Python stacks of threads by looking "
             "at /proc, "));
    CHECK(says(" recorded: ") && says(" looks at /proc took ") && says("t.pftrace ("));
    CHECK(!says("system calls, "));
    CHECK_STR_EQ(ask("t.pftrace",
                     "SELECT name, str_value FROM metadata WHERE name IN (\"command\", "
                     "\"writer\", \"hooks\") OR name GLOB \"recorded.*\" AND NOT name "
                     "GLOB \"*.samples\""),
                 "command,/bin/sh work.sh\nwriter,stave record\n"
                 "recorded.states,proc every_ns=50000000\n"
                 "recorded.waits,proc every_ns=50000000\nrecorded.calls,no\n"
                 "recorded.sockets,no\nrecorded.block,no\nrecorded.page_cache,no\n"
                 "recorded.faults,no\nrecorded.processes,proc every_ns=50000000\n"
                 "recorded.counters,proc every_ns=100000000\nrecorded.gpu,no\n"
                 "recorded.sdk,program\n");
    /* --strict stops before the command starts. */
    unlink("out");
    CHECK(record("-o s.pftrace --strict -- /bin/sh work.sh") < 0);
    CHECK_STR_EQ(verb_files(), "in many.sh t.pftrace work.sh");
    CHECK_INT_EQ(record("-o s.pftrace --calls files --hooks raw --no-explain -- /bin/sh work.sh"),
                 7);
    CHECK(says(
        "--calls is not possible here; instead: the library io records calls on files of libc\n"));
    CHECK(says("--hooks is not possible here; instead: leave it out\n") && !says("--path is not"));
    CHECK(record("-o n.pftrace --strict --hooks raw --budget 1% -- /bin/sh work.sh") < 0);
    CHECK(strstr(verb_message, "--hooks: ") == verb_message);
    unlink("s.pftrace"), unlink("out");
    /* Nothing but the events of libstave needs no kernel programs. */
    CHECK_INT_EQ(record("-o e.pftrace --only sdk --strict --no-explain -- /bin/sh work.sh"), 7);
    CHECK(!says("without system calls"));
    CHECK(says("The trace has no events: --only sdk records programs that trace with libstave"));
    CHECK_STR_EQ(verb_files(), "e.pftrace in many.sh out t.pftrace work.sh");
    verb_leave();
}

TEST(a_command_without_kernel_programs)
{
    test_in_child(without_kernel);
}

/* ---- folders and archives ---- */

static uint64_t octal(const uint8_t *at, size_t n)
{
    char text[16] = "";
    memcpy(text, at, n);
    return strtoull(text, NULL, 8);
}

static bool holds(const uint8_t *bytes, size_t n, const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *own = malloc(n + 1);
    bool is_same = f && own && fread(own, 1, n + 1, f) == n && memcmp(own, bytes, n) == 0;
    if (f)
        fclose(f);
    free(own);
    return is_same;
}

/* "t.pftrace log-1-x.txt": its members, whose heads and contents are what is in the folder. */
static const char *members_of(const char *path, const char *folder)
{
    static char names[1024];
    struct sv_input *in;
    struct sv_err err = {0};
    size_t at = 0, said = 0;
    char file[700], path_of[300] = "";
    names[0] = '\0';
    REQUIRE(sv_input_open(path, &in, &err) == 0 && sv_input_need_all(in, "large", &err) >= 0);
    CHECK(!in->truncated && in->len % 512 == 0);
    while (at + 512 <= in->len && in->data[at]) {
        const uint8_t *h = in->data + at;
        unsigned sum = 8 * ' ';
        for (size_t i = 0; i < 512; i++)
            sum += i < 148 || i >= 156 ? h[i] : 0;
        CHECK_UINT_EQ(octal(h + 148, 8), sum);
        CHECK_MEM_EQ(h + 257, "ustar", 6);
        CHECK_MEM_EQ(h + 263, "00", 2);
        CHECK_UINT_EQ(octal(h + 108, 8) + octal(h + 116, 8), 0);
        uint64_t size = octal(h + 124, 12);
        REQUIRE(size <= in->len - at - 512);
        if (h[156] == 'x') { /* "LEN path=NAME\n" before a head that has no place for it */
            unsigned len = 0;
            CHECK(sscanf((const char *)h + 512, "%u path=%299[^\n]", &len, path_of) == 2);
            CHECK(len == size && h[512 + len - 1] == '\n' && strlen(path_of) > 100);
            at += 512 + (size + 511) / 512 * 512;
            continue;
        }
        if (!path_of[0])
            snprintf(path_of, sizeof path_of, "%.100s", (const char *)h);
        const char *name = strchr(path_of, '/');
        REQUIRE(name && h[156] == '0' && memcmp(h, path_of, strnlen((const char *)h, 100)) == 0);
        said +=
            (size_t)snprintf(names + said, sizeof names - said, "%s%s", said ? " " : "", name + 1);
        snprintf(file, sizeof file, "%s/%s", folder, name + 1);
        struct stat st;
        CHECK(stat(file, &st) == 0 && octal(h + 136, 12) == (uint64_t)st.st_mtime &&
              octal(h + 100, 8) == (st.st_mode & 0777));
        CHECK(holds(h + 512, size, file));
        at += 512 + (size + 511) / 512 * 512;
        path_of[0] = '\0';
    }
    CHECK_UINT_EQ(in->len - at, 1024); /* it ends with two empty blocks */
    for (; at < in->len; at++)
        CHECK(in->data[at] == 0);
    sv_input_close(in);
    return names;
}

/* Reports are made by /proc/self/exe, which is not stave here: they are left out, with a line. */
static void packed(void)
{
#ifndef SV_HAVE_ZSTD
    SKIP("built without zstd, which packs the archive");
#endif
    verb_enter("packed");
    make_work();
    test_write_file("talk.sh", "echo out; echo err >&2; exit 4\n");
    test_write_file("l.log", ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1, \"event_type\": "
                             "\"INTERVAL_START\", \"key\": \"run_start\", \"value\": null, "
                             "\"metadata\": {}}\n");
    CHECK_INT_EQ(
        record("--out-dir d --archive --only sdk --copy-output --no-explain --log l.log -- "
               "/bin/sh talk.sh"),
        4);
    CHECK_STR_EQ(verb_shown, "out\n");
    CHECK(says("err\n") && says("could not make report.txt\n") &&
          says("could not make timeline.png\n"));
    CHECK(says("d/run-0001 (4 files)\n") && says(", 4 files)\n"));
    CHECK_STR_EQ(members_of("d/run-0001.tar.zst", "d/run-0001"),
                 "trace.pftrace stdout.log stderr.log log-1-l.log");
    CHECK_STR_EQ(test_read_file("d/run-0001/stdout.log"), "out\n");
    CHECK_STR_EQ(test_read_file("d/run-0001/stderr.log"), "err\n");
    CHECK(access("d/run-0001/report.txt", F_OK) != 0);
    CHECK(access("d/run-0001/part-report.txt", F_OK) != 0);
    /* A log with a long name; the next folder has the next number. */
    char name[128], line[300], members[300];
    memset(name, 'n', sizeof name);
    snprintf(name + 110, sizeof name - 110, ".log");
    REQUIRE(rename("l.log", name) == 0);
    snprintf(line, sizeof line,
             "--out-dir d --archive --only sdk --no-explain --log %s -- /bin/true", name);
    CHECK_INT_EQ(record(line), 0);
    snprintf(members, sizeof members, "trace.pftrace log-1-%s", name);
    CHECK_STR_EQ(members_of("d/run-0002.tar.zst", "d/run-0002"), members);
    /* Without a folder only the archive stays, beside the trace. */
    CHECK_INT_EQ(record("-o t.pftrace --archive --only sdk --no-explain -- /bin/true"), 0);
    snprintf(members, sizeof members, "d in many.sh %s t.pftrace t.tar.zst talk.sh work.sh", name);
    CHECK_STR_EQ(verb_files(), members);
    CHECK_STR_EQ(members_of("t.tar.zst", "."), "t.pftrace");
    verb_leave();
}

TEST(a_folder_and_an_archive)
{
    test_in_child(packed);
}

/* ---- one program that does something of each kind ---- */

enum { BLOCK = 4096, BLOCKS = 4, SLOW_US = 20000 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_held;

static void *hold_gate(void *ctx)
{
    (void)ctx;
    pthread_mutex_lock(&gate);
    atomic_store(&is_held, true);
    usleep(SLOW_US);
    pthread_mutex_unlock(&gate);
    return NULL;
}

/* The second thread has the lock while the first one wants it. */
static void wait_for_lock(void)
{
    pthread_t other;
    atomic_store(&is_held, false);
    REQUIRE(pthread_create(&other, NULL, hold_gate, NULL) == 0);
    while (!atomic_load(&is_held))
        usleep(100);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    pthread_join(other, NULL);
}

/* A child writes late to the pipe from which this process reads. */
static void wait_for_pipe(void)
{
    int ends[2], status;
    char c;
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        usleep(SLOW_US);
        _exit(write(ends[1], "x", 1) == 1 ? 5 : 6);
    }
    CHECK(read(ends[0], &c, 1) == 1);
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    close(ends[0]);
    close(ends[1]);
}

static void submit(aio_context_t ctx, int fd, char *block, unsigned opcode)
{
    struct iocb requests[BLOCKS], *pointers[BLOCKS];
    struct io_event events[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        requests[i] = (struct iocb){.aio_lio_opcode = (uint16_t)opcode,
                                    .aio_fildes = (uint32_t)fd,
                                    .aio_buf = (uint64_t)(uintptr_t)block,
                                    .aio_nbytes = BLOCK,
                                    .aio_offset = i * BLOCK};
        pointers[i] = &requests[i];
    }
    CHECK_INT_EQ(syscall(SYS_io_submit, ctx, (long)BLOCKS, pointers), BLOCKS);
    for (long back = 0, n; back < BLOCKS; back += n) {
        n = syscall(SYS_io_getevents, ctx, 1L, BLOCKS - back, events, NULL);
        REQUIRE(n > 0);
    }
}

static void use_files(const char *path)
{
    static char block[BLOCK];
    aio_context_t ctx = 0;
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd >= 0);
    for (int i = 0; i < BLOCKS; i++)
        CHECK_INT_EQ(write(fd, block, BLOCK), BLOCK);
    CHECK_INT_EQ(pread(fd, block, 1000, BLOCK), 1000);
    CHECK_INT_EQ(fsync(fd), 0);
    if (syscall(SYS_io_setup, 8L, &ctx) == 0) {
        submit(ctx, fd, block, IOCB_CMD_PWRITE);
        submit(ctx, fd, block, IOCB_CMD_PREAD);
    }
    int copy = dup(fd);
    CHECK_INT_EQ(pwrite(copy, block, 10, 0), 10);
    CHECK_INT_EQ(ftruncate(fd, 5 * BLOCK), 0);
    close(copy);
    close(fd);
}

/* What the recordings below record. By itself it is a test of nothing but itself. */
TEST(work)
{
    const char *path = getenv("TEST_WORK");
    use_files(path ? path : test_scratch("data"));
    wait_for_pipe();
    wait_for_lock();
}

static void record_work(const char *options, const char *out)
{
    char line[1200], self[512];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    REQUIRE(n > 0);
    self[n] = '\0';
    setenv("TEST_WORK", "data", 1);
    snprintf(line, sizeof line, "-o %s --no-explain %s -- %s -n record_whole.work", out, options,
             self);
    CHECK_INT_EQ(record(line), 0);
    unsetenv("TEST_WORK");
}

static void of_each_kind(void)
{
    if (TEST_HAS_SANITIZER)
        SKIP("the sanitizer's leak check is a process that is recorded, too");
    need_kernel();
    verb_enter("kinds");
    record_work("--strict --sample 997", "t.pftrace");
    CHECK(says(" 15 17.0 KiB 32.0 KiB ") && says("/kinds/data\n"));
    CHECK(says(" system calls, 2 processes, ") && says(", 8 requests of io_submit"));
    CHECK(says(" busiest processes (2 in all)\n") && !says("lost"));
    CHECK_STR_EQ(
        ask("t.pftrace",
            "SELECT name, count(*), sum(extract_arg(arg_set_id, \"bytes\")) FROM slice WHERE "
            "category IN (\"syscall\", \"aio\") AND " PATH_ENDS
            "\"*/kinds/data\" GROUP BY 1 ORDER BY 1"),
        "aio_read,4,16384\naio_write,4,16384\nclose,2,\nfsync,1,\nftruncate,1,\nopenat,1,\n"
        "pread64,1,1000\npwrite64,1,10\nwrite,4,16384\n");
    CHECK_STR_EQ(ask("t.pftrace", "SELECT name, count(*) FROM slice WHERE category = \"process\" "
                                  "GROUP BY 1 ORDER BY 1"),
                 "exec,1\nexit,2\nfork,1\n");
    CHECK_STR_EQ(ask("t.pftrace", "SELECT DISTINCT name FROM slice WHERE category = "
                                  "\"offcpu_sample\" AND name IN (\"lock\", \"pipe\", \"sleep\") "
                                  "ORDER BY 1"),
                 "lock\npipe\nsleep\n");
    CHECK_STR_EQ(ask("t.pftrace", "SELECT DISTINCT name FROM slice WHERE category = "
                                  "\"thread_state\" AND name IN (\"Running\", \"Runnable\", "
                                  "\"Sleeping\") ORDER BY 1"),
                 "Runnable\nRunning\nSleeping\n");
    CHECK(number_of("t.pftrace", "SELECT count(*) FROM slice WHERE category = \"fault\"") > 0);
    CHECK(number_of("t.pftrace", "SELECT count(DISTINCT tid) FROM thread JOIN process USING (upid) "
                                 "WHERE process.name = \"unit\" AND tid > 0") >= 3);
    CHECK_STR_EQ(ask("t.pftrace", "SELECT str_value FROM metadata WHERE name = \"sample_hz\""),
                 "997\n");
    verb_leave();
}

TEST(a_program_that_does_something_of_each_kind)
{
    test_in_child(of_each_kind);
}

/* ---- what ends or saves a recording ---- */

static void signalled(void)
{
    need_sql();
    verb_enter("signals");
    test_write_file("save.sh",
                    "kill -USR1 $PPID; until [ -e t-0001.pftrace ]; do sleep 0.02; done\n"
                    "kill -USR1 $PPID; until [ -e t-0002.pftrace ]; do sleep 0.02; done\n");
    test_write_file("stop.sh",
                    "trap 'exit 9' TERM; kill -TERM $PPID; while :; do sleep 0.02; done\n");
    test_write_file("end.sh", "exit 3\n");
    CHECK_INT_EQ(record("-o t.pftrace --only sdk --last 1000s --no-explain -- /bin/sh save.sh"), 0);
    CHECK(says("saved t-0001.pftrace\n") && says("saved t-0002.pftrace\n") && !says("t-0003"));
    CHECK_STR_EQ(verb_files(), "end.sh save.sh stop.sh t-0001.pftrace t-0002.pftrace t.pftrace");
    /* What asks to stop is passed on to the command, whose exit code is the result. */
    CHECK_INT_EQ(record("-o s.pftrace --only sdk --no-explain -- /bin/sh stop.sh"), 9);
    CHECK(says("s.pftrace (") && access("s.pftrace", F_OK) == 0);
    CHECK_INT_EQ(
        record("-o w.pftrace --only sdk --pause 60min --tail 0s --no-explain --when 'exit == "
               "3' --when 'exit == 4' -- /bin/sh end.sh"),
        3);
    CHECK(says("saved w-0001.pftrace: exit == 3: process 'sh' ended with exit code 3\n"));
    CHECK_STR_EQ(ask("w-0001.pftrace", "SELECT name FROM slice WHERE category = \"trigger\""),
                 "exit == 3\n");
    CHECK(access("w.pftrace", F_OK) == 0 && access("w-0002.pftrace", F_OK) != 0);
    CHECK_INT_EQ(
        record("-o x.pftrace --only sdk --no-explain --when 'exit == 4' -- /bin/sh end.sh"), 3);
    CHECK(!says("saved") && access("x-0001.pftrace", F_OK) != 0);
    CHECK(access("x.pftrace", F_OK) == 0);
    verb_leave();
}

TEST(signals_and_conditions)
{
    test_in_child(signalled);
}

/* Nothing is made, and the command does not run. */
static void refused(void)
{
    static const struct {
        const char *options, *why;
    } rows[] = {
        {"--interval 9ms", "--interval: at least 10ms, or 0 for none"},
        {"--interval x", "--interval: 'x' is not a time"},
        {"--duration x", "--duration: 'x' is not a time"},
        {"--duration -1s", "--duration: '-1s' is not a time"},
        {"--paths some", "--paths: 'some' is not all or once"},
        {"--hooks nope", "--hooks: 'nope' is none of best, btf, raw and tracepoints"},
        {"--stacks nope", "--stacks: 'nope' is none of dwarf, fp and none"},
        {"--offcpu-min x", "--offcpu-min: 'x' is not a time"},
        {"--min-latency x", "--min-latency: 'x' is not a time"},
        {"--sum-calls x", "--sum-calls: 'x' is not a time"},
        {"--spool 1k", "--spool: '1k' is not a size"},
        {"--redact nonsense", "'nonsense' is none of paths"},
        {"--rotate 255K", "--rotate: '255K' is neither a size of at least 256K"},
        {"--rotate 999ms", "--rotate: '999ms' is neither"},
        {"--last 1M", "--last: '1M' is neither a time of at least a second"},
        {"--last 999ms", "--last: '999ms' is neither"},
        {"--rotate 1M --last 1s", "--rotate and --last exclude each other"},
        {"--calls nope", "--calls: unknown group 'nope'"},
        {"--mode 9", "--mode: expected 0600, 0640 or 0644"},
        {"--only x", "--only: it can be sdk"},
        {"--when nonsense", "--when 'nonsense': character 1"},
        {"--budget 200%", "--budget: '200%' is not a share"},
        {"--comm x", "a command cannot be combined with"},
        {"--inject nope", "--inject: unknown interface 'nope'"},
    };
    verb_enter("refused");
    make_work();
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char line[300];
        CONTEXT("%s", rows[i].options);
        snprintf(line, sizeof line, "-o t.pftrace %s -- /bin/sh work.sh", rows[i].options);
        CHECK_INT_EQ(record(line), SV_EUSAGE);
        if (!CHECK(strstr(verb_message, rows[i].why)))
            printf("%s\n", verb_message);
        CHECK_STR_EQ(verb_files(), "in many.sh work.sh");
    }
    CHECK_INT_EQ(record("-o t.pftrace --cgroup nowhere"), SV_EUSAGE);
    CHECK_INT_EQ(record("-o t.pftrace --only sdk"), SV_EUSAGE);
    CHECK_INT_EQ(record("-o - -- /bin/true"), SV_EUSAGE);
    CHECK(record("-o t.pftrace -- /nowhere/program") < 0);
    CHECK(strstr(verb_message, "cannot run '/nowhere/program': No such file or directory"));
    CHECK(record("-o nowhere/t.pftrace -- /bin/sh work.sh") < 0);
    CHECK(strstr(verb_message, "nowhere/t.pftrace: cannot create: No such file or directory"));
    CHECK_STR_EQ(verb_files(), "in many.sh work.sh");
    verb_leave();
}

TEST(what_makes_no_sense_is_refused_before_anything_is_made)
{
    test_in_child(refused);
}
