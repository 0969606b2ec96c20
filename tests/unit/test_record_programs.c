/* What an exec says of its program: the same files at the same addresses as /proc/PID/maps has. */
#include "record/symbols/symbols.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static struct sv_program own_program(char path[4096])
{
    struct stat st;
    ssize_t n = readlink("/proc/self/exe", path, 4095);
    CHECK(n > 0 && stat("/proc/self/exe", &st) == 0);
    path[n > 0 ? n : 0] = 0;
    return (struct sv_program){.inode = st.st_ino,
                               .device = major(st.st_dev) << 20 | (minor(st.st_dev) & 0xfffff),
                               .entry = getauxval(AT_ENTRY),
                               .base = getauxval(AT_BASE),
                               .vdso = getauxval(AT_SYSINFO_EHDR)};
}

static uint64_t code_at(void)
{
    return (uint64_t)(uintptr_t)code_at;
}

/* Every range of code that this process had from its exec on is the same by both ways. */
TEST(an_exec_says_what_maps_say)
{
    struct sv_symbols *s = sv_symbols_new(NULL);
    char path[4096], line[4500];
    const struct sv_program p = own_program(path);
    const uint32_t self = (uint32_t)getpid(), same = self + 1000000000;
    int n = 0;
    sv_symbols_follow(s, true);
    CHECK(sv_symbols_program(s, same, 100, &p, path));
    CHECK(sv_symbols_unread(s, same) == p.inode);
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && fgets(line, sizeof line, f)) {
        struct sv_code_at by_image, by_maps;
        uint64_t from, to;
        char rights[8];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &from, &to, rights) != 3 ||
            rights[2] != 'x' || from > INT64_MAX ||
            !(strstr(line, path) || strstr(line, "/ld-") || strstr(line, "[vdso]")))
            continue;
        for (uint64_t at = from; at < to; at += to - from - 1) {
            CHECK(sv_symbols_find(s, self, at, INT64_MAX / 2, &by_maps));
            CHECK(sv_symbols_find(s, same, at, 100, &by_image));
            CHECK(by_image.file == by_maps.file && by_image.offset == by_maps.offset);
        }
        n++;
    }
    if (f)
        fclose(f);
    CHECK(n == 1 + (p.base != 0) + (p.vdso != 0));
    CHECK_STR_EQ(sv_symbols_user(s, same, code_at(), 100), "code_at");
    CHECK(sv_symbols_readings(s, same) == 1);
    sv_symbols_free(s);
}

/* A path that is another file here says nothing, nor do maps that have been read. */
TEST(another_file_says_nothing)
{
    struct sv_symbols *s = sv_symbols_new(NULL);
    char path[4096];
    struct sv_program p = own_program(path), other = p;
    const uint32_t self = (uint32_t)getpid();
    struct sv_code_at at;
    sv_symbols_follow(s, true);
    other.inode++;
    CHECK(!sv_symbols_program(s, self, 100, &other, path));
    other = p;
    other.device++;
    CHECK(!sv_symbols_program(s, self, 100, &other, path));
    CHECK(!sv_symbols_program(s, self, 100, &p, "relative"));
    CHECK(!sv_symbols_program(s, self, 100, &p, "/proc/self/maps"));
    CHECK(sv_symbols_unread(s, self) == 0);
    /* What is at an address that nobody has spoken of is looked up, once. */
    CHECK(sv_symbols_program(s, self, 100, &p, path));
    CHECK(sv_symbols_find(s, self, (uint64_t)(uintptr_t)getauxval, INT64_MAX / 2, &at));
    CHECK(sv_symbols_unread(s, self) == 0 && sv_symbols_readings(s, self) == 2);
    CHECK(!sv_symbols_program(s, self, 200, &p, path));
    sv_symbols_exec(s, self, INT64_MAX);
    CHECK(sv_symbols_program(s, self, 300, &p, path));
    sv_symbols_free(s);
}

/* Code that is mapped later is there, under the name behind its links; a Python among it is looked
 * for. */
TEST(the_program_and_what_is_mapped_later)
{
    struct sv_symbols *s = sv_symbols_new(NULL);
    char path[4096], link[64], folder[] = "/tmp/stave-image.XXXXXX";
    struct stat st;
    struct sv_code_at at;
    const struct sv_program p = own_program(path);
    sv_symbols_follow(s, true);
    CHECK(sv_symbols_program(s, 4711, 100, &p, path));
    CHECK(mkdtemp(folder) != NULL);
    snprintf(link, sizeof link, "%s/libpython9.so", folder);
    CHECK(symlink(path, link) == 0 && stat(link, &st) == 0);
    struct sv_mapped_code m = {
        .ts_ns = 200, .start = 0x10000, .bytes = 4096, .inode = p.inode, .device = p.device};
    sv_symbols_map(s, 4711, &m, link);
    CHECK(sv_symbols_find(s, 4711, 0x10010, 300, &at));
    CHECK_STR_EQ(at.file->path, path);
    CHECK(sv_symbols_readings(s, 4711) == 2);
    m.inode++;
    m.start = 0x20000;
    sv_symbols_map(s, 4711, &m, link);
    CHECK(sv_symbols_find(s, 4711, 0x20010, 300, &at));
    CHECK_STR_EQ(at.file->path, link);
    unlink(link);
    rmdir(folder);
    sv_symbols_free(s);
}

/* The words of an exec end before it; a record that is too short for it has none. */
TEST(the_image_is_not_a_part_of_the_command)
{
    static const char words[] = "/bin/cat\0cat\0-n";
    for (int has_image = 0; has_image < 2; has_image++) {
        char text[sizeof words + sizeof(struct sv_wire_image)] = {0};
        struct kbench *k = kbench_new(&(struct sv_decode_options){0});
        const struct sv_wire_head exec = {
            .kind = SV_WIRE_EXEC, .flags = SV_WIRE_HAS_IMAGE, .tgid = 10, .tid = 10, .ts_ns = 100};
        memcpy(text, words, sizeof words);
        memset(text + sizeof words, 'x', has_image ? sizeof(struct sv_wire_image) : 0);
        kbench_put(k, 0, &exec, sizeof exec, text, has_image ? sizeof text : sizeof words, 0);
        kbench_round(k, 1000);
        CHECK(strstr(k->text, "exec path=/bin/cat"));
        const struct sv_proc *p = sv_tree_find(sv_decode_tree(k->decode), 10);
        CHECK(p != NULL);
        if (p) {
            struct sv_text command = sv_dict_text(k->dict, k->dict->tracks[p->track].desc);
            CHECK_UINT_EQ(command.len, sizeof "cat -n" - 1);
        }
        kbench_free(k);
    }
}
