/* copies PLUGIN-A PLUGIN-B STEPS: a program that loads and unloads plugins, each with a copy of the
 * library or with the shared one (hostile_host.sh). With COPIES_HOST it is traced itself. Each step
 * is a letter:
 *
 *   h     100 events of the program      a, b  load A, B      x, y  100 events in A, B      A, B  unload
 *       A, B
 *   t     a thread with 100 events in A, which ends only at the end of the program
 *   f     a forked child with 100 events in A (and 100 of the program), which ends by exit */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef COPIES_HOST
#include <stave/stave.h>
#endif

enum { EVENTS = 100, EXIT = 7 };

static uint64_t emitted;
static void *loaded[2];
static void (*work[2])(int n);
static pthread_mutex_t until_end = PTHREAD_MUTEX_INITIALIZER;
static int has_worked[2]; /* a pipe */

static void host(void)
{
#ifdef COPIES_HOST
    for (int i = 0; i < EVENTS; i++)
        STAVE_INSTANT("host", "in host", "i", i);
    emitted += EVENTS;
#endif
}

static void plugin(int i)
{
    work[i](EVENTS);
    emitted += EVENTS;
}

static void load(int i, const char *path)
{
    const char *is_global = getenv("COPIES_GLOBAL");
    loaded[i] = dlopen(path, RTLD_NOW | (is_global && *is_global ? RTLD_GLOBAL : RTLD_LOCAL));
    void *f = loaded[i] ? dlsym(loaded[i], "plugin_work") : NULL;
    if (!f) {
        printf("%s\n", dlerror());
        exit(1);
    }
    *(void **)&work[i] = f;
}

static void *in_thread(void *arg)
{
    plugin(0);
    if (write(has_worked[1], "", 1) != 1)
        return arg;
    pthread_mutex_lock(&until_end);
    pthread_mutex_unlock(&until_end);
    return NULL;
}

static pthread_t start_thread(void)
{
    pthread_t t;
    char byte;
    if (pipe(has_worked) != 0 || pthread_create(&t, NULL, in_thread, NULL) != 0 ||
        read(has_worked[0], &byte, 1) != 1)
        exit(1);
    return t;
}

static void fork_child(void)
{
    uint64_t before = emitted;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        host();
        plugin(0);
        exit(0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    printf("child: %d\n", status);
    emitted = before + EVENTS;
#ifdef COPIES_HOST
    emitted += EVENTS;
#endif
}

int main(int argc, char **argv)
{
    pthread_t thread = 0;
    if (argc != 4)
        return 2;
    pthread_mutex_lock(&until_end);
    for (const char *s = argv[3]; *s; s++) {
        int i = *s == 'b' || *s == 'B' || *s == 'y';
        switch (*s) {
        case 'h': host(); break;
        case 'a':
        case 'b': load(i, argv[1 + i]); break;
        case 'x':
        case 'y': plugin(i); break;
        case 'A':
        case 'B': printf("unload %c: %d\n", *s, dlclose(loaded[i])); break;
        case 't': thread = start_thread(); break;
        case 'f': fork_child(); break;
        default: return 2;
        }
    }
    pthread_mutex_unlock(&until_end);
    if (thread)
        pthread_join(thread, NULL);
    printf("emitted %llu\n", (unsigned long long)emitted);
    return EXIT;
}
