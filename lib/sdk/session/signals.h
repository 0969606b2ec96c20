/* The end of the program by SIGTERM, SIGINT or SIGHUP, where it has the default action.
 *
 *     sv_signals_begin, once a writer runs → sv_signals_end
 *
 * Without a handler such a signal ends the program between two rounds of the writer, and the file
 * is left to `stave recover`. The handler asks the writer for its end, waits for it at most half a
 * second, and lets the signal do what it does by default. A handler that the program installs later
 * takes its place. STAVE_SIGNALS=0 switches it off. */
#pragma once

#include <signal.h>

void sv_signals_begin(void);
void sv_signals_end(void);

/* Around what must not be left half done, in the calling thread: they come afterwards. */
void sv_signals_hold(sigset_t *mask);
void sv_signals_release(const sigset_t *mask);
