/* idle BURST FILE: is idle until the writer's thread is, emits BURST events, is idle again, emits
 * them again, and writes how often the writer's thread gave up its CPU in each last idle second.
 * Then, idle again, it sends itself a signal that all its threads block: exit code 3 if that is not
 * there afterwards. For idle.sh. */
#include <dirent.h>
#include <signal.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long number_in(const char *path, const char *key)
{
    char line[256];
    long n = -1;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0)
            n = strtol(line + strlen(key), NULL, 10);
    if (f)
        fclose(f);
    return n;
}

static long writer_switches(void)
{
    char path[300], name[32];
    long n = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof name, f) && strcmp(name, "stave-writer\n") == 0) {
            snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
            n = number_in(path, "voluntary_ctxt_switches:");
        }
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return n;
}

/* How many in the last second of at most twenty. */
static long idle(void)
{
    long n = 0, before = writer_switches();
    for (int i = 0; i < 20; i++) {
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        long now = writer_switches();
        n = now - before;
        before = now;
        if (n <= 5)
            break;
    }
    return n;
}

int main(int argc, char **argv)
{
    long burst = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    FILE *out = argc > 2 ? fopen(argv[2], "w") : stdout;
    sigset_t urgent;
    sigemptyset(&urgent);
    sigaddset(&urgent, SIGURG);
    sigprocmask(SIG_BLOCK, &urgent, NULL);
    STAVE_INSTANT("idle", "start");
    for (int round = 0; round < 2; round++) {
        fprintf(out, "%ld\n", idle());
        for (long i = 0; i < burst; i++)
            STAVE_INSTANT("idle", "event");
    }
    fclose(out);
    idle();
    kill(getpid(), SIGURG);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGURG) ? 0 : 3;
}
