/* One line on stderr, from any library that links say.c: what went wrong, and what that means for the trace. */
#ifndef SV_SDK_SAY_H
#define SV_SDK_SAY_H

void sv_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Is called with the text of every line, in the thread that says it. NULL: nobody. */
extern void (*_Atomic sv_say_listener)(const char *text);

#endif
