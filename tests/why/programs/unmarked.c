/* A loop that nobody marked: each turn reads a record, computes and appends a line; with `slow` it
 * syncs the log, too. */
#include "truth.h"

enum { TURNS = 80 };

__attribute__((noinline)) static void append(int fd, int slow)
{
    static const char line[] = "a turn has ended\n";
    int64_t end = why_now() + 15000000;
    do {
        if (write(fd, line, sizeof line - 1) < 0 || (slow && fsync(fd) != 0))
            abort();
    } while (slow && why_now() < end);
}

int main(int argc, char **argv)
{
    int slow = argc > 1 && strcmp(argv[1], "slow") == 0;
    static char record[65536];
    struct why w = {0};
    int64_t waited = 0;
    int data = why_file("records.bin", O_CREAT | O_RDWR);
    int log = why_file("turns.log", O_CREAT | O_WRONLY | O_APPEND);
    for (int i = 0; i < 16; i++)
        if (write(data, record, sizeof record) < 0)
            abort();
    why_begin(&w);
    for (int i = 0; i < TURNS; i++) {
        if (pread(data, record, sizeof record, i % 16 * (off_t)sizeof record) < 0)
            abort();
        why_spin_ms(slow ? 10 : 25);
        int64_t begin = why_now();
        append(log, slow);
        waited += why_now() - begin;
    }
    why_end(&w);
    if (slow)
        why_cause(&w, "\"disk\"", waited, "\"path\": \"turns.log\"");
    why_write(&w, "loop", TURNS, 0);
}
