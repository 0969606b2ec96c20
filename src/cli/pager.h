/* A stream that turns into the user's pager when more comes than the terminal is high.
 *
 *     struct sv_pager *p = sv_pager_open();
 *     … fprintf(sv_pager_file(p), …) …
 *     sv_pager_close(p);        // waits until the user has left the pager
 *
 * Short results go directly to standard output. Without any result no pager is started. */
#pragma once

#include <stdio.h>

struct sv_pager;

struct sv_pager *sv_pager_open(void); /* NULL: standard output is no terminal, or $PAGER is empty */
FILE *sv_pager_file(struct sv_pager *p);
void sv_pager_close(struct sv_pager *p);
