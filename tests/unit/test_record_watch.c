/* record/watch/: states between two looks at a folder that is like /proc. */
#include "kbench.h"
#include "record/bpf/offcpu.h"
#include "record/watch/watch.h"
#include "tests/harness/test.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Numbers that no process has: memory of none is read. */
enum { NOBODY = 4194300, OTHER = 4194301 };
static unsigned process = NOBODY;
#define MS ((int64_t)1000000)

struct bench {
    char records[8000]; /* those with stacks and code, as text */
    struct kbench *k;
    struct sv_watch *w;
    char root[64];
    int64_t at_ns;
};

static void put(const struct bench *b, const char *file, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", b->root, file);
    FILE *f = fopen(path, "we");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void put_of(const struct bench *b, unsigned tid, const char *file, const char *text)
{
    char name[100];
    snprintf(name, sizeof name, "%u/task/%u/%s", process, tid, file);
    put(b, name, text);
}

static void make(const struct bench *b, const char *folder)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", b->root, folder);
    CHECK(mkdir(path, 0700) == 0);
}

static void add_thread(const struct bench *b, unsigned tid)
{
    char name[100];
    snprintf(name, sizeof name, "%u/task/%u", process, tid);
    make(b, name);
    put_of(b, tid, "comm", "worker\n");
    put_of(b, tid, "children", "");
}

/* What the thread is in now: the letter of its state, the call, its sums in milliseconds. */
static void set(const struct bench *b, unsigned tid, char letter, const char *call, unsigned run,
                unsigned delay, unsigned switches)
{
    char text[300];
    snprintf(text, sizeof text,
             "%u (a) b) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0 0 0 0 0 0 "
             "0 0 0 0 0 0 0 0 17 3 0 0 0",
             tid, letter);
    put_of(b, tid, "stat", text);
    put_of(b, tid, "syscall", call);
    snprintf(text, sizeof text, "%u000000 %u000000 %u\n", run, delay, switches);
    put_of(b, tid, "schedstat", text);
}

static void keep_stack(char *to, size_t size, const struct sv_wire_stack *s, const void *behind)
{
    const struct sv_wire_pyframe *f = behind;
    size_t n = (size_t)snprintf(
        to, size, " sp=%llx ip=%llx copied=%u more=%u:", (unsigned long long)s->regs[SV_STACK_SP],
        (unsigned long long)s->regs[SV_STACK_IP], s->copy_bytes, s->has_more_python);
    for (unsigned i = 0; i < s->n_python && n < size; i++)
        n += (size_t)snprintf(to + n, size - n, " %u,%u,%u", f[i].at, f[i].owner, f[i].is_entry);
}

static void keep_record(void *ctx, const struct sv_wire_head *record, uint32_t size)
{
    struct bench *b = ctx;
    const void *r = record;
    const struct sv_wire_code *c = r;
    const struct sv_wire_offcpu *s = r; /* a sample and a release begin alike */
    char stack[4000] = "", *to = b->records + strlen(b->records);
    size_t left = sizeof b->records - strlen(b->records);
    switch (record->kind) {
    case SV_WIRE_CODE:
        CHECK_UINT_EQ(size, sizeof *c + c->linetable_bytes);
        snprintf(to, left, "code %.*s %u*%u of %.*s %u*%u, line %u, %u bytes\n",
                 c->name_kind == 1 ? c->name_bytes : 0, c->name, c->name_kind, c->name_bytes,
                 c->file_bytes, c->file, c->file_kind, c->file_bytes, c->first_line,
                 c->linetable_bytes);
        break;
    case SV_WIRE_SAMPLE:
    case SV_WIRE_OFFCPU:
    case SV_WIRE_RELEASE:
        keep_stack(stack, sizeof stack, &s->stack, s + 1);
        snprintf(to, left, "%s of %s%s\n",
                 record->kind == SV_WIRE_SAMPLE   ? "sample"
                 : record->kind == SV_WIRE_OFFCPU ? "wait"
                                                  : "holder",
                 record->tid == OTHER ? "the other" : "one", stack);
    }
}

/* With all that it can say but samples, or with states, waits and samples. */
static struct bench *open_with(bool has_processes)
{
    struct bench *b = calloc(1, sizeof *b);
    char name[32];
    REQUIRE(b != NULL);
    snprintf(b->root, sizeof b->root, "/tmp/stave-watch-XXXXXX");
    CHECK(mkdtemp(b->root));
    snprintf(name, sizeof name, "%u", process);
    make(b, name);
    snprintf(name, sizeof name, "%u/task", process);
    make(b, name);
    snprintf(name, sizeof name, "%u/cmdline", process);
    put(b, name, "job");
    snprintf(name, sizeof name, "%u/stat", process);
    put(b, name, "1 (job) S 1 1");
    snprintf(name, sizeof name, "%u/comm", process);
    put(b, name, "job\n");
    add_thread(b, process);
    b->k = kbench_new(&(struct sv_decode_options){.keep = keep_record, .keep_ctx = b});
    b->w = sv_watch_new(&(struct sv_watch_options){.root = b->root,
                                                   .every_ns = 50 * MS,
                                                   .offcpu_min_ns = MS,
                                                   .has_states = true,
                                                   .has_waits = true,
                                                   .has_samples = !has_processes,
                                                   .has_processes = has_processes,
                                                   .inside = has_processes ? "libin.so" : NULL},
                        sv_decode_rings(b->k->decode));
    sv_watch_add(b->w, process);
    b->at_ns = 1000 * MS;
    return b;
}

static struct bench *open_bench(void)
{
    return open_with(false);
}

/* Looks after so many milliseconds; the events of the look. */
static const char *look(struct bench *b, int64_t ms)
{
    b->at_ns += ms * MS;
    sv_watch_look_now(b->w, b->at_ns);
    kbench_round(b->k, (uint64_t)b->at_ns);
    return b->k->text;
}

static void close_bench(struct bench *b)
{
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", b->root);
    CHECK(system(command) == 0);
    sv_watch_free(b->w);
    kbench_free(b->k);
    free(b);
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}

#define SLEEPS "230 0x0 0x0 0x7ffc0 0x0 0x0 0x0 0x7ffc00 0x7f0000\n"

TEST(wait_goes_on)
{
    struct bench *b = open_bench();
    set(b, process, 'S', SLEEPS, 5, 1, 3);
    const char *text = look(b, 0);
    CHECK(strstr(text, "Sleeping") && strstr(text, "sleep") && strstr(text, "inferred"));
    CHECK_INT_EQ(count(look(b, 50), "thread_state"), 0);
    CHECK_INT_EQ(count(look(b, 50), "thread_state"), 0);
    close_bench(b);
}

/* 100 ms: 30 of them it ran, 20 it waited for a CPU before that, half of the rest it slept before
 * and half after it. */
TEST(divides_by_sums)
{
    struct bench *b = open_bench();
    set(b, process, 'S', SLEEPS, 5, 1, 3);
    look(b, 0);
    set(b, process, 'R', "running\n", 35, 21, 4);
    look(b, 100); /* much of it is open: it may be in a run queue */
    set(b, process, 'S', SLEEPS, 35, 21, 4);
    const char *text = look(b, 0);
    CHECK_INT_EQ(count(text, "Runnable"), 1);
    CHECK_INT_EQ(count(text, "Running"), 1);
    CHECK_INT_EQ(count(text, "Sleeping"), 1);
    CHECK(strstr(text, "1025000000") && strstr(text, "1045000000") && strstr(text, "1075000000"));
    const char *runnable = strstr(text, "Runnable"), *running = strstr(text, "Running");
    CHECK(runnable < running && running < strstr(text, "Sleeping"));
    close_bench(b);
}

TEST(counts_at_the_end)
{
    struct bench *b = open_bench();
    char path[200];
    set(b, process, 'S', SLEEPS, 5, 1, 3);
    add_thread(b, OTHER);
    set(b, OTHER, 'S', SLEEPS, 7, 2, 9);
    look(b, 0);
    set(b, OTHER, 'S', SLEEPS, 17, 3, 11);
    look(b, 50);
    for (const char *const *f =
             (const char *const[]){"comm", "children", "stat", "syscall", "schedstat", "", NULL};
         *f; f++) {
        snprintf(path, sizeof path, "%s/%u/task/%d/%s", b->root, process, OTHER, *f);
        CHECK(remove(path) == 0);
    }
    look(b, 50); /* the descriptors are still readable here: /proc's are not */
    sv_watch_finish(b->w, b->at_ns);
    kbench_round(b->k, (uint64_t)b->at_ns);
    CHECK(strstr(b->k->text, "run_ns=10000000 delay_ns=1000000 switches=2"));
    CHECK_INT_EQ(count(b->k->text, "run_ns="), 2);
    close_bench(b);
}

/* One of three ends: the others are still followed, each as itself. */
TEST(the_others_are_followed_when_one_ends)
{
    struct bench *b = open_bench();
    char path[200];
    for (unsigned tid = OTHER; tid <= OTHER + 1; tid++) {
        add_thread(b, tid);
        set(b, tid, 'S', SLEEPS, 7, 2, 9);
    }
    set(b, process, 'S', SLEEPS, 5, 1, 3);
    look(b, 0);
    put_of(b, OTHER, "stat", ""); /* as /proc's, which cannot be read any more */
    put_of(b, OTHER, "schedstat", "");
    for (const char *const *f =
             (const char *const[]){"comm", "children", "stat", "syscall", "schedstat", "", NULL};
         *f; f++) {
        snprintf(path, sizeof path, "%s/%u/task/%d/%s", b->root, process, OTHER, *f);
        CHECK(remove(path) == 0);
    }
    set(b, OTHER + 1, 'S', SLEEPS, 20, 4, 11); /* before the look that misses the other */
    set(b, process, 'S', SLEEPS, 9, 3, 4);
    look(b, 50);
    look(b, 50);
    sv_watch_finish(b->w, b->at_ns);
    kbench_round(b->k, (uint64_t)b->at_ns);
    CHECK_INT_EQ(count(b->k->text, "run_ns="), 2); /* that which ended had its sums before */
    CHECK(strstr(b->k->text, "run_ns=13000000 delay_ns=2000000 switches=2"));
    CHECK(strstr(b->k->text, "run_ns=4000000 delay_ns=2000000 switches=1"));
    close_bench(b);
}

/* A loop that waits for whoever comes, and a condition of C: nobody is late, so no reason. */
TEST(gives_no_reason_where_it_may_be_idle)
{
    static const char *const calls[] = {
        "232 0x3 0x7f00 0x40 0xffffffff 0x0 0x8 0x7ffc00 0x7f0000\n",
        "288 0x3 0x0 0x0 0x80000 0x0 0x0 0x7ffc00 0x7f0000\n",
        "202 0x7f00 0x189 0x0 0x0 0x0 0xffffffff 0x7ffc00 0x7f0000\n",
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct bench *b = open_bench();
        set(b, process, 'S', calls[i], 5, 1, 3);
        const char *text = look(b, 0);
        CHECK(strstr(text, "Sleeping") && !strstr(text, "reason"));
        close_bench(b);
    }
}

/* Where the call may not be read, the kernel's function says what it can. */
TEST(asks_for_the_function_of_the_kernel)
{
    static const struct {
        const char *function, *reason;
    } waits[] = {{"hrtimer_nanosleep", "reason=sleep"},
                 {"anon_pipe_read", "reason=pipe"},
                 {"do_wait", "reason=child"},
                 {"futex_wait_queue", NULL},
                 {"0", NULL}};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        struct bench *b = open_bench();
        set(b, process, 'S', "", 5, 1, 3);
        put_of(b, process, "wchan", waits[i].function);
        const char *text = look(b, 0);
        CHECK(strstr(text, "Sleeping"));
        CHECK(waits[i].reason ? strstr(text, waits[i].reason) != NULL : !strstr(text, "reason"));
        close_bench(b);
    }
}

/* In the kernel's wait for a disk, and in no call. */
TEST(a_missing_page_is_a_fault)
{
    struct bench *b = open_bench();
    set(b, process, 'D', "-1 0x7ffc00 0x7f0000\n", 5, 1, 3);
    const char *text = look(b, 0);
    CHECK(strstr(text, "Blocked on I/O") && strstr(text, "fault"));
    close_bench(b);
}

/* Words of this process's own memory: a contended mutex is a lock, a word that is the number of a
 * thread is a wait for its end, and of all else no reason is known. */
TEST(what_a_futex_is)
{
    static const struct {
        uint32_t words[3], value, operation;
        const char *said; /* NULL: no reason is given */
    } rows[] = {
        {{2, 1, OTHER}, 2, 0x80, "reason=lock lock="},
        {{2, 1, OTHER}, 2, 0, "reason=lock lock="},
        {{2, 1, OTHER}, 2, 0x89, NULL},
        {{1, 1, OTHER}, 1, 0x80, NULL},
        {{2, 1, OTHER}, 3, 0x80, NULL},
        {{2, 1, OTHER + 1}, 2, 0x80, "reason=lock lock="},
        {{OTHER, 0, 0}, OTHER, 0x189, "reason=child"},
        {{OTHER + 1, 0, 0}, OTHER + 1, 0x189, NULL},
        {{OTHER, 0, 0}, 0, 0x189, NULL},
    };
    process = (unsigned)getpid();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench *b = open_bench();
        char call[200];
        uint32_t words[3];
        memcpy(words, rows[i].words, sizeof words);
        CONTEXT("row %zu", i);
        add_thread(b, OTHER);
        set(b, OTHER, 'S', SLEEPS, 7, 2, 9);
        set(b, process, 'S', SLEEPS, 5, 1, 3);
        look(b, 0);
        snprintf(call, sizeof call, "202 0x%llx 0x%x 0x%x 0x0 0x0 0x0 0x7ffc00 0x7f0000\n",
                 (unsigned long long)(uintptr_t)words, rows[i].operation, rows[i].value);
        set(b, process, 'S', call, 5, 1, 4);
        const char *text = look(b, 50);
        CHECK(rows[i].said ? strstr(text, rows[i].said) != NULL : !strstr(text, "reason=l"));
        CHECK(rows[i].said || !strstr(text, "reason=child"));
        close_bench(b);
    }
    process = NOBODY;
}

TEST(survives_any_text)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "1 (",
                                        "1 () ",
                                        "1 (a) R",
                                        "999999999999999999999",
                                        "-1 0x0 0x0",
                                        "-1 zz",
                                        "202 0xffffffffffffffff",
                                        "18446744073709551615 18446744073709551615 1"};
    enum { N = sizeof texts / sizeof *texts };
    struct bench *b = open_bench();
    set(b, process, 'S', SLEEPS, 5, 1, 3);
    look(b, 0);
    for (unsigned i = 0; i < N * N * N; i++) {
        put_of(b, process, "stat", texts[i % N]);
        put_of(b, process, "syscall", texts[i / N % N]);
        put_of(b, process, "schedstat", texts[i / N / N % N]);
        look(b, 50);
    }
    set(b, process, 'D', "0 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f0000\n", 5, 1, 3);
    look(b, 50);
    sv_watch_finish(b->w, b->at_ns + MS);
    close_bench(b);
}

/* ---- all that looks say ---- */

static void put_at(const struct bench *b, unsigned pid, const char *file, const char *text)
{
    char name[100];
    snprintf(name, sizeof name, "%u/%s", pid, file);
    put(b, name, text);
}

static void add_process(const struct bench *b, unsigned pid, unsigned parent, const char *comm)
{
    char name[100], text[100];
    snprintf(name, sizeof name, "%u", pid);
    make(b, name);
    snprintf(name, sizeof name, "%u/fd", pid);
    make(b, name);
    snprintf(name, sizeof name, "%u/task", pid);
    make(b, name);
    snprintf(text, sizeof text, "%u (x) y) S %u 1", pid, parent);
    put_at(b, pid, "stat", text);
    snprintf(text, sizeof text, "%s\n", comm);
    put_at(b, pid, "comm", text);
    unsigned was = process;
    process = pid;
    add_thread(b, pid);
    process = was;
}

static void set_program(const struct bench *b, unsigned pid, const char *exe, const char *words)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%u/exe", b->root, pid);
    unlink(path);
    CHECK(symlink(exe, path) == 0);
    put_at(b, pid, "cmdline", words);
}

static void link_fd(const struct bench *b, unsigned pid, const char *fd, const char *to)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%u/fd/%s", b->root, pid, fd);
    CHECK(symlink(to, path) == 0);
}

static void set_of(const struct bench *b, unsigned pid, char letter, const char *call, unsigned run,
                   unsigned delay, unsigned switches)
{
    unsigned was = process;
    process = pid;
    set(b, pid, letter, call, run, delay, switches);
    process = was;
}

#define RUNS    "running\n"
#define WAITS   "61 0xffffffff 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f0000\n"
#define READS   "0 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f0000\n"
#define WRITES  "1 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f0000\n"
#define NO_CALL "-1 0x7ffc00 0x7f0000\n"

static struct bench *open_family(void)
{
    struct bench *b = open_with(true);
    char name[64];
    snprintf(name, sizeof name, "%u/fd", process);
    make(b, name);
    set_program(b, process, "/bin/job", "job");
    return b;
}

/* One after the other, 50 ms apart. */
static const struct {
    const char *of_main, *of_child; /* state and call; NULL: as before */
    unsigned main_run, main_delay, main_switches, run, delay, switches;
    const char *said;
} looks[] = {
    {"R" RUNS, NULL, 5, 1, 3, 0, 0, 0,
     "1000000000 instant worker/system calls exec path=/bin/job\n"
     "1000000000 begin worker/state Running cpu=3 inferred=1\n"},
    /* A child that is a copy; its parent waits for it. */
    {"S" WAITS, "R" RUNS, 15, 2, 5, 1, 0, 1,
     "1050000000 instant worker/system calls fork child=4194301\n"
     "1005000000 end worker/state \n"
     "1005000000 begin worker/state Preempted inferred=1\n"
     "1006000000 end worker/state \n"
     "1006000000 begin worker/state Running cpu=3 inferred=1\n"
     "1011000000 end worker/state \n"
     "1011000000 begin worker/state Sleeping reason=child inferred=1\n"
     "1050000000 begin worker/state Running cpu=3 inferred=1\n"},
    /* It executes something else, has another name, and waits for a pipe. */
    {NULL, "S" READS, 15, 2, 5, 11, 0, 3,
     "1100000000 instant renamed/system calls exec path=/bin/other\n"
     "1060000000 end renamed/state \n"
     "1060000000 begin renamed/state Sleeping reason=pipe inferred=1\n"},
    /* It can run, and most of the time since is open. */
    {NULL, "R" RUNS, 15, 2, 5, 13, 2, 4, ""},
    {NULL, "R" RUNS, 15, 2, 5, 63, 2, 4, ""},
    {NULL, "D" WRITES, 15, 2, 5, 73, 12, 7,
     "1060000000 begin renamed/off CPU pipe queued=0 reason=pipe inferred=1 waker_tid=4194300 "
     "=0 =[unknown]\n"
     "1138000000 end renamed/off CPU \n"
     "1138000000 end renamed/state \n"
     "1138000000 begin renamed/state Runnable waker_tid=4194300 inferred=1\n"
     "1150000000 end renamed/state \n"
     "1150000000 begin renamed/state Running cpu=3 inferred=1\n"
     "1212000000 end renamed/state \n"
     "1212000000 begin renamed/state Blocked on I/O io_wait=1 inferred=1\n"},
    {NULL, "T" NO_CALL, 15, 2, 5, 73, 12, 8,
     "1212000000 begin renamed/off CPU disk queued=0 reason=disk inferred=1 waker_tid=4194300 "
     "=0 =[unknown]\n"
     "1275000000 end renamed/off CPU \n"
     "1275000000 end renamed/state \n"
     "1275000000 begin renamed/state Stopped inferred=1\n"},
    {"R" RUNS, "Z" NO_CALL, 15, 3, 6, 73, 12, 9,
     "1275000000 begin renamed/off CPU stopped reason=stopped inferred=1 =0 =[unknown]\n"
     "1350000000 end renamed/off CPU \n"
     "1350000000 end renamed/state \n"
     "1350000000 instant other/renamed schedstat run_ns=72000000 delay_ns=12000000 switches=8\n"
     "1350000000 instant renamed/system calls exit\n"},
    /* Nobody has asked for it yet: it is there, and has no command line. */
    {"R" RUNS, NULL, 15, 3, 6, 0, 0, 0, ""},
};

TEST(all_that_looks_say)
{
    struct bench *b = open_family();
    char pipe[200];
    snprintf(pipe, sizeof pipe, "%s/pipe", b->root);
    REQUIRE(mkfifo(pipe, 0600) == 0);
    link_fd(b, process, "4", pipe);
    for (size_t i = 0; i < TEST_COUNT(looks); i++) {
        CONTEXT("look %zu", i);
        if (i == 1) {
            add_process(b, OTHER, NOBODY, "child");
            set_program(b, OTHER, "/bin/job", "job");
            put_of(b, process, "children", "4194301 ");
        } else if (i == 2) {
            set_program(b, OTHER, "/bin/other", "other");
            put_at(b, OTHER, "task/4194301/comm", "renamed\n");
            link_fd(b, OTHER, "3", pipe);
        } else if (i == 7) {
            put_at(b, OTHER, "stat", "4194301 (x) Z 4194300 1");
            put_at(b, OTHER, "cmdline", "");
        }
        if (looks[i].of_main)
            set_of(b, process, looks[i].of_main[0], looks[i].of_main + 1, looks[i].main_run,
                   looks[i].main_delay, looks[i].main_switches);
        if (looks[i].of_child)
            set_of(b, OTHER, looks[i].of_child[0], looks[i].of_child + 1, looks[i].run,
                   looks[i].delay, looks[i].switches);
        CHECK_STR_EQ(look(b, i ? 50 : 0), looks[i].said);
    }
    sv_watch_finish(b->w, b->at_ns + MS);
    kbench_round(b->k, (uint64_t)(b->at_ns + MS));
    CHECK_STR_EQ(b->k->text,
                 "1011000000 begin worker/off CPU child queued=0 reason=child inferred=1 "
                 "waker_tid=4194301 =0 =[unknown]\n"
                 "1401000000 end worker/off CPU \n"
                 "1401000000 end worker/state \n"
                 "1401000000 instant job/worker schedstat run_ns=10000000 delay_ns=1000000 "
                 "switches=2\n");
    const struct sv_watch_sums s = sv_watch_sums(b->w);
    CHECK_UINT_EQ(s.looks, 10);
    CHECK_UINT_EQ(s.lost, 0);
    CHECK_UINT_EQ(s.unreadable, 0);
    close_bench(b);
}

/* ---- Python ---- */

/* What an interpreter has in its memory, at places of our own choice. */
struct text_object {
    uint64_t head[2], length, pad, state;
    char ascii[16], other[240];
};

struct interpreter {
    uint64_t runtime[4]; /* the interpreters, the thread that runs */
    uint64_t interpreters[4];
    uint64_t threads[2][8]; /* next, number, frame */
    struct frame {
        uint64_t code, previous, instr;
        uint8_t owner, rest[55];
    } frames[3];
    struct code {
        uint64_t head, name, file, lines;
        uint32_t first_line;
        uint8_t rest[108];
    } codes[2];
    struct text_object names[2], file;
    struct {
        uint64_t head[2], size, pad;
        uint8_t table[8];
    } lines;
};

static const struct sv_wire_python offsets_here = {.current = 8,
                                                   .interpreters = 0,
                                                   .threads = 8,
                                                   .next = 0,
                                                   .native_id = 8,
                                                   .cframe = SV_PYTHON_NONE,
                                                   .frame = 16,
                                                   .code = 0,
                                                   .previous = 8,
                                                   .instr = 16,
                                                   .owner = 24,
                                                   .entry = SV_PYTHON_NONE,
                                                   .first_line = 32,
                                                   .file = 16,
                                                   .name = 8,
                                                   .linetable = 24,
                                                   .bytecode = 40,
                                                   .text_ascii = 40,
                                                   .text_other = 56};

#define AT(x) ((uint64_t)(uintptr_t)(x))

static void set_text_object(struct text_object *t, const char *text)
{
    *t = (struct text_object){.length = strlen(text), .state = 1 << 2 | 1 << 5 | 1 << 6};
    memcpy(t->ascii, text, strlen(text));
}

/* Two threads; the first one is in inner(), which outer() has called, the other one in outer(). */
static struct interpreter *make_interpreter(void)
{
    struct interpreter *i = calloc(1, sizeof *i);
    REQUIRE(i);
    i->runtime[0] = AT(i->interpreters);
    i->runtime[1] = AT(i->threads[1]);
    i->interpreters[1] = AT(i->threads[0]);
    i->threads[0][0] = AT(i->threads[1]);
    i->threads[0][1] = process;
    i->threads[0][2] = AT(&i->frames[0]);
    i->threads[1][1] = OTHER;
    i->threads[1][2] = AT(&i->frames[2]);
    for (int k = 0; k < 3; k++) {
        const struct code *code = &i->codes[k == 0 ? 0 : 1];
        i->frames[k].code = AT(code);
        i->frames[k].instr = AT(code) + offsets_here.bytecode + 2;
    }
    i->frames[0].previous = AT(&i->frames[1]);
    for (int k = 0; k < 2; k++) {
        i->codes[k].name = AT(&i->names[k]);
        i->codes[k].file = AT(&i->file);
        i->codes[k].lines = AT(&i->lines);
        i->codes[k].first_line = 10 * (unsigned)(k + 1);
    }
    set_text_object(&i->names[0], "inner");
    i->names[1] = (struct text_object){.length = 3, .state = 2 << 2 | 1 << 5};
    memcpy(i->names[1].other, "\xe9\x00\x20\x04x", 6); /* two letters that are not ASCII */
    set_text_object(&i->file, "/a/b/job.py");
    i->lines.size = 2;
    memcpy(i->lines.table, "\xe8\x00", 2); /* no columns, one unit, the first line */
    return i;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The lines in the order of their texts: threads come as their folder has them. */
static const char *sorted(char *text)
{
    static char out[8000];
    char *lines[64], *rest = NULL;
    size_t n = 0, at = 0;
    for (char *l = strtok_r(text, "\n", &rest); l && n < 64; l = strtok_r(NULL, "\n", &rest))
        lines[n++] = l;
    qsort(lines, n, sizeof lines[0], by_text);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s\n", lines[i]);
    return out;
}

/* The records with stacks and code of a look after 50 ms. */
static const char *stacks_after(struct bench *b)
{
    b->records[0] = '\0';
    look(b, 50);
    return sorted(b->records);
}

TEST(frames_of_python_are_read_from_its_memory)
{
    process = (unsigned)getpid();
    struct interpreter *i = make_interpreter();
    struct sv_wire_python offsets = offsets_here;
    struct bench *b = open_bench();
    offsets.runtime = AT(i->runtime);
    offsets.entry = 25;
    i->frames[1].owner = 3;
    i->frames[1].instr += 6;
    i->frames[0].rest[0] = 1; /* entered from C */
    add_thread(b, OTHER);
    set(b, process, 'R', RUNS, 5, 1, 3);
    set(b, OTHER, 'S', SLEEPS, 5, 1, 3);
    look(b, 0);
    sv_watch_python(b->w, process, &offsets);
    set(b, process, 'R', RUNS, 55, 1, 3);
    set(b, OTHER, 'S', SLEEPS, 6, 1, 4);
    CHECK_STR_EQ(stacks_after(b), "code  2*6 of /a/b/job.py 1*11, line 20, 2 bytes\n"
                                  "code inner 1*5 of /a/b/job.py 1*11, line 10, 2 bytes\n"
                                  "sample of one sp=0 ip=0 copied=0 more=0: 2,0,1 8,3,0\n"
                                  "wait of the other sp=7ffc00 ip=7f0000 copied=0 more=0:\n");
    /* It waits for the interpreter's lock, which the other one has. */
    char call[200];
    snprintf(call, sizeof call, "202 0x%llx 0x189 0x0 0x0 0x0 0xffffffff 0x7ffc00 0x7f0000\n",
             (unsigned long long)AT(&i->runtime[2]));
    set(b, process, 'S', call, 65, 1, 4);
    set(b, OTHER, 'R', RUNS, 7, 1, 5);
    CHECK_STR_EQ(stacks_after(b), "holder of the other sp=0 ip=0 copied=0 more=0: 2,0,0\n");
    set(b, process, 'S', SLEEPS, 75, 1, 6);
    CHECK_STR_EQ(stacks_after(b), "wait of one sp=0 ip=0 copied=0 more=0: 2,0,1 8,3,0\n");
    sv_watch_finish(b->w, b->at_ns + MS);
    b->records[0] = '\0';
    kbench_round(b->k, (uint64_t)(b->at_ns + MS));
    CHECK_STR_EQ(sorted(b->records), "wait of one sp=0 ip=0 copied=0 more=0: 2,0,1 8,3,0\n"
                                     "wait of the other sp=0 ip=0 copied=0 more=0: 2,0,0\n");
    CHECK_UINT_EQ(sv_watch_sums(b->w).stacks, 6);
    CHECK_UINT_EQ(sv_watch_sums(b->w).unreadable, 0);
    close_bench(b);
    free(i);
    process = NOBODY;
}

/* A stack that has no end, texts that are too long or none, code that cannot be read, and code that
 * is another one at the same address. */
TEST(python_that_is_odd)
{
    process = (unsigned)getpid();
    struct interpreter *i = make_interpreter();
    struct sv_wire_python offsets = offsets_here;
    struct bench *b = open_bench();
    offsets.runtime = AT(i->runtime);
    set(b, process, 'R', RUNS, 5, 1, 3);
    look(b, 0);
    sv_watch_python(b->w, process, &offsets);
    i->frames[0].previous = 0;
    i->names[0].state &= ~(uint64_t)(1 << 5); /* its characters are elsewhere */
    i->file.state = 1 << 2 | 1 << 5;          /* not ASCII: behind the other head */
    i->file.length = 239;
    memset(i->file.other, 'y', 239);
    i->lines.size = 0;
    set(b, process, 'R', RUNS, 55, 1, 3);
    char want[500], file[240];
    memset(file, 'y', 239);
    file[239] = '\0';
    snprintf(want, sizeof want,
             "code  1*0 of %s 1*239, line 10, 0 bytes\nsample of one sp=0 ip=0 copied=0 more=0: "
             "2,0,0\n",
             file);
    CHECK_STR_EQ(stacks_after(b), want);
    set_text_object(&i->file, "c.py");
    i->codes[0].file = AT(&i->names[1]); /* another mark: sent again, and not a third time */
    i->names[1] = i->file;
    set(b, process, 'R', RUNS, 105, 1, 3);
    CHECK_STR_EQ(stacks_after(b), "code  1*0 of c.py 1*4, line 10, 0 bytes\n"
                                  "sample of one sp=0 ip=0 copied=0 more=0: 2,0,0\n");
    i->frames[0].previous = AT(&i->frames[1]);
    i->frames[1].code = 8; /* nothing is there */
    set(b, process, 'R', RUNS, 155, 1, 3);
    CHECK_STR_EQ(stacks_after(b), "sample of one sp=0 ip=0 copied=0 more=0: 2,0,0\n");
    i->frames[0].previous = AT(&i->frames[0]);
    set(b, process, 'R', RUNS, 205, 1, 3);
    const char *frames = strstr(stacks_after(b), "more=1: 2,0,0");
    REQUIRE(frames);
    CHECK_UINT_EQ(count(frames, " 2,0,0"), SV_STACK_PYTHON_MAX);
    /* It is no thread of Python any more: another one has its place. */
    i->threads[0][1] = OTHER + 1;
    set(b, process, 'R', RUNS, 255, 1, 3);
    CHECK_STR_EQ(stacks_after(b), "");
    i->threads[0][1] = process;
    set(b, process, 'R', RUNS, 305, 1, 3);
    CHECK(strstr(stacks_after(b), "more=1: 2,0,0"));
    sv_watch_python(b->w, process, NULL);
    set(b, process, 'R', RUNS, 355, 1, 3);
    CHECK_STR_EQ(stacks_after(b), "");
    close_bench(b);
    free(i);
    process = NOBODY;
}

/* Places that are beyond what is read of a frame or of a code object. */
TEST(offsets_of_python_that_make_no_sense)
{
    static const struct {
        size_t member;
        uint32_t last; /* that fits */
    } rows[] = {{offsetof(struct sv_wire_python, name), 136},
                {offsetof(struct sv_wire_python, file), 136},
                {offsetof(struct sv_wire_python, linetable), 136},
                {offsetof(struct sv_wire_python, first_line), 140},
                {offsetof(struct sv_wire_python, code), 72},
                {offsetof(struct sv_wire_python, previous), 72},
                {offsetof(struct sv_wire_python, instr), 72},
                {offsetof(struct sv_wire_python, owner), 79}};
    process = (unsigned)getpid();
    struct interpreter *i = make_interpreter();
    for (size_t k = 0; k < TEST_COUNT(rows); k++)
        for (uint32_t beyond = 0; beyond < 2; beyond++) {
            struct sv_wire_python offsets = offsets_here;
            uint32_t value = rows[k].last + beyond;
            CONTEXT("member at %zu: %u", rows[k].member, value);
            /* Where the code's place is another one, a code is there. */
            memcpy(i->frames[0].rest + 72 - 25, &i->frames[0].code, 8);
            offsets.runtime = AT(i->runtime);
            memcpy((char *)&offsets + rows[k].member, &value, sizeof value);
            struct bench *b = open_bench();
            set(b, process, 'R', RUNS, 5, 1, 3);
            look(b, 0);
            sv_watch_python(b->w, process, &offsets);
            set(b, process, 'R', RUNS, 55, 1, 3);
            CHECK_INT_EQ(strstr(stacks_after(b), "sample of one") != NULL, !beyond);
            close_bench(b);
        }
    free(i);
    process = NOBODY;
}
