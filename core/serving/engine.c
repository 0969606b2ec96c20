/* Members of engine steps as text, shares, and the phases of a request. Called by the tracer's
 * thread, once for each member of each step, and by the reports. */
#include "core/serving/engine.h"

#include <string.h>

const char *const sv_engine_phase_names[SV_N_ENGINE_PHASES] = {
    "none", "queue", "prefill", "decode", "preempted", "transfer", "respond"};

/* ---- as text ---- */

static void put_part(struct sv_buf *to, char mark, uint64_t value)
{
    if (!value)
        return;
    sv_buf_byte(to, (uint8_t)mark);
    sv_buf_u64(to, value);
}

void sv_engine_member_put(struct sv_buf *to, const struct sv_engine_member *m)
{
    if (to->len)
        sv_buf_byte(to, ' ');
    sv_buf_u64(to, m->request);
    sv_buf_byte(to, m->is_decode ? 'd' : 'p');
    sv_buf_u64(to, m->tokens_in);
    put_part(to, '+', m->tokens_out);
    put_part(to, '@', m->position);
    put_part(to, '~', m->cached);
    put_part(to, '?', m->proposed);
    put_part(to, '!', m->accepted);
}

/* A number of at most `most`; false: there is none here, or it is larger. */
static bool take_number(const char **at, const char *end, uint64_t most, uint64_t *value)
{
    const char *p = *at;
    uint64_t v = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (v > (most - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    bool has_digits = p > *at;
    *at = p;
    *value = v;
    return has_digits;
}

static bool take_part(const char **at, const char *end, struct sv_engine_member *m)
{
    char mark = *(*at)++;
    uint64_t v;
    if (!take_number(at, end, mark == '?' || mark == '!' ? UINT16_MAX : UINT32_MAX, &v))
        return false;
    switch (mark) {
    case '+': m->tokens_out = (uint32_t)v; return true;
    case '@': m->position = (uint32_t)v; return true;
    case '~': m->cached = (uint32_t)v; return true;
    case '?': m->proposed = (uint16_t)v; return true;
    case '!': m->accepted = (uint16_t)v; return true;
    default: return false;
    }
}

static bool take_member(const char **at, const char *end, struct sv_engine_member *m)
{
    uint64_t tokens;
    *m = (struct sv_engine_member){0};
    if (!take_number(at, end, UINT64_MAX, &m->request) || *at == end ||
        (**at != 'p' && **at != 'd'))
        return false;
    m->is_decode = *(*at)++ == 'd';
    if (!take_number(at, end, UINT32_MAX, &tokens))
        return false;
    m->tokens_in = (uint32_t)tokens;
    while (*at < end && **at != ' ')
        if (!take_part(at, end, m))
            return false;
    return true;
}

int sv_engine_member_next(const char **at, const char *end, struct sv_engine_member *m)
{
    while (*at < end && **at == ' ')
        (*at)++;
    if (*at == end)
        return 0;
    if (take_member(at, end, m))
        return 1;
    while (*at < end && **at != ' ')
        (*at)++;
    return -1;
}

/* ---- shares ---- */

__extension__ typedef unsigned __int128 wide;

/* What is at place k (from 0) of the list in falling order. Changes the list. */
static uint64_t kth_largest(uint64_t *list, size_t n, size_t k)
{
    size_t from = 0, to = n;
    for (;;) {
        uint64_t pivot = list[from + (to - from) / 2];
        size_t larger = from, at = from, smaller = to;
        while (at < smaller) {
            uint64_t v = list[at];
            if (v > pivot) {
                list[at++] = list[larger];
                list[larger++] = v;
            } else if (v < pivot) {
                list[at] = list[--smaller];
                list[smaller] = v;
            } else {
                at++;
            }
        }
        if (k < larger)
            to = larger;
        else if (k >= smaller)
            from = smaller;
        else
            return pivot;
    }
}

/* 1 more for each of the `left` largest remainders; of equal ones the first. */
static void spread(const uint64_t *remainders, uint64_t *scratch, size_t n, size_t left,
                   int64_t *shares)
{
    memcpy(scratch, remainders, n * sizeof *scratch);
    uint64_t least = kth_largest(scratch, n, left - 1);
    for (size_t i = 0; i < n; i++)
        if (remainders[i] > least) {
            shares[i]++;
            left--;
        }
    for (size_t i = 0; i < n && left; i++)
        if (remainders[i] == least) {
            shares[i]++;
            left--;
        }
}

void sv_engine_shares(int64_t whole, const uint64_t *weights, size_t n, int64_t *shares,
                      uint64_t *scratch)
{
    uint64_t all = whole > 0 ? (uint64_t)whole : 0, sum = 0, left = all;
    for (size_t i = 0; i < n; i++)
        sum += weights[i];
    bool is_even = sum == 0;
    if (is_even)
        sum = n;
    for (size_t i = 0; i < n; i++) {
        wide part = (wide)all * (is_even ? 1 : weights[i]);
        shares[i] = (int64_t)(part / sum);
        scratch[i] = (uint64_t)(part % sum);
        left -= (uint64_t)shares[i];
    }
    if (left)
        spread(scratch, scratch + n, n, (size_t)left, shares);
}

/* ---- phases ---- */

enum sv_engine_phase sv_engine_next(enum sv_engine_phase phase, enum sv_engine_event event,
                                    bool has_token)
{
    switch (event) {
    case SV_ENGINE_ARRIVES: return phase == SV_ENGINE_NONE ? SV_ENGINE_QUEUE : phase;
    case SV_ENGINE_SCHEDULED: return phase <= SV_ENGINE_QUEUE ? SV_ENGINE_PREFILL : phase;
    case SV_ENGINE_IS_PREEMPTED: return SV_ENGINE_PREEMPTED;
    case SV_ENGINE_RESUMES:
        /* What it does next is known when a step begins with it; most engines compute again. */
        return phase == SV_ENGINE_PREEMPTED ? SV_ENGINE_PREFILL : phase;
    case SV_ENGINE_IS_SENT: return SV_ENGINE_TRANSFER;
    case SV_ENGINE_IS_RECEIVED:
        return phase != SV_ENGINE_TRANSFER ? phase
               : has_token                 ? SV_ENGINE_DECODE
                                           : SV_ENGINE_PREFILL;
    case SV_ENGINE_STEP_PREFILL: return SV_ENGINE_PREFILL;
    case SV_ENGINE_STEP_DECODE:
        return phase == SV_ENGINE_PREFILL && !has_token ? phase : SV_ENGINE_DECODE;
    case SV_ENGINE_TOKEN: return SV_ENGINE_DECODE;
    }
    return phase;
}
