/* itt_play [MODE]: a program with an ITT part of its own making, which does what the public one
 * does: a list of pointers, the library that INTEL_LIBITTNOTIFY64 names, one call of its
 * __itt_api_init(). Then tasks, frames, counters and the rest, some of them wrong. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/itt/itt_abi.h"

#define POINTER(type, name, params) static type(*name##_) params;
ITT_FUNCTIONS(POINTER)

static int without;                    /* its address represents the program's own functions */
static void *sync_prepare_ = &without; /* one that the collector does not have */

#define ROW(type, name, params) {"__itt_" #name, (void **)&name##_, NULL, NULL, 1},
static struct itt_api list[] = {
    ITT_FUNCTIONS(ROW){"__itt_sync_prepare", &sync_prepare_, NULL, NULL, 1},
    {NULL, NULL, NULL, NULL, 0}};
static struct itt_part part = {.magic = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30},
                               .major = 3,
                               .mutex = PTHREAD_MUTEX_INITIALIZER,
                               .list = list};
static const struct itt_id none;
static struct itt_domain *d;

static struct itt_id id(unsigned long long a, unsigned long long b)
{
    return (struct itt_id){a, b, 0};
}

static struct itt_string *text(const char *s)
{
    return string_handle_create_(s);
}

static void check(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "not so: %s\n", what);
        exit(3);
    }
}

static void *ends_elsewhere(void *arg)
{
    (void)arg;
    thread_set_name_("helper");
    task_begin_(d, none, none, text("helper task"));
    task_end_(d);
    task_end_overlapped_(d, id(1, 1));
    return NULL;
}

static void steps(void)
{
    for (unsigned long long i = 0; i < 3; i++) {
        double weights[] = {1.5, 2.5, 3.5};
        short small = -7;
        frame_begin_v3_(d, NULL);
        task_begin_(d, id(7, i), none, text("step"));
        metadata_add_(d, none, text("index"), ITT_U64, 1, &i);
        metadata_add_(d, id(7, i), text("weights"), ITT_DOUBLE, 3, weights);
        metadata_add_with_scope_(d, ITT_TASK, text("small"), ITT_S16, 1, &small);
        metadata_str_add_(d, none, text("label"), "a \"label\"", 0);
        metadata_str_add_(d, none, text("cut"), "abcdef", 3);
        if (i)
            relation_add_to_current_(d, 1, id(7, i - 1));
        marker_(d, none, text("here"), ITT_TASK);
        task_end_(d);
        frame_end_v3_(d, NULL);
    }
    marker_(d, none, text("everywhere"), ITT_GLOBAL);
    metadata_str_add_with_scope_(d, ITT_GLOBAL, text("build"), "release", 0);
}

static void counters(void)
{
    struct itt_counter *n = counter_create_("queue length", "com.example");
    struct itt_counter *loss = counter_create_typed_("loss", "com.example", ITT_FLOAT);
    float f = 0.25F;
    check(n && n == counter_create_("queue length", "com.example"), "one counter per name");
    counter_inc_(n);
    counter_inc_delta_(n, 9);
    counter_dec_(n);
    counter_set_value_(loss, &f);
    counter_inc_delta_v3_(d, text("tokens"), 100);
    counter_dec_v3_(d, text("tokens"));
    counter_destroy_(n);
}

static void overlapping(void)
{
    pthread_t thread;
    task_begin_overlapped_(d, id(1, 1), none, text("ended elsewhere"));
    task_begin_overlapped_(d, id(1, 2), id(1, 1), text("overlapping"));
    region_begin_(d, id(2, 1), none, text("region"));
    check(pthread_create(&thread, NULL, ends_elsewhere, NULL) == 0, "a thread");
    pthread_join(thread, NULL);
    metadata_str_add_(d, id(1, 2), text("note"), "while open", 0);
    task_end_overlapped_(d, id(1, 2));
    region_end_(d, id(2, 1));
    task_begin_overlapped_(d, id(1, 3), none, text("never ended"));
    unsigned long long now = get_timestamp_();
    frame_submit_v3_(d, NULL, now - 1000000, now);
    int event = event_create_("old event", 9);
    check(event > 0 && event == event_create_("old event and more", 9), "one event per name");
    event_start_(event);
    event_end_(event);
    check(mark_(mark_create_("old mark"), "parameter") == 0, "a mark");
}

/* What a program must not do, and what it may do that is odd. */
static void wrong(void)
{
    task_end_(d);
    task_end_overlapped_(d, id(99, 99));
    region_end_(NULL, none);
    frame_end_v3_(d, NULL);
    task_begin_(d, none, none, NULL);
    task_end_(NULL);
    metadata_add_(d, none, text("key"), 77, 1, &without);
    metadata_add_(d, none, text("key"), ITT_U64, 1, NULL);
    metadata_str_add_(d, none, text("key"), NULL, 5);
    counter_inc_(NULL);
    counter_set_value_(NULL, NULL);
    relation_add_(d, none, 1000, none);
    check(mark_(12345, NULL) == -1 && event_start_(-1) == 0 && event_end_(-1) == 0,
          "no such number");
    check(!domain_create_(NULL) && !string_handle_create_(NULL), "no name");
    for (int i = 0; i < 500; i++)
        task_begin_(d, none, none, text("deep"));
    for (int i = 0; i < 500; i++)
        task_end_(d);
    for (int i = 0; i < 100; i++)
        task_begin_overlapped_(d, id(3, (unsigned long long)i), none, text("many"));
    for (int i = 0; i < 100; i++)
        task_end_overlapped_(d, id(3, (unsigned long long)i));
    task_begin_overlapped_(d, id(4, 4), none, text("twice"));
    task_begin_overlapped_(d, id(4, 4), none, text("twice"));
    task_end_overlapped_(d, id(4, 4));
    d->flags = 0;
    task_begin_(d, none, none, text("of a domain that is off"));
    task_end_(d);
    d->flags = 1;
    pause_();
    task_begin_(d, none, none, text("paused"));
    resume_();
    task_end_(d);
}

int main(int argc, char **argv)
{
    void *library = dlopen(getenv("INTEL_LIBITTNOTIFY64"), RTLD_LAZY);
    void (*init)(struct itt_part *, int);
    check(library != NULL, "the library");
    *(void **)&init = dlsym(library, "__itt_api_init");
    check(init != NULL, "the library exports __itt_api_init");
    if (argc > 1 && strcmp(argv[1], "old") == 0) { /* a list that it does not know stays as it is */
        part.major = 2;
        init(&part, -1);
        init(NULL, -1);
        check(!task_begin_ && sync_prepare_ == &without, "untouched");
        return 0;
    }
    init(&part, -1);
    check(task_begin_ && !sync_prepare_, "what it has, and what it has not");
    d = domain_create_("com.example");
    check(d && d->flags && d == domain_create_("com.example"), "one domain per name");
    const struct itt_string *once = text("step"), *again = text("step");
    check(once == again, "one handle per text");
    steps();
    counters();
    overlapping();
    wrong();
    return 0;
}
