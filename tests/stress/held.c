/* A program that records N events, says "half", waits for its standard input to be closed or
 * written to, and records N more (held N [ROOT]: after changing its root directory to that). For
 * moved.sh and shared_out.sh, which change the world around it meanwhile. */
#include <stave/stave.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void emit(int n)
{
    for (int i = 0; i < n; i++)
        STAVE_INSTANT("seq", "n", "seq", i);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    emit(n);
    stave_flush();
    puts("half");
    fflush(stdout);
    getchar();
    if (argc > 2 && (chdir(argv[2]) != 0 || chroot(".") != 0))
        return 9;
    emit(n);
    return 0;
}
