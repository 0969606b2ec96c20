/* paced WORD…: does what the words say, one after the other: NAME=MS*N is N slices of MS
 * milliseconds, `queue=V` a value of a counter, `rest=MS` nothing, `until=FILE` waits until the
 * file is there, inside a slice called `held`; `exit=CODE` and `kill=SIGNAL` end the program. For
 * triggers. */
#include <stave/stave.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void rest(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static long number(const char *text)
{
    return strtol(text, NULL, 10);
}

static void slice(const char *name, long ms)
{
    if (strcmp(name, "step") == 0)
        STAVE_BEGIN("train", "step");
    else if (strcmp(name, "request") == 0)
        STAVE_BEGIN("serve", "request");
    else
        STAVE_BEGIN("train", "load batch");
    rest(ms);
    STAVE_END("train");
}

static void until(const char *path)
{
    STAVE_BEGIN("train", "held");
    while (access(path, F_OK) != 0)
        rest(5);
    STAVE_END("train");
}

static void end_by(int number)
{
    stave_flush();
    signal(number, SIG_DFL);
    raise(number);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        char name[32] = "";
        const char *value = strchr(argv[i], '=');
        if (!value)
            return 2;
        snprintf(name, sizeof name, "%.*s", (int)(value - argv[i]), argv[i]);
        const char *times = strchr(++value, '*');
        long n = times ? number(times + 1) : 1;
        if (strcmp(name, "queue") == 0)
            STAVE_COUNTER("train", "queue", number(value));
        else if (strcmp(name, "rest") == 0)
            rest(number(value));
        else if (strcmp(name, "until") == 0)
            until(value);
        else if (strcmp(name, "exit") == 0)
            return (int)number(value);
        else if (strcmp(name, "kill") == 0)
            end_by((int)number(value));
        else
            for (long k = 0; k < n; k++)
                slice(name, number(value));
    }
    return 0;
}
