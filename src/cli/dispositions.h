/* Signals that a failed write would send: the program gets an error instead; commands that it
 * starts get the signals as usual. */
#pragma once

void sv_dispositions_set(void);     /* SIGPIPE and SIGXFSZ are ignored from here on */
void sv_dispositions_restore(void); /* as they were: before another program is run */
