/* Comparing tallies: see held.h. Called by `stave recover` before it removes anything, also for the
 * spool of `stave listen`. */
#include "files/held.h"

#include "cli/console.h"
#include "files/open.h"

#include <stdio.h>

enum { SLICES, INSTANTS, VALUES, LOST, N_HELD };

static const char *const names[N_HELD] = {"slices", "instants", "counter values", "lost events"};

static uint64_t number(const struct sv_tally *t, int kind)
{
    switch (kind) {
    case SLICES: return t->by_kind[SV_BEGIN] + t->by_kind[SV_SLICE];
    case INSTANTS: return t->by_kind[SV_INSTANT];
    case VALUES: return t->by_kind[SV_COUNTER];
    default: return t->lost;
    }
}

void sv_tally_add(struct sv_tally *t, const struct sv_tally *more)
{
    for (size_t i = 0; i < sizeof t->by_kind / sizeof *t->by_kind; i++)
        t->by_kind[i] += more->by_kind[i];
    t->events += more->events;
    t->lost += more->lost;
}

struct sv_tally sv_tally_since(const struct sv_tally *t, const struct sv_tally *before)
{
    struct sv_tally d = *t;
    for (size_t i = 0; i < sizeof d.by_kind / sizeof *d.by_kind; i++)
        d.by_kind[i] -= before->by_kind[i];
    d.events -= before->events;
    d.lost -= before->lost;
    return d;
}

uint64_t sv_tally_held(const struct sv_tally *t)
{
    uint64_t sum = 0;
    for (int i = 0; i < N_HELD; i++)
        sum += number(t, i);
    return sum;
}

bool sv_tally_holds(const struct sv_tally *whole, const struct sv_tally *part, char *what,
                    size_t size)
{
    char has[32], needs[32];
    for (int i = 0; i < N_HELD; i++)
        if (number(whole, i) < number(part, i)) {
            snprintf(what, size, "%s of %s %s", sv_human_count(has, number(whole, i)),
                     sv_human_count(needs, number(part, i)), names[i]);
            return false;
        }
    return true;
}

char *sv_tally_text(const struct sv_tally *t, char *text, size_t size)
{
    size_t at = 0;
    char count[32];
    snprintf(text, size, "no events");
    for (int i = 0; i < N_HELD; i++)
        if (number(t, i) > 0 && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s %s", at ? ", " : "",
                                   sv_human_count(count, number(t, i)), names[i]);
    return text;
}

int sv_tally_file(const char *path, struct sv_tally *t, struct sv_err *err)
{
    struct sv_opened in;
    struct sv_dict *dict = sv_dict_new();
    *t = (struct sv_tally){0};
    struct sv_sink *counter = sv_tally_new(t, NULL);
    int code = sv_open_input(path, NULL, 0, dict, &in, err);
    if (code >= 0)
        code = sv_run_into(&in, counter, false, "checking", err);
    counter->close(counter, false, err);
    sv_opened_close(&in);
    sv_dict_free(dict);
    return code;
}
