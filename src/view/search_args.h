/* Arguments that hold a text: which lists of them do, and which argument it is. For /api/search. */
#pragma once

#include "core/stream/batch.h"
#include "store/trace.h"

#include <pthread.h>

struct sv_arg_search {
    const struct sv_trace *t;
    const char *text;
    bool is_glob, is_number; /* a whole number: `number`, as it is written */
    int64_t number;
    const uint8_t *is_match; /* by string of the dictionary: the text is in it */
    uint64_t *seen;          /* by a part of the list's number: that, and whether it is a hit */
    struct sv_args_search lists;
    struct sv_batch scratch;
};

/* `is_match` and `text` are borrowed. */
void sv_arg_search_init(struct sv_arg_search *s, const struct sv_trace *t, const char *text,
                        const uint8_t *is_match);
void sv_arg_search_fini(struct sv_arg_search *s);

/* A key of the list or a value contains the text, or matches it as a glob; a number equals it. */
bool sv_arg_search_has(struct sv_arg_search *s, uint32_t handle);
/* The first such argument, valid until the next call; NULL: none. *key: the one it has, or that of
 * the container it is in. */
const struct sv_arg *sv_arg_search_find(struct sv_arg_search *s, uint32_t handle, sv_str *key);

/* The slices whose arguments hold the text that was asked for last: who looks for a text asks
 * twice, for the list and for the next one. */
struct sv_arg_hits {
    pthread_mutex_t lock;
    char *text;     /* NULL: nothing yet */
    uint64_t *rows; /* a bit for each slice */
};
void sv_arg_hits_init(struct sv_arg_hits *f);
void sv_arg_hits_fini(struct sv_arg_hits *f);
/* With the lock, as long as they are used. By all CPUs. */
const uint64_t *sv_arg_hits_rows(struct sv_arg_hits *f, const struct sv_trace *t, const char *text,
                                 const uint8_t *is_match);
