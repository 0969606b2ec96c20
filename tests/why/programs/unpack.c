/* A child that unpacks something: it computes for the given time, or sleeps: unpack MS [asleep]. */
#include "truth.h"

int main(int argc, char **argv)
{
    int ms = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 40;
    if (argc > 2)
        why_sleep_ms(ms);
    else
        why_spin_ms(ms);
}
