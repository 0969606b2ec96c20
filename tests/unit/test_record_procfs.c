/* What /proc says of this process and of children whose state is known. */
#include "record/sample/procfs.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sv_tree tree;

static void set_up(void)
{
    sv_tree_init(&tree, sv_dict_new());
}

static void tear_down(void)
{
    struct sv_dict *dict = tree.dict;
    sv_tree_fini(&tree);
    sv_dict_free(dict);
}

/* ---- somebody who waits ---- */

struct waiting {
    int go, ready;
    pid_t pid;
};

/* A child of this process with this name, and with a child of its own if it has a family. */
static struct waiting wait_as(const char *name, bool has_family)
{
    int go[2], ready[2];
    REQUIRE(pipe(go) == 0 && pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        char byte;
        pid_t inner = has_family ? fork() : 1;
        close(go[1]);
        prctl(PR_SET_NAME, name);
        if (write(ready[1], "r", 1) != 1 || read(go[0], &byte, 1) != 0)
            _exit(1);
        if (has_family && inner > 0)
            waitpid(inner, NULL, 0);
        _exit(0);
    }
    close(go[0]);
    close(ready[1]);
    char bytes;
    for (int i = 0; i < 1 + has_family; i++)
        REQUIRE(read(ready[0], &bytes, 1) == 1);
    return (struct waiting){go[1], ready[0], pid};
}

static void let_go(const struct waiting *w)
{
    int status;
    close(w->go);
    close(w->ready);
    CHECK_INT_EQ(waitpid(w->pid, &status, 0), w->pid);
}

static bool has(const uint32_t *pids, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (pids[i] == (uint32_t)pid)
            return true;
    return false;
}

/* ---- tests ---- */

TEST(a_small_file_is_read_as_far_as_it_fits)
{
    char text[16] = "before";
    const char *path = test_scratch("text");
    test_write_file(path, "0123456789");
    CHECK_UINT_EQ(sv_procfs_text(path, text, sizeof text), 10);
    CHECK_STR_EQ(text, "0123456789");
    CHECK_UINT_EQ(sv_procfs_text(path, text, 11), 10);
    CHECK_STR_EQ(text, "0123456789");
    CHECK_UINT_EQ(sv_procfs_text(path, text, 10), 9);
    CHECK_STR_EQ(text, "012345678");
    CHECK_UINT_EQ(sv_procfs_text(test_scratch("nowhere"), text, sizeof text), 0);
    CHECK_STR_EQ(text, "");
}

static void *be_worker(void *arg)
{
    char byte;
    const int *ends = arg;
    prctl(PR_SET_NAME, "worker7");
    CHECK(write(ends[3], "r", 1) == 1);
    CHECK(read(ends[0], &byte, 1) == 1);
    return NULL;
}

TEST(a_process_is_completed_from_proc)
{
    test_leaves_open();
    char cwd[4096], command[4096], path[512];
    uint32_t pid = (uint32_t)getpid(), *tids;
    int ends[4];
    struct stat st;
    if (TEST_HAS_TSAN)
        SKIP("ThreadSanitizer has a thread of its own in every process");
    set_up();
    snprintf(path, sizeof path, "%s", test_scratch("kept"));
    int kept = open(path, O_RDWR | O_CREAT, 0600);
    int closing = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(kept >= 0 && closing >= 0 && fstat(kept, &st) == 0 && getcwd(cwd, sizeof cwd));
    prctl(PR_SET_NAME, "unit-of-procfs");
    CHECK(sv_procfs_complete(&tree, pid));
    const struct sv_proc *p = sv_tree_find(&tree, pid);
    REQUIRE(p && p->cwd);
    CHECK_STR_EQ(p->name, "unit-of-procfs");
    CHECK_STR_EQ(p->cwd->path, cwd);
    CHECK(p->has_snapshot && !p->is_threaded);
    CHECK_UINT_EQ(tree.n_threads, 1);
    CHECK_UINT_EQ(sv_procfs_threads(pid, &tids), 1);
    CHECK_UINT_EQ(tids[0], pid);
    free(tids);
    REQUIRE(sv_fd_at(p, kept) && sv_fd_at(p, closing));
    CHECK_STR_EQ(sv_fd_at(p, kept)->file->path, path);
    CHECK_UINT_EQ(sv_fd_at(p, kept)->inode, st.st_ino);
    CHECK(!sv_fd_at(p, kept)->closes_on_exec && sv_fd_at(p, closing)->closes_on_exec);
    size_t n = sv_procfs_command(pid, command, sizeof command);
    CHECK(n > 0 && strstr(command, "unit"));
    CHECK_UINT_EQ(strlen(sv_dict_text(tree.dict, tree.dict->tracks[p->track].desc).bytes),
                  n - 1 < 1024 ? n - 1 : 1024);
    /* Again, with a thread more and a file less: what was before is forgotten. */
    pthread_t thread;
    REQUIRE(pipe(ends) == 0 && pipe(ends + 2) == 0);
    REQUIRE(pthread_create(&thread, NULL, be_worker, ends) == 0 && read(ends[2], command, 1) == 1);
    close(closing);
    CHECK(sv_procfs_complete(&tree, pid));
    CHECK(p->is_threaded);
    CHECK_UINT_EQ(tree.n_threads, 2);
    const struct sv_fd *other = sv_fd_at(p, closing); /* what is read may have the number */
    CHECK(!other || !other->file || strcmp(other->file->path, path) != 0);
    CHECK_UINT_EQ(sv_procfs_threads(pid, &tids), 2);
    for (size_t i = 0; i < tree.n_threads; i++) {
        const struct sv_traced_thread *x = &tree.threads[i];
        CHECK(has(tids, 2, (pid_t)x->tid));
        CHECK_STR_EQ(sv_dict_text(tree.dict, tree.dict->tracks[x->track].name).bytes,
                     x->tid == pid ? "unit-of-procfs" : "worker7");
    }
    free(tids);
    CHECK(write(ends[1], "g", 1) == 1 && pthread_join(thread, NULL) == 0);
    CHECK(!sv_procfs_complete(&tree, 999999999));
    CHECK(sv_tree_find(&tree, 999999999)->has_snapshot); /* it is not asked again */
    CHECK_UINT_EQ(sv_procfs_threads(999999999, &tids), 0);
    CHECK_UINT_EQ(sv_procfs_command(999999999, command, sizeof command), 0);
    tear_down();
}

TEST(a_descriptor_has_a_path_only_with_its_inode)
{
    test_leaves_open();
    int ends[2];
    struct stat st;
    uint32_t pid = (uint32_t)getpid();
    set_up();
    int fd = open(test_scratch("file"), O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0 && pipe(ends) == 0 && fstat(fd, &st) == 0);
    CHECK(!sv_procfs_descriptor(&tree, pid, fd, 0));
    CHECK(!sv_procfs_descriptor(&tree, pid, fd, st.st_ino + 1));
    const struct sv_file *f = sv_procfs_descriptor(&tree, pid, fd, st.st_ino);
    CHECK_STR_EQ(f ? f->path : "-", test_scratch("file"));
    CHECK_UINT_EQ(f ? f->refs : 0, 1); /* what was not given is not held */
    f = sv_procfs_descriptor(&tree, pid, ends[0], 0);
    CHECK(f && strncmp(f->path, "pipe:[", 6) == 0);
    CHECK(!sv_procfs_descriptor(&tree, pid, 9999, 0));
    CHECK(!sv_procfs_descriptor(&tree, 999999999, 0, 0));
    tear_down();
}

TEST(a_family_is_a_process_with_all_that_descends_from_it)
{
    uint32_t *pids;
    struct waiting w = wait_as("stave-family", true);
    size_t n = sv_procfs_family((uint32_t)w.pid, &pids);
    CHECK_UINT_EQ(n, 2);
    CHECK_UINT_EQ(pids[0], w.pid);
    CHECK(n < 2 || pids[1] != pids[0]);
    free(pids);
    n = sv_procfs_family((uint32_t)getpid(), &pids);
    CHECK_UINT_EQ(n, 3);
    CHECK(has(pids, n, getpid()) && has(pids, n, w.pid));
    free(pids);
    CHECK_UINT_EQ(sv_procfs_family(999999999, &pids), 0);
    let_go(&w);
}

/* The kernel keeps 15 bytes of a name; we ourselves are never meant. */
TEST(processes_are_found_by_their_name)
{
    uint32_t *pids;
    char name[32];
    snprintf(name, sizeof name, "u%010u-abcd", (unsigned)getpid()); /* 16 bytes */
    struct waiting w = wait_as(name, false);
    prctl(PR_SET_NAME, name);
    CHECK_UINT_EQ(sv_procfs_named(name, &pids), 1);
    CHECK(has(pids, 1, w.pid));
    free(pids);
    name[15] = 'x'; /* beyond what is kept */
    CHECK_UINT_EQ(sv_procfs_named(name, &pids), 1);
    free(pids);
    name[14] = 'x';
    CHECK_UINT_EQ(sv_procfs_named(name, &pids), 0);
    let_go(&w);
}

TEST(cgroups_are_folders_of_their_file_system)
{
    struct stat st;
    char text[SV_PROCFS_CGROUP_MAX], own[8192];
    uint32_t *pids;
    CHECK(!sv_procfs_is_cgroup("nowhere"));
    CHECK(!sv_procfs_is_cgroup("/sys/kernel"));
    CHECK(!sv_procfs_is_cgroup("/tmp"));
    CHECK_UINT_EQ(sv_procfs_cgroup_number("nowhere"), 0);
    CHECK_UINT_EQ(sv_procfs_cgroup_number("cgroup.procs"), 0); /* no folder */
    if (stat("/sys/fs/cgroup", &st) == 0) {
        CHECK_UINT_EQ(sv_procfs_cgroup_number("/"), st.st_ino);
        CHECK_UINT_EQ(sv_procfs_cgroup_number("/sys/fs/cgroup"), st.st_ino);
    }
    CHECK_UINT_EQ(sv_procfs_in_cgroup("nowhere", &pids), 0);
    if (sv_procfs_is_cgroup("/")) {
        struct waiting w = wait_as("stave-cgroup", false);
        char *all = calloc(1, 1 << 20), line[32];
        REQUIRE(all);
        sv_procfs_text("/sys/fs/cgroup/cgroup.procs", all, 1 << 20);
        snprintf(line, sizeof line, "\n%d\n", (int)w.pid);
        size_t n = sv_procfs_in_cgroup("/", &pids);
        CHECK_INT_EQ(has(pids, n, w.pid), strstr(all, line) != NULL);
        CHECK(!has(pids, n, getpid())); /* we ourselves are never meant */
        free(pids);
        free(all);
        let_go(&w);
    }
    /* The unified one counts. */
    size_t n = sv_procfs_cgroup((uint32_t)getpid(), text, sizeof text);
    CHECK_UINT_EQ(strlen(text), n);
    sv_procfs_text("/proc/self/cgroup", own, sizeof own);
    char *unified = strstr(own, "0::/");
    if (unified && unified[4] != '\n' && unified[4]) {
        unified[strcspn(unified, "\n")] = 0;
        CHECK_STR_EQ(text, unified + 3);
        CHECK_UINT_EQ(sv_procfs_cgroup((uint32_t)getpid(), text, n + 1), n);
        CHECK(sv_procfs_cgroup((uint32_t)getpid(), text, n) != n); /* no room for it */
    }
    CHECK_UINT_EQ(sv_procfs_cgroup(999999999, text, sizeof text), 0);
    CHECK_STR_EQ(text, "");
}

/* A recorded exec is not asked for: this machine's process of the number is another one. */
TEST(an_exec_has_the_cgroup_that_its_process_is_in)
{
    char text[SV_PROCFS_CGROUP_MAX], expected[SV_PROCFS_CGROUP_MAX + 16];
    uint32_t pid = (uint32_t)getpid();
    size_t n = sv_procfs_cgroup(pid, text, sizeof text);
    snprintf(expected, sizeof expected, " cgroup=%s", text);
    for (int asks = 0; asks < 2; asks++) {
        struct kbench *k = kbench_new(&(struct sv_decode_options){.asks_procfs = asks});
        const struct sv_wire_head exec = {
            .kind = SV_WIRE_EXEC, .tgid = pid, .tid = pid, .ts_ns = 100};
        kbench_put(k, 0, &exec, sizeof exec, "/bin/cat\0cat", 13, 0);
        kbench_round(k, 1000);
        CHECK(strstr(k->text, "exec path=/bin/cat"));
        CHECK_INT_EQ(strstr(k->text, expected) != NULL, asks && n > 0);
        kbench_free(k);
    }
}
