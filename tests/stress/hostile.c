/* hostile SCENE [ARGUMENTS]: a client that does to its own files what no client should, or a
 * session that no program made.
 *
 *   cut FILE GO     records 1,000 instants, truncates its file (session, names or ring.0), makes
 *                   the file GO.cut and waits until GO is there
 *   noise GO        the same, but fills head, tail and losses of its ring with noise
 *   parent SCENE    records 1,000 instants, forks a child that does `SCENE`, waits for it, records
 *                   1,000 more
 *   session DIR KIND N   makes a session directory of a process that is gone, with a log of names
 *                        of N records: far (numbers far apart),
 *                   wide (as many arguments as fit), deep (each track below the one before), lanes
 *                   (a slice on each track) */
#include "sdk/ring/session_layout.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS = 1000 };

static void record(const char *what)
{
    for (int i = 0; i < EVENTS; i++)
        STAVE_INSTANT("hostile", "n", "who", what, "i", i);
}

/* DIR of this process in that of its host. */
static int own_folder(void)
{
    char prefix[32], path[PATH_MAX] = "";
    snprintf(prefix, sizeof prefix, "%d-", (int)getpid());
    DIR *d = opendir(stave_session());
    for (const struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, prefix, strlen(prefix)) == 0)
            snprintf(path, sizeof path, "%s/%s", stave_session(), e->d_name);
    if (d)
        closedir(d);
    return open(path, O_RDONLY | O_DIRECTORY);
}

static void wait_for(const char *go)
{
    char cut[PATH_MAX];
    snprintf(cut, sizeof cut, "%s.cut", go);
    int fd = open(cut, O_WRONLY | O_CREAT, 0600);
    if (fd >= 0)
        close(fd);
    for (int i = 0; i < 60000 && access(go, F_OK) != 0; i++)
        usleep(1000);
}

static int cut(const char *name, const char *go)
{
    record("cut");
    stave_flush(); /* the host has met us */
    int folder = own_folder(), fd = openat(folder, name, O_RDWR);
    if (fd < 0 || ftruncate(fd, 0) != 0)
        return 3;
    wait_for(go);
    _exit(0); /* nothing of the library may touch the file again */
}

static int noise(const char *go)
{
    record("noise");
    stave_flush();
    int fd = openat(own_folder(), "ring.0", O_RDWR);
    struct sv_ring *r = fd < 0 ? MAP_FAILED
                               : mmap(NULL, SV_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (r == MAP_FAILED)
        return 3;
    for (uint64_t i = 1; i < 1000; i++) {
        atomic_store(&r->head, i * 0x9e3779b97f4a7c15u);
        atomic_store(&r->tail, i * 0xbf58476d1ce4e5b9u);
        atomic_store(&r->lost_full, i * 0x94d049bb133111ebu);
        usleep(200);
    }
    wait_for(go);
    _exit(0);
}

static int scene(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[0], "cut") == 0)
        return cut(argv[1], argv[2]);
    if (argc == 2 && strcmp(argv[0], "noise") == 0)
        return noise(argv[1]);
    return 2;
}

static int parent(int argc, char **argv)
{
    int status = 0;
    record("parent");
    pid_t pid = fork();
    if (pid == 0)
        _exit(scene(argc, argv));
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 4;
    record("parent");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 5;
}

/* ---- sessions ---- */

static void put_name(FILE *f, struct sv_name_head h, const char *texts, size_t n)
{
    static const char zeros[8];
    size_t pad = (8 - (sizeof h + n) % 8) % 8;
    h.size = (uint32_t)(sizeof h + n + pad);
    fwrite(&h, sizeof h, 1, f);
    fwrite(texts, n, 1, f);
    fwrite(zeros, pad, 1, f);
}

static void put_names(FILE *f, const char *kind, uint32_t n)
{
    static const char texts[1024] = "c"; /* empty ones, as many as needed */
    const uint8_t slice[] = {'s', 0, 0, 0, 0, 0, 0, 0, STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR};
    put_name(f,
             (struct sv_name_head){
                 .kind = SV_NAME_SITE, .event = STAVE_KIND_COMPLETE, .n_args = 3, .id = 1},
             (const char *)slice, sizeof slice);
    for (uint32_t i = 0; i < n; i++) {
        struct sv_name_head h = {.kind = SV_NAME_TRACK, .event = 1, .id = i + 3, .parent = 1};
        size_t bytes = 2;
        if (strcmp(kind, "far") == 0) {
            h.id = (uint32_t)((1u << 24) - 1 - i * 64);
            h.kind = (uint8_t)(1 + i % 2);
            bytes = 8;
        } else if (strcmp(kind, "wide") == 0) {
            h = (struct sv_name_head){
                .kind = SV_NAME_SITE, .event = STAVE_KIND_INSTANT, .n_args = 255, .id = i + 2};
            bytes = 4 + 2 * 255;
        } else if (strcmp(kind, "deep") == 0) {
            h.parent = i + 2;
            h.parent = i == 0 ? 1 : i + 2;
        }
        char own[1024];
        memcpy(own, texts, sizeof own);
        if (h.kind == SV_NAME_TRACK)
            snprintf(own, sizeof own, "%u", i), bytes = strlen(own) + 2;
        put_name(f, h, own, bytes);
    }
}

/* A slice on each track, as many as the ring takes. */
static void put_ring(int fd, uint32_t n)
{
    enum { WORDS = 5 };
    size_t size = SV_RING_BYTES_MIN;
    while (size < n * WORDS * 8 && size < 16 << 20)
        size *= 2;
    if (ftruncate(fd, (off_t)(SV_PAGE + size)) != 0)
        exit(3);
    uint8_t *at = mmap(NULL, SV_PAGE + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        exit(3);
    struct sv_ring *r = (struct sv_ring *)(void *)at;
    r->version = SV_LAYOUT_VERSION;
    r->size = size;
    r->magic = SV_RING_MAGIC;
    atomic_store(&r->tid, 7);
    atomic_store(&r->owner, 1);
    uint64_t *words = (uint64_t *)(void *)(at + SV_PAGE), most = size / (WORDS * 8);
    for (uint64_t i = 0; i < n && i < most; i++) {
        const uint64_t w[WORDS] = {SV_WORD(1, STAVE_KIND_COMPLETE, 3, WORDS), 1000 + i, i + 3,
                                   1000 + i, 10};
        memcpy(words + i * WORDS, w, sizeof w);
    }
    atomic_store(&r->mark[0].pos, size);
    atomic_store(&r->head, size + (n < most ? n : most) * WORDS * 8);
}

static int new_file(int folder, const char *name)
{
    return openat(folder, name, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

static int session(const char *dir, const char *kind, uint32_t n)
{
    if (mkdir(dir, 0700) != 0)
        return 3;
    int folder = open(dir, O_RDONLY | O_DIRECTORY), fd = new_file(folder, "names");
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f)
        return 3;
    put_names(f, kind, n);
    struct sv_session_file s = {.magic = SV_SESSION_MAGIC,
                                .version = SV_LAYOUT_VERSION,
                                .process = {.pid = 1},
                                .state = SV_SESSION_OPEN,
                                .names_bytes = (uint64_t)ftell(f),
                                .n_rings = 1,
                                .out = "OUT-GOES-HERE",
                                .part = "PART-GOES-HERE"};
    if (fclose(f) != 0)
        return 3;
    fd = new_file(folder, "session");
    if (write(fd, &s, sizeof s) != (ssize_t)sizeof s || ftruncate(fd, SV_SESSION_BYTES) != 0)
        return 3;
    put_ring(new_file(folder, "ring.0"), n);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "session") == 0)
        return session(argv[2], argv[3], (uint32_t)strtoul(argv[4], NULL, 10));
    if (argc > 2 && strcmp(argv[1], "parent") == 0)
        return parent(argc - 2, argv + 2);
    return scene(argc - 1, argv + 1);
}
