/* NVTX beyond the limits of the injection library, and in threads, children and shared objects:
 * nvtx_limits SCENE [FILE]. */
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* More names than are remembered: the rest travel as text. */
static void names(void)
{
    char name[32];
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof name, "name %d", i);
        nvtxRangePushA(name);
        nvtxRangePop();
    }
}

static void depth(void)
{
    for (int i = 0; i < 300; i++)
        nvtxRangePushA("deep");
    for (int i = 0; i < 300; i++)
        nvtxRangePop();
    nvtxRangePushA("after");
    nvtxRangePop();
}

static void *worker(void *arg)
{
    char name[32];
    snprintf(name, sizeof name, "worker %d", (int)(size_t)arg);
    for (int i = 0; i < 2000; i++) {
        nvtxRangePushA(name);
        nvtxRangeId_t id = nvtxRangeStartA("shared");
        nvtxMarkA("tick");
        nvtxRangeEnd(id);
        nvtxRangePop();
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[4];
    for (size_t i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, worker, (void *)i);
    for (size_t i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

static void forked(void)
{
    nvtxRangePushA("before the fork");
    nvtxRangeId_t id = nvtxRangeStartA("range of the parent");
    pid_t child = fork();
    if (child == 0) {
        nvtxRangePushA("in the child");
        nvtxRangePop();
        exit(0);
    }
    waitpid(child, NULL, 0);
    nvtxRangeEnd(id);
    nvtxRangePop();
}

/* A shared object brings its own copy of NVTX, which asks for the injection again. */
static int objects(const char *path)
{
    nvtxRangePushA("in the program");
    void *object = dlopen(path, RTLD_NOW);
    if (!object) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void (*work)(void);
    void *symbol = dlsym(object, "work_in_object");
    memcpy(&work, &symbol, sizeof work);
    work();
    nvtxRangePop();
    return 0;
}

/* Both ends of a domain in one shared object and in the program. */
static void chained(void)
{
    nvtxDomainHandle_t d = nvtxDomainCreateA("domain");
    nvtxEventAttributes_t a = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
    a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    a.message.registered = nvtxDomainRegisterStringA(d, "text");
    nvtxDomainRangePushEx(d, &a);
    nvtxDomainRangePop(d);
    nvtxDomainRangeEnd(d, nvtxDomainRangeStartEx(d, &a));
    nvtxRangePushA("plain");
    nvtxRangePop();
}

int main(int argc, char **argv)
{
    const char *scene = argc > 1 ? argv[1] : "";
    if (strcmp(scene, "names") == 0)
        names();
    else if (strcmp(scene, "depth") == 0)
        depth();
    else if (strcmp(scene, "threads") == 0)
        threads();
    else if (strcmp(scene, "fork") == 0)
        forked();
    else if (strcmp(scene, "chain") == 0)
        chained();
    else if (strcmp(scene, "objects") == 0 && argc > 2)
        return objects(argv[2]);
    else
        return 2;
    return 0;
}
