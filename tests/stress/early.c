/* Slices with times of their own, some before zero and met late, as `stave_complete` takes them.
 * early [kill]: ends by SIGKILL. */
#include <signal.h>
#include <stave/stave.h>
#include <stdint.h>
#include <unistd.h>

static void slice(const char *name, int64_t start_ns, int64_t dur_ns)
{
    struct stave_event e = {.size = sizeof e,
                            .kind = STAVE_KIND_COMPLETE,
                            .name = name,
                            .start_ns = start_ns,
                            .dur_ns = dur_ns};
    stave_emit(&e);
}

int main(int argc, char **argv)
{
    (void)argv;
    slice("zero", 1000, 500);
    stave_flush();
    slice("early", -5000, 100);
    stave_flush();
    slice("earlier", -123456789, 1000);
    slice("no time", INT64_MAX - 10, 100);
    slice("after", 9000, 10);
    stave_flush();
    if (argc > 1)
        kill(getpid(), SIGKILL);
    return 0;
}
