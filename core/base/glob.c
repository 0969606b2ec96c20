/* Glob matching: one pass, and a return to the last star when it does not work out. No recursion,
 * so that a hostile pattern or text costs at most the product of their lengths. Callers cache the
 * answers per string. */
#include "core/base/glob.h"
#include "core/base/utf8.h"

struct cursor {
    const char *at, *end;
};

/* The next character as a number that sorts like its code point: its bytes, the first one highest.
 * An invalid byte is past all of them. */
static uint32_t take(struct cursor *c)
{
    size_t size = sv_utf8_length(c->at, (size_t)(c->end - c->at));
    uint32_t code = 0;
    if (size == 0)
        return 0xff000000u | (uint8_t)*c->at++;
    for (size_t i = 0; i < size; i++)
        code = code << 8 | (uint8_t)*c->at++;
    return code;
}

/* A member of a set, or the character after a backslash. False: the pattern ends here. */
static bool take_literal(struct cursor *p, uint32_t *code)
{
    if (p->at < p->end && *p->at == '\\' && p->at + 1 < p->end)
        p->at++;
    if (p->at == p->end)
        return false;
    *code = take(p);
    return true;
}

/* p points after '['. False when the set is not closed; p is unchanged then. */
static bool match_set(struct cursor *p, uint32_t c, bool *matched)
{
    struct cursor s = *p;
    bool negated = s.at < s.end && (*s.at == '!' || *s.at == '^');
    bool found = false;
    if (negated)
        s.at++;
    for (bool first = true; s.at < s.end; first = false) {
        if (*s.at == ']' && !first) {
            s.at++;
            *matched = found != negated;
            *p = s;
            return true;
        }
        uint32_t low, high;
        if (!take_literal(&s, &low))
            return false;
        high = low;
        if (s.end - s.at >= 2 && s.at[0] == '-' && s.at[1] != ']') {
            s.at++;
            if (!take_literal(&s, &high))
                return false;
        }
        found |= low <= c && c <= high;
    }
    return false;
}

/* One element of the pattern that is not a star against one character. */
static bool match_one(struct cursor *p, uint32_t c)
{
    if (*p->at == '?') {
        p->at++;
        return true;
    }
    if (*p->at == '[') {
        bool matched;
        p->at++;
        return match_set(p, c, &matched) ? matched : c == '[';
    }
    uint32_t literal;
    return take_literal(p, &literal) && literal == c;
}

bool sv_glob_match(const char *pattern, const char *text, size_t len)
{
    struct cursor p = {pattern, pattern + strlen(pattern)}, t = {text, text + len};
    struct cursor star = {0}, retry = {0}; /* after the last star, and where its run ends so far */
    for (;;) {
        if (p.at < p.end && *p.at == '*') {
            p.at++;
            star = p;
            retry = t;
            continue;
        }
        if (t.at == t.end && p.at == p.end)
            return true;
        if (t.at < t.end && p.at < p.end && match_one(&p, take(&t)))
            continue;
        if (!star.at || retry.at == retry.end)
            return false;
        take(&retry);
        p = star;
        t = retry;
    }
}
