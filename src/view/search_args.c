/* Arguments that hold a text: see search_args.h. Called by /api/search for the rows of a trace.
 *
 * Equal lists are stored once, so what was found out about a list is kept; the store looks through
 * most of them without decoding. Must not change the trace. */
#include "view/search_args.h"

#include "core/base/glob.h"
#include "core/base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Any case; neither text is terminated. */
static bool contains(const char *text, size_t len, const char *word)
{
    size_t n = strlen(word);
    int lower = tolower((unsigned char)*word), upper = toupper((unsigned char)*word);
    for (size_t i = 0; n && i + n <= len; i++)
        if ((text[i] == (char)lower || text[i] == (char)upper) &&
            strncasecmp(text + i, word, n) == 0)
            return true;
    return false;
}

static bool text_matches(const void *ctx, const char *text, size_t len)
{
    const struct sv_arg_search *s = ctx;
    return s->is_glob ? sv_glob_match(s->text, text, len) : contains(text, len, s->text);
}

void sv_arg_search_init(struct sv_arg_search *s, const struct sv_trace *t, const char *text,
                        const uint8_t *is_match)
{
    uint32_t most = 0;
    *s = (struct sv_arg_search){
        .t = t, .text = text, .is_glob = strpbrk(text, "*?") != NULL, .is_match = is_match};
    for (uint64_t row = 0; row < t->slices.n; row++)
        most = t->slices.args[row] > most ? t->slices.args[row] : most;
    char *end;
    errno = 0;
    s->number = strtoll(text, &end, 10);
    s->is_number = *text && !isspace((unsigned char)*text) && !*end && errno == 0;
    s->known = sv_alloc((size_t)most + 1);
    s->lists = (struct sv_args_search){.is_text_hit = text_matches,
                                       .ctx = s,
                                       .key_hits = is_match,
                                       .is_number = s->is_number,
                                       .number = s->number};
    sv_batch_init(&s->scratch);
}

void sv_arg_search_fini(struct sv_arg_search *s)
{
    free(s->known);
    free(s->lists.texts);
    free(s->lists.shapes);
    sv_batch_fini(&s->scratch);
}

static bool value_matches(const struct sv_arg_search *s, const struct sv_arg *a)
{
    if (a->type == SV_ARG_TEXT)
        return text_matches(s, a->text, a->size);
    bool is_whole = a->type == SV_ARG_INT || (a->type == SV_ARG_UINT && a->u <= INT64_MAX);
    return s->is_number && is_whole && a->i == s->number;
}

const struct sv_arg *sv_arg_search_find(struct sv_arg_search *s, uint32_t handle, sv_str *key)
{
    size_t n;
    sv_batch_reset(&s->scratch);
    const struct sv_arg *args = sv_trace_args(s->t, handle, &s->scratch, &n);
    *key = 0;
    for (size_t i = 0; i < n; i++) {
        *key = args[i].key ? args[i].key : *key;
        if ((args[i].key && s->is_match[args[i].key]) || value_matches(s, &args[i]))
            return &args[i];
    }
    return NULL;
}

bool sv_arg_search_has(struct sv_arg_search *s, uint32_t handle)
{
    sv_str key;
    if (handle == 0)
        return false;
    uint8_t *known = &s->known[handle];
    if (!*known)
        *known = (uint8_t)sv_trace_args_search(s->t, handle, &s->lists);
    if (*known == SV_ARGS_UNSURE)
        *known = sv_arg_search_find(s, handle, &key) ? SV_ARGS_HIT : SV_ARGS_NO_HIT;
    return *known == SV_ARGS_HIT;
}
