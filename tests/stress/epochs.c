/* epochs STEPS [FILE]: one long slice, a counter that is set once, and many short steps inside;
 * with FILE until it is there. For recordings in several files. */
#include <stave/stave.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
    STAVE_COUNTER("train", "rate", 7);
    STAVE_BEGIN("train", "epoch", "number", 1);
    for (long i = 0; argc > 2 ? access(argv[2], F_OK) != 0 : i < steps; i++) {
        STAVE_BEGIN("train", "step", "i", i);
        for (int k = 0; k < 500; k++)
            STAVE_INSTANT("train", "sample", "k", k);
        if (argc > 2)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        STAVE_END("train");
    }
    STAVE_END("train");
    return 0;
}
