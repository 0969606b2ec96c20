/* steps KIND PROGRESS: records a known number of events, then, between two SIGTRAPs that it sends
 * to itself, does one thing of KIND. Run by stepper.c, which kills it at a chosen instruction
 * between the two. PROGRESS (mapped) holds what had been recorded before: instants, begins, ends,
 * counters, and the time when it all began, 8 bytes each. */
#include <fcntl.h>
#include <signal.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { INSTANTS, BEGINS, ENDS, COUNTERS, START_NS, N_WORDS };
enum { WARM = 5 };

static volatile uint64_t *done;

static void instant(uint64_t i)
{
    STAVE_INSTANT("seq", "n", "thread", 0, "seq", i);
    done[INSTANTS] = i + 1;
}

static void plain_begin(void)
{
    STAVE_BEGIN("slices", "plain");
}

static void plain_end(void)
{
    STAVE_END("slices");
}

static void with_text(uint64_t i)
{
    STAVE_INSTANT("seq", "n", "thread", 0, "seq", i, "text", "some text of a few words");
}

static void with_list(uint64_t i)
{
    struct stave_args args;
    stave_args_init(&args);
    stave_args_int(&args, "thread", 0);
    stave_args_int(&args, "seq", (int64_t)i);
    stave_args_list(&args, "list");
    stave_args_int(&args, NULL, 1);
    stave_args_text(&args, NULL, "two");
    stave_args_end(&args);
    stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                     .kind = STAVE_KIND_INSTANT,
                                     .category = "seq",
                                     .name = "n",
                                     .args = &args});
}

static void counter(uint64_t i)
{
    STAVE_COUNTER("c", "level", i);
}

/* Every call place but the new one is used here before. */
static void warm_up(void)
{
    for (int k = 0; k < WARM; k++) {
        uint64_t i = done[INSTANTS];
        instant(i);
        with_text(i + 1);
        done[INSTANTS] = i + 2;
        with_list(i + 2);
        done[INSTANTS] = i + 3;
        plain_begin();
        done[BEGINS]++;
        plain_end();
        done[ENDS]++;
        counter(i);
        done[COUNTERS]++;
    }
}

static void new_site(void)
{
    STAVE_INSTANT("other", "of a site that nobody has used", "i", 1);
}

static void one(const char *kind)
{
    uint64_t i = done[INSTANTS];
    if (strcmp(kind, "instant") == 0)
        instant(i);
    else if (strcmp(kind, "begin") == 0)
        plain_begin();
    else if (strcmp(kind, "end") == 0)
        plain_end();
    else if (strcmp(kind, "text") == 0)
        with_text(i);
    else if (strcmp(kind, "list") == 0)
        with_list(i);
    else if (strcmp(kind, "counter") == 0)
        counter(i);
    else if (strcmp(kind, "site") == 0)
        new_site();
    else if (strcmp(kind, "flush") == 0)
        stave_flush();
    else if (strcmp(kind, "stop") == 0)
        stave_stop();
    else
        exit(2);
}

int main(int argc, char **argv)
{
    struct timespec ts;
    if (argc != 3)
        return 2;
    int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        return 2;
    done = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (done == MAP_FAILED)
        return 2;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    done[START_NS] = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    warm_up();
    if (strcmp(argv[1], "end") == 0) {
        plain_begin();
        done[BEGINS]++;
    }
    stave_flush();
    warm_up();
    raise(SIGTRAP);
    one(argv[1]);
    raise(SIGTRAP);
    return 0;
}
