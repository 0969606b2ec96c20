/* `stave recover` for the files of ferrum's writer (stave/trace_writer.h): the events that a
 * killed program had not written yet go to the end of its file, which stays in its place. */
#pragma once

#include "cli/command.h"
#include "core/base/err.h"

struct sv_recover_events {
    bool keep, dry_run; /* recovery */
    bool yes;           /* cleaning */
    const struct sv_words *discard;
};

/* Are there some of the file `name`, or is it a folder of events? */
bool sv_recover_events_has(const char *name);
/* Completes the file. Returns 0 or the first error. */
int sv_recover_events(const struct sv_recover_events *r, const char *name, struct sv_err *err);
/* Prints all of them; returns how many there are. */
size_t sv_recover_events_list(void);
/* The same for --clean; *n_removable grows by those that may be removed. */
size_t sv_recover_events_clean(const struct sv_recover_events *r, size_t *n_removable);
