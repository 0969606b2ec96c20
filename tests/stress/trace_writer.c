/* The writer of ferrum's files, in every way a program may use it and end: trace_writer WAY [FILE].
 * trace_writer.sh looks at the files. */
#include <stave/trace_writer.h>

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define must(x)                                                           \
    do {                                                                  \
        if (!(x)) {                                                       \
            fprintf(stderr, "trace_writer.c:%d: not %s\n", __LINE__, #x); \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

static char text[1 << 16];

static const char *read_file(const char *path)
{
    FILE *f = fopen(path, "r");
    must(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* What the tests of ferrum's trace.rs check. */
static void document(const char *path)
{
    struct stave_trace_event e = stave_trace_event_complete("rms_norm", "norm", 1000000, 0.123, 1);
    char json[256];
    must(e.dur == 123 && e.ts == 1000000 && e.tid == 1 && e.pid == 0);
    must(stave_trace_event_json(&e, json, sizeof json) == (int)strlen(json));
    must(strcmp(json, "{\"name\":\"rms_norm\",\"cat\":\"norm\",\"ph\":\"X\",\"ts\":1000000,"
                      "\"dur\":123,\"pid\":0,\"tid\":1}") == 0);
    must(stave_trace_event_json(&e, json, 20) == STAVE_ELIMIT);

    struct stave_trace_writer *off = stave_trace_writer_open(NULL);
    must(stave_trace_writer_push(off, "rms_norm", "norm", 1.0, 0) == 0);
    must(!stave_trace_writer_is_enabled(off) && stave_trace_writer_flush(off, NULL) == 0);
    stave_trace_writer_close(off);

    const char *no[] = {"FERRUM_TRACE_OUT=", "OTHER=1", NULL};
    const char *yes[] = {"STAVE_TRACE_OUT=", "FERRUM_TRACE_OUT=snapshot.json", NULL};
    const char *ours[] = {"FERRUM_TRACE_OUT=unused.json", "STAVE_TRACE_OUT=snapshot.json", NULL};
    must(!stave_trace_writer_from_vars(no));
    struct stave_trace_writer *on = stave_trace_writer_from_vars(yes);
    must(stave_trace_writer_is_enabled(on));
    must(stave_trace_writer_from_vars(ours) == on); /* the same file */
    stave_trace_writer_close(on);
    stave_trace_writer_close(on);
    must(access("unused.json", F_OK) != 0 && strcmp(read_file("snapshot.json"), "[]") == 0);

    struct stave_trace_writer *w = stave_trace_writer_open(path);
    must(stave_trace_writer_push(w, "rms_norm", "norm", 1.0, 1) == 0);
    must(stave_trace_writer_push(w, "rope", "attn", 0.5, 1) == 0);
    must(stave_trace_writer_flush(w, NULL) == 0);
    must(strstr(read_file(path), "\"rope\",\"cat\":\"attn\"") != NULL);
    must(stave_trace_writer_flush(w, NULL) == 0); /* a second one loses nothing */
    must(strstr(read_file(path), "rms_norm") != NULL);
    stave_trace_writer_close(w);
    must(strstr(read_file(path), "rms_norm") != NULL);
}

/* Texts and numbers that would break a file. */
static void odd(const char *path)
{
    struct stave_trace_writer *w = stave_trace_writer_open(path);
    static char large[100000];
    memset(large, '"', sizeof large - 1);
    must(stave_trace_writer_push(w, "\x01\"\\\n\xff\xc3", NULL, 0.1, UINT32_MAX) == 0);
    must(stave_trace_writer_push(w, large, "large", 0.1, 0) == 0);
    must(stave_trace_writer_push(w, "nan", "number", NAN, 0) == 0);
    must(stave_trace_writer_push(w, "negative", "number", -5, 0) == 0);
    must(stave_trace_writer_push(w, "infinite", "number", INFINITY, 0) == 0);
    must(stave_trace_writer_push(w, "half", "number", 0.0005, 0) == 0);
    must(stave_trace_writer_push_with_args(w, "args", "a", 0.1, 0, "{\"x\":[1,{\"y\":null}]}") ==
         0);
    must(stave_trace_writer_push_with_args(w, "empty", "a", 0.1, 0, " { } ") == 0);
    const char *bad[] = {"}", "[1]", "{\"x\":NaN}", "{\"x\":1},{", "{\"x\":\"\xff\"}", "\"text\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        must(stave_trace_writer_push_with_args(w, "bad", "a", 0.1, 0, bad[i]) == STAVE_EFORMAT);
    struct stave_trace_event e = {.name = "a\0b", .name_len = 3, .cat = "cut off", .cat_len = 3};
    e.ts = UINT64_MAX;
    e.pid = 9;
    must(stave_trace_writer_push_event(w, &e) == 0);
    must(stave_trace_writer_flush(w, NULL) == 0);
    stave_trace_writer_close(w);
}

enum { THREADS = 8, EACH = 2000 };

static void *push_many(void *writer)
{
    for (int i = 0; i < EACH; i++)
        stave_trace_writer_push(writer, "op", "thread", 0.001, (uint32_t)i % 32);
    return NULL;
}

static void threads(struct stave_trace_writer *w)
{
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        must(pthread_create(&t[i], NULL, push_many, w) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
}

/* Children of a process whose other threads write meanwhile; they end by _exit and have children
 * themselves. */
static void family(struct stave_trace_writer *w)
{
    pthread_t t;
    must(pthread_create(&t, NULL, push_many, w) == 0);
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            pid_t grandchild = fork();
            for (int k = 0; k < 100; k++)
                stave_trace_writer_push(w, grandchild ? "child" : "grandchild", "fork", 0.1, 2);
            if (grandchild)
                waitpid(grandchild, NULL, 0);
            _exit(0);
        }
        must(child > 0);
    }
    while (wait(NULL) > 0)
        ;
    pthread_join(t, NULL);
    stave_trace_writer_push(w, "parent", "fork", 0.1, 1);
}

/* Children that are killed while they write. What a push has returned for is in the file. */
static void killed(struct stave_trace_writer *w)
{
    _Atomic unsigned *n =
        mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(n != MAP_FAILED);
    for (int i = 0; i < 20; i++) {
        unsigned before = atomic_load(n);
        pid_t child = fork();
        must(child >= 0);
        for (int k = 0; child == 0 && k < 1000; k++)
            if (stave_trace_writer_push(w, "killed", "fork", 0.1, 2) == 0)
                atomic_fetch_add(n, 1);
        if (child == 0)
            for (;;)
                pause();
        while (atomic_load(n) < before + 50 + (unsigned)i)
            sched_yield();
        kill(child, i % 2 ? SIGKILL : SIGTERM);
        waitpid(child, NULL, 0);
        must(stave_trace_writer_push(w, "parent", "fork", 0.1, 1) == 0);
    }
    printf("%u\n", atomic_load(n));
}

/* No file may grow past this: the event that does not fit is missing, the file stays whole, and the
 * program goes on. */
static void limited(struct stave_trace_writer *w)
{
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY};
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    int lost = 0;
    struct stave_error error;
    for (int i = 0; i < 2000; i++)
        lost += stave_trace_writer_push(w, "op", "limit", 0.1, 0) == STAVE_EOUTPUT;
    must(lost > 500 && stave_trace_writer_flush(w, &error) == STAVE_EOUTPUT);
    must(error.code == STAVE_EOUTPUT && error.os_error == EFBIG && strstr(error.text, "File too"));
}

/* Instead of libc's, for the library, too: a write that does only half of its work. */
static int tears; /* 0: no; SIGKILL: and the process is killed; else the errno that it gives */

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *buf, size_t nbytes,
                                                      off_t offset)
{
    size_t n = tears && nbytes > 1 ? nbytes / 2 : nbytes;
    ssize_t done = syscall(SYS_pwrite64, fd, buf, n, offset);
    if (!tears || nbytes == 1)
        return done;
    if (tears == SIGKILL)
        kill(getpid(), SIGKILL);
    errno = tears;
    return -1;
}

static void torn(struct stave_trace_writer *w)
{
    static const char *const longer = "longer";
    struct stave_error error;
    must(stave_trace_writer_push(w, "before", "torn", 0.1, 0) == 0); /* the first one: at once */
    must(stave_trace_writer_push(w, longer, "torn", 0.1, 0) == 0);
    tears = ENOSPC;
    must(stave_trace_writer_flush(w, &error) == STAVE_EOUTPUT && error.os_error == ENOSPC);
    must(strstr(read_file("torn.json"), "longer") == NULL && strstr(text, "}]") != NULL);
    tears = 0;
    must(stave_trace_writer_push(w, "between", "torn", 0.1, 0) == 0);
    must(stave_trace_writer_flush(w, NULL) == 0); /* it has waited */
    pid_t child = fork();
    if (child == 0) {
        tears = SIGKILL;
        stave_trace_writer_push(w, longer, "torn", 0.1, 0);
        stave_trace_writer_flush(w, NULL);
    }
    must(child > 0 && waitpid(child, NULL, 0) == child);
    must(stave_trace_writer_flush(w, NULL) == 0); /* of the child, and puts the bracket back */
    must(strstr(read_file("torn.json"), "}]") != NULL);
    must(stave_trace_writer_push(w, "after", "torn", 0.1, 0) == 0);
}

/* A daemon: another directory, all descriptors closed, their numbers used again. Then somebody
 * empties the file, and removes it. */
static void daemon_like(struct stave_trace_writer *w)
{
    char absolute[4096];
    must(realpath("daemon.json", absolute));
    must(mkdir("elsewhere", 0777) == 0 && chdir("elsewhere") == 0);
    stave_trace_writer_push(w, "first", "daemon", 0.1, 0);
    close_range(3, ~0U, 0);
    int others[8];
    for (int i = 0; i < 8; i++)
        must((others[i] = open("others", O_RDWR | O_CREAT, 0666)) >= 3);
    must(stave_trace_writer_push(w, "second", "daemon", 0.1, 0) == 0);
    must(stave_trace_writer_flush(w, NULL) == 0);
    must(strstr(read_file(absolute), "first") && strstr(text, "second"));
    must(lseek(others[0], 0, SEEK_END) == 0);
    must(truncate(absolute, 0) == 0);
    must(stave_trace_writer_push(w, "third", "daemon", 0.1, 0) == 0);
    must(stave_trace_writer_flush(w, NULL) == 0);
    must(!strstr(read_file(absolute), "second") && strstr(text, "third"));
    must(unlink(absolute) == 0);
    must(stave_trace_writer_flush(w, NULL) == 0 && strcmp(read_file(absolute), "[]") == 0);
    must(unlink(absolute) == 0);
    if (fork() == 0) {
        stave_trace_writer_push(w, "child", "daemon", 0.1, 0);
        _exit(0);
    }
    wait(NULL);
    must(stave_trace_writer_push(w, "fourth", "daemon", 0.1, 0) == 0);
}

static void end_by(const char *way, struct stave_trace_writer *w)
{
    for (int i = 0; i < 100; i++)
        stave_trace_writer_push(w, "op", way, 0.1, 0);
    if (strcmp(way, "term") == 0)
        kill(getpid(), SIGTERM);
    else if (strcmp(way, "kill") == 0)
        kill(getpid(), SIGKILL);
    else if (strcmp(way, "abort") == 0)
        abort();
    else if (strcmp(way, "_exit") == 0)
        _exit(0);
    else if (strcmp(way, "exec") == 0)
        execl("/bin/true", "true", (char *)NULL);
}

/* A process that is started, not forked, with the same variable; its file is another one. */
static void start_other(const char *self)
{
    struct stave_trace_writer *w = stave_global_trace();
    must(w && w == stave_global_trace());
    stave_trace_writer_push(w, "one", "global", 0.1, 0);
    pid_t child = fork();
    if (child == 0)
        execl(self, self, "global", (char *)NULL);
    int status;
    must(waitpid(child, &status, 0) == child && status == 0);
    stave_trace_writer_push(w, "two", "global", 0.1, 0);
    stave_flush_global_trace();
}

static void global(void)
{
    stave_flush_global_trace(); /* before the first use */
    struct stave_trace_writer *w = stave_global_trace();
    stave_trace_writer_push(w, "other", "global", 0.1, 0);
    must(stave_trace_writer_from_env() == w); /* by the name that it got */
}

int main(int argc, char **argv)
{
    must(argc >= 2);
    const char *way = argv[1], *path = argc > 2 ? argv[2] : NULL;
    static const struct {
        const char *name;
        void (*with_path)(const char *path);
        void (*with_writer)(struct stave_trace_writer *w);
    } ways[] = {{"document", document, NULL}, {"odd", odd, NULL},
                {"threads", NULL, threads},   {"family", NULL, family},
                {"killed", NULL, killed},     {"limited", NULL, limited},
                {"torn", NULL, torn},         {"daemon", NULL, daemon_like}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(way, ways[i].name) != 0)
            continue;
        if (ways[i].with_path) {
            ways[i].with_path(path);
            return 0;
        }
        struct stave_trace_writer *w = stave_trace_writer_open(path);
        ways[i].with_writer(w);
        stave_trace_writer_close(w);
        return 0;
    }
    if (strcmp(way, "start_other") == 0) {
        start_other(argv[0]);
    } else if (strcmp(way, "global") == 0) {
        global();
    } else if (strcmp(way, "unwritable") == 0) {
        struct stave_trace_writer *w = stave_trace_writer_open(path);
        must(stave_trace_writer_is_enabled(w));
        must(stave_trace_writer_push(w, "op", "none", 0.1, 0) < 0);
        must(stave_trace_writer_flush(w, NULL) < 0);
        stave_trace_writer_close(w);
    } else {
        end_by(way, stave_trace_writer_open(path));
    }
    return 0;
}
