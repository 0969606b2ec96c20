/* features SCENE: parts of the API whose result a script reads in the file. */
#define STAVE_CATEGORY "fn"
#include <pthread.h>
#include <stave/stave.h>
#include <stdio.h>
#include <string.h>

static int evaluated;

static int expensive(void)
{
    return ++evaluated;
}

/* Overlapping operations: a row for each number, the same one ever after. */
static int scene_async(void)
{
    stave_track_t rows[3];
    for (uint64_t i = 0; i < 3; i++)
        rows[i] = stave_async(STAVE_PROCESS, "request", 100 + i);
    for (int i = 0; i < 3; i++)
        STAVE_BEGIN_ON(rows[i], "req", "serve", "id", i);
    STAVE_INSTANT_ON(rows[1], "req", "half way");
    for (int i = 0; i < 3; i++) /* first in, first out: on one row this would not nest */
        STAVE_END_ON(rows[i], "req", "status", 200 + i);
    return stave_async(STAVE_PROCESS, "request", 101) != rows[1] || rows[0] == rows[1];
}

static int scene_crossing(void)
{
    /* Slices measured elsewhere that cross each other, on one track. */
    stave_track_t dma = stave_track(STAVE_PROCESS, "dma");
    int64_t now = stave_now_ns() - 1000000;
    stave_complete(dma, "copy", "a", now, 5000, "i", 1);
    stave_complete(dma, "copy", "b", now + 3000, 5000, "i", 2);
    stave_complete(dma, "copy", "c", now + 1000, 1000, "i", 3);
    return 0;
}

static int scene_order(void)
{
    stave_track_t group = stave_track(STAVE_ROOT, "ordered");
    const char *const names[] = {"last", "first", "middle"};
    const int64_t orders[] = {30, -5, 7};
    for (int i = 0; i < 3; i++) {
        stave_track_t t = stave_track(group, names[i]);
        stave_set_track_order(t, orders[i]);
        STAVE_INSTANT_ON(t, "c", "here");
    }
    /* Any depth; counters in groups. */
    stave_track_t t = STAVE_PROCESS;
    for (int i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "level %d", i);
        t = stave_track(t, name);
    }
    STAVE_COUNTER_ON(stave_counter(t, "deep", "bytes"), "c", (uint64_t)7);
    stave_track_t first = stave_track(group, "first"), again = stave_track(group, "first");
    return first != again;
}

static int scene_source(void) /* STAVE_SOURCE=1 */
{
    STAVE_SCOPE("c", "outer");
    STAVE_INSTANT("c", "inner", "v", 1);
    return 0;
}

static int scene_categories(void) /* STAVE_CATEGORIES=net.*,-net.noise */
{
    STAVE_INSTANT("net.tcp", "on");
    STAVE_INSTANT("net.noise", "off", "v", expensive());
    STAVE_INSTANT("disk", "off", "v", expensive());
    int failed = evaluated != 0 || !stave_enabled("net.tcp") || stave_enabled("disk");
    stave_set_categories("d?sk");
    for (int i = 0; i < 2; i++)
        STAVE_INSTANT("disk", "on later", "v", expensive());
    STAVE_INSTANT("net.tcp", "off");
    stave_set_categories("-disk");
    STAVE_INSTANT("net.tcp", "on again");
    STAVE_INSTANT("disk", "off", "v", expensive());
    return failed || evaluated != 2 || stave_enabled("disk") || !stave_enabled("x");
}

enum mode { TRAIN, EVAL };
static const char *const mode_names[] = {"train", "eval"};

static int with_args(int a, const char *b, double c)
{
    STAVE_FUNC_ARGS(a, b, c);
    if (a > 1)
        return 1; /* early return ends the slice */
    goto out;
out:
    return 0;
}

static int scene_arguments(void)
{
    int x = 5;
    enum mode mode = EVAL;
    STAVE_INSTANT("a", "all", "int", -7, "uint", UINT64_MAX, "double", 0.5, "bool", (bool)true,
                  "text", "quote \" and\n", "pointer", (void *)0x1234, "enum",
                  stave_enum(mode, mode_names, 2), "char", (char)65, "float", 0.25f, "null",
                  (const char *)NULL);
    char name[32];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "dynamic %d", i);
        STAVE_SCOPE_DYN("a", name, "i", i);
        STAVE_INSTANT_DYN("a", name);
    }
    struct stave_args args;
    stave_args_init(&args);
    stave_args_list(&args, "long");
    for (int i = 0; i < 300; i++)
        stave_args_int(&args, NULL, i);
    stave_args_end(&args);
    stave_args_dict(&args, "nested");
    stave_args_dict(&args, "deeper");
    stave_args_text(&args, "k", "v");
    stave_args_end(&args);
    stave_args_end(&args);
    STAVE_INSTANT("a", "built", "args", &args);
    stave_args_init(&args);
    stave_args_limit(&args, 3);
    stave_args_list(&args, "short");
    for (int i = 0; i < 10; i++)
        stave_args_int(&args, NULL, i);
    stave_args_end(&args);
    STAVE_INSTANT("a", "limited", "args", &args);
    STAVE_BEGIN("a", "by hand", "x", x);
    STAVE_END("a", "result", x + 1);
    with_args(1, "one", 1.5);
    with_args(2, "two", 2.5);
    STAVE_COUNTER("a", "level", 1.5);
    STAVE_COUNTER_ADD("a", "sum", 3);
    STAVE_COUNTER_ADD("a", "sum", 4);
    return 0;
}

static uint64_t handed_over[8];

static void *receive(void *arg)
{
    (void)arg;
    STAVE_SCOPE("f", "gather", STAVE_FLOW_IN, handed_over[0], STAVE_FLOW_IN, handed_over[1],
                STAVE_FLOW_IN, handed_over[2]);
    return NULL;
}

static int scene_flows(void) /* fan-out, fan-in, another thread */
{
    for (int i = 0; i < 3; i++)
        handed_over[i] = stave_flow_new();
    {
        STAVE_SCOPE("f", "scatter", STAVE_FLOW_OUT, handed_over[0], STAVE_FLOW_OUT, handed_over[1],
                    STAVE_FLOW_OUT, handed_over[2]);
    }
    pthread_t t;
    if (pthread_create(&t, NULL, receive, NULL) != 0)
        return 1;
    return pthread_join(t, NULL);
}

/* Names of threads, processes and tracks: as given, and marked where they are cut. */
static int scene_names(void)
{
    char longer[1200];
    struct stave_error error;
    memset(longer, 'n', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    stave_set_process_name("the service");
    stave_set_thread_name("a thread with a name of more than 31 bytes");
    STAVE_INSTANT("c", "named");
    STAVE_INSTANT_ON(stave_track(STAVE_PROCESS, longer), "c", "on a long name");
    return stave_start(NULL, &error) == 0 && error.code == STAVE_OK && !error.text[0] ? 0 : 1;
}

/* A start that fails, and why. */
static int scene_refused(void)
{
    struct stave_error error;
    struct stave_options nowhere = {.size = sizeof nowhere, .out = "/nowhere/x.pftrace"};
    struct stave_options large = {
        .size = sizeof large, .out = "x.pftrace", .buffer_bytes = SIZE_MAX};
    if (stave_start(&nowhere, &error) != STAVE_EOUTPUT || error.code != STAVE_EOUTPUT)
        return 1;
    puts(error.text);
    if (stave_start(&large, &error) != STAVE_EUSAGE || error.code != STAVE_EUSAGE)
        return 1;
    puts(error.text);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenes[] = {
    {"async", scene_async},   {"crossing", scene_crossing},     {"order", scene_order},
    {"source", scene_source}, {"categories", scene_categories}, {"arguments", scene_arguments},
    {"flows", scene_flows},   {"names", scene_names},           {"refused", scene_refused}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(argv[1], scenes[i].name) == 0)
            return scenes[i].run();
    return 2;
}
