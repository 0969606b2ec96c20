/* Names of functions: this program's own symbols, lines of maps and kallsyms, damaged ELF files,
 * stacks as events. */
#include "record/symbols/elf.h"
#include "record/symbols/symbols.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern long sv_test_variable_with_a_name;
long sv_test_variable_with_a_name = 1;

__attribute__((noinline)) void sv_test_function_with_a_name(void);
void sv_test_function_with_a_name(void)
{
    __asm__ volatile("");
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

TEST(a_function_of_a_running_process_has_its_name)
{
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    uint64_t at = (uint64_t)(uintptr_t)sv_test_function_with_a_name;
    CHECK_STR_EQ(sv_symbols_user(s, (uint32_t)getpid(), at, now_ns()),
                 "sv_test_function_with_a_name");
    CHECK_STR_EQ(sv_symbols_user(s, (uint32_t)getpid(), 16, now_ns()), "[unknown]");
    sv_symbols_fork(s, (uint32_t)getpid(), 999999999); /* a child that is gone */
    CHECK_STR_EQ(sv_symbols_user(s, 999999999, at, now_ns()), "sv_test_function_with_a_name");
    sv_symbols_exec(s, 999999999, INT64_MAX);
    CHECK_STR_EQ(sv_symbols_user(s, 999999999, at, now_ns()), "[unknown]");
    CHECK_STR_EQ(sv_symbols_kernel(s, 0xffffffff81000000), "[kernel]");
    sv_symbols_free(s);
}

TEST(lines_of_maps_are_read_and_nonsense_is_passed_over)
{
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    sv_symbols_maps(s, 999999999,
                    "1000-2000 r--p 00000000 fe:00 12 /lib/a.so\n"
                    "2000-3000 r-xp 00001000 fe:00 12 /lib/a b.so\n"
                    "zzz\n"
                    "9000-8000 r-xp 0 0:0 0\n"
                    "a000-b000 r-xp 00000000 00:00 0\n"
                    "c000-d000 r-xp 00000000 00:00 0 [vdso]",
                    INT64_MAX);
    CHECK_STR_EQ(sv_symbols_user(s, 999999999, 0x1800, 1), "[unknown]"); /* no code */
    CHECK_STR_EQ(sv_symbols_user(s, 999999999, 0x2800, 1), "[a b.so]");
    CHECK_STR_EQ(sv_symbols_user(s, 999999999, 0xa000, 1), "[anonymous]");
    CHECK_STR_EQ(sv_symbols_user(s, 999999999, 0xcfff, 1), "[vdso]");
    CHECK_STR_EQ(sv_symbols_user(s, 999999999, 0xd000, 1), "[unknown]");
    sv_symbols_free(s);
}

TEST(code_that_is_mapped_later_is_learnt_from_the_call)
{
    const uint32_t pid = 999999998, child = 999999999;
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    struct sv_mapped_code m = {.ts_ns = 50, .start = 0x5000, .bytes = 0xf01, .inode = 9};
    sv_symbols_follow(s, true);
    sv_symbols_map(s, pid, &m, "/lib/early.so"); /* nothing is known of it yet: it will be read */
    sv_symbols_maps(s, pid, "1000-4000 r-xp 00000000 fe:00 12 /lib/a.so", 100);
    sv_symbols_map(s, pid, &m, "/lib/early.so"); /* the reading has seen it, or it was gone */
    CHECK_STR_EQ(sv_symbols_user(s, pid, 0x5800, INT64_MAX), "[unknown]");
    m.ts_ns = 200;
    sv_symbols_map(s, pid, &m, "/lib/b.so");
    m.start = 0x2000;
    m.bytes = 0x1000;
    sv_symbols_map(s, pid, &m, "/lib/c.so"); /* in the middle of another */
    const struct {
        uint64_t at;
        const char *name;
    } rows[] = {{0x1fff, "[a.so]"}, {0x2000, "[c.so]"},    {0x2fff, "[c.so]"},
                {0x3000, "[a.so]"}, {0x4000, "[unknown]"}, {0x5000, "[b.so]"},
                {0x5fff, "[b.so]"}, {0x6000, "[unknown]"}};
    sv_symbols_fork(s, pid, child);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CHECK_STR_EQ(sv_symbols_user(s, pid, rows[i].at, INT64_MAX), rows[i].name);
        CHECK_STR_EQ(sv_symbols_user(s, child, rows[i].at, INT64_MAX), rows[i].name);
    }
    m.bytes = UINT64_MAX;
    sv_symbols_map(s, pid, &m, "/lib/d.so"); /* nonsense */
    m.start = 0x1000;
    m.bytes = 0x9000;
    sv_symbols_map(s, pid, &m, "/lib/e.so"); /* over all of them */
    CHECK_STR_EQ(sv_symbols_user(s, pid, 0x5000, INT64_MAX), "[e.so]");
    CHECK_STR_EQ(sv_symbols_user(s, child, 0x5000, INT64_MAX), "[b.so]");
    sv_symbols_free(s);
}

TEST(a_child_that_is_gone_has_its_parents_code)
{
    const uint32_t self = (uint32_t)getpid(), child = 999999999;
    uint64_t at = (uint64_t)(uintptr_t)sv_test_function_with_a_name;
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    sv_symbols_follow(s, true);
    sv_symbols_fork(s, self, child); /* nobody has asked for either so far */
    CHECK_STR_EQ(sv_symbols_user(s, child, at, now_ns()), "sv_test_function_with_a_name");
    CHECK_UINT_EQ(sv_symbols_readings(s, self), 1);
    sv_symbols_fork(s, self, child - 1);
    sv_symbols_exec(s, self, INT64_MAX); /* the child still runs the old program */
    CHECK_STR_EQ(sv_symbols_user(s, child - 1, at, now_ns()), "sv_test_function_with_a_name");
    sv_symbols_end(s, child);
    CHECK_STR_EQ(sv_symbols_user(s, child, at, now_ns()), "[unknown]");
    sv_symbols_free(s);
}

/* What is known of an exec comes late: maps that were read since are those of the new program. */
TEST(maps_that_were_read_after_an_exec_stay)
{
    const uint32_t pid = 999999999;
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    sv_symbols_maps(s, pid, "1000-4000 r-xp 00000000 fe:00 12 /lib/a.so", 100);
    sv_symbols_exec(s, pid, 99);
    CHECK_STR_EQ(sv_symbols_user(s, pid, 0x1000, 1), "[a.so]");
    sv_symbols_exec(s, pid, 100);
    CHECK_STR_EQ(sv_symbols_user(s, pid, 0x1000, 1), "[unknown]");
    sv_symbols_free(s);
}

TEST(names_of_a_process_stay_while_its_last_events_are_read)
{
    const uint32_t pid = 999999998, next = 999999999;
    static const char maps[] = "1000-4000 r-xp 00000000 fe:00 12 /lib/a.so";
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    sv_symbols_keep_ended(s);
    sv_symbols_maps(s, pid, maps, 100);
    sv_symbols_maps(s, next, maps, 100);
    sv_symbols_end(s, pid);
    CHECK_STR_EQ(sv_symbols_user(s, pid, 0x1000, 1), "[a.so]");
    sv_symbols_forget_ended(s);
    CHECK_STR_EQ(sv_symbols_user(s, pid, 0x1000, 1), "[a.so]");
    sv_symbols_end(s, next);
    sv_symbols_forget_ended(s);
    CHECK_STR_EQ(sv_symbols_user(s, pid, 0x1000, 1), "[unknown]");
    CHECK_STR_EQ(sv_symbols_user(s, next, 0x1000, 1), "[a.so]");
    sv_symbols_fork(s, next, pid); /* the number comes again */
    sv_symbols_end(s, pid);
    sv_symbols_fork(s, next, pid);
    for (int i = 0; i < 3; i++)
        sv_symbols_forget_ended(s);
    CHECK_STR_EQ(sv_symbols_user(s, next, 0x1000, 1), "[unknown]");
    CHECK_STR_EQ(sv_symbols_user(s, pid, 0x1000, 1), "[a.so]");
    sv_symbols_free(s);
}

/* A wait for a lock may be the first that is heard of a process. */
TEST(a_variable_is_found_before_any_function_was)
{
    const uint32_t self = (uint32_t)getpid(), child = 999999999;
    uint64_t at = (uint64_t)(uintptr_t)&sv_test_variable_with_a_name;
    struct sv_symbols *s = sv_symbols_new("/nonexistent");
    sv_symbols_fork(s, self, child);
    const char *found = sv_symbols_variable(s, self, at + 4);
    CHECK_STR_EQ(found ? found : "-", "sv_test_variable_with_a_name");
    found = sv_symbols_variable(s, child, at);
    CHECK_STR_EQ(found ? found : "-", "sv_test_variable_with_a_name");
    CHECK(!sv_symbols_variable(s, self, 16)); /* is no reason to read them again */
    CHECK_UINT_EQ(sv_symbols_readings(s, self), 1);
    sv_symbols_free(s);
}

TEST(the_kernels_functions_carry_a_mark)
{
    const char *path = test_scratch("kallsyms");
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    static const char text[] = "ffffffff81000200 T vfs_read\nffffffff81000100 t helper\t[module]\n"
                               "ffffffff81000150 D data\nbroken\n0000000000000000 T hidden\n";
    CHECK(fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1);
    struct sv_symbols *s = sv_symbols_new(path);
    CHECK_STR_EQ(sv_symbols_kernel(s, 0xffffffff81000180), "helper_[k]");
    CHECK_STR_EQ(sv_symbols_kernel(s, 0xffffffff81000200), "vfs_read_[k]");
    CHECK_STR_EQ(sv_symbols_kernel(s, 0xffffffff81000000), "[kernel]");
    sv_symbols_free(s);
    close(fd);
}

/* Every byte of the heads of a real file is changed once: nothing may go wrong, whatever is
 * found. */
TEST(damaged_elf_files_do_no_harm)
{
    const char *path = test_scratch("elf");
    struct sv_elf e;
    FILE *in = fopen("/proc/self/exe", "rb");
    uint8_t *bytes = malloc(1 << 16);
    CHECK(in && bytes);
    size_t n = fread(bytes, 1, 1 << 16, in);
    fclose(in);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    for (size_t i = 0; i < 1024 && i < n; i += 1) {
        uint8_t old = bytes[i];
        bytes[i] ^= 0xff;
        CHECK(pwrite(fd, bytes, n, 0) == (ssize_t)n);
        if (sv_elf_read(fd, 16 << 20, &e)) {
            sv_elf_name(&e, i * 64);
            sv_elf_fini(&e);
        }
        bytes[i] = old;
    }
    int status = open("/proc/self/status", O_RDONLY), self = open("/proc/self/exe", O_RDONLY);
    CHECK(!sv_elf_read(status, 1 << 20, &e));
    CHECK(!sv_elf_read(self, 100, &e));                              /* the limit */
    CHECK(sv_elf_read(self, 2000, &e) && e.n == 0 && e.n_loads > 0); /* no room for symbols */
    sv_elf_fini(&e);
    CHECK(sv_elf_read(self, 256 << 20, &e));
    CHECK(e.n > 100);
    close(status);
    close(self);
    sv_elf_fini(&e);
    free(bytes);
    close(fd);
}

struct stack_record {
    struct sv_wire_sample sample;
    uint64_t frames[4];
};

TEST(a_sample_is_an_instant_with_a_stack)
{
    struct kbench *k = kbench_new(NULL);
    struct stack_record r = {.sample = {.head = {.kind = SV_WIRE_SAMPLE,
                                                 .tgid = 999999999,
                                                 .tid = 999999999,
                                                 .what = 1,
                                                 .ts_ns = 100},
                                        .stack = {.n_user = 4}},
                             .frames = {16, 32, 48, 64}};
    kbench_put(k, 0, &r, sizeof r, NULL, 0, 0);
    r.sample.head.ts_ns = 200;
    r.sample.stack.n_user = 0;
    kbench_put(k, 0, &r, sizeof r.sample, NULL, 0, 0);
    r.sample.head.ts_ns = 300;
    r.sample.stack.n_user = 5; /* one more than there are */
    kbench_put(k, 0, &r, sizeof r, NULL, 0, 0);
    CHECK_UINT_EQ(kbench_round(k, 1000), 2);
    CHECK(strstr(k->text, "100 instant /samples [unknown] cpu=1"));
    CHECK(strstr(k->text, "200 instant /samples [no stack] cpu=1"));
    CHECK_UINT_EQ(sv_decode_malformed(k->decode), 1);
    kbench_free(k);
}

/* Bytes that were recorded elsewhere: this machine's kernel and the process that has the number
 * here say nothing about them. */
TEST(recorded_samples_get_no_names_of_this_machine)
{
    struct kbench *k = kbench_new(NULL);
    struct stack_record r = {.sample = {.head = {.kind = SV_WIRE_SAMPLE,
                                                 .tgid = (uint32_t)getpid(),
                                                 .tid = (uint32_t)getpid(),
                                                 .what = 1,
                                                 .ts_ns = (uint64_t)now_ns()},
                                        .stack = {.n_user = 1}},
                             .frames = {(uint64_t)(uintptr_t)&kbench_new}};
    kbench_put(k, 0, &r, sizeof r.sample + 8, NULL, 0, 0);
    r.sample.stack.n_user = 0;
    r.sample.stack.n_kernel = 1;
    r.frames[0] = UINT64_MAX; /* behind the last symbol, which would be its name */
    kbench_put(k, 0, &r, sizeof r.sample + 8, NULL, 0, 0);
    CHECK_UINT_EQ(kbench_round(k, UINT64_MAX), 2);
    CHECK(strstr(k->text, "instant /samples [unknown] cpu=1"));
    CHECK(strstr(k->text, "instant /samples [kernel] cpu=1"));
    kbench_free(k);
}
