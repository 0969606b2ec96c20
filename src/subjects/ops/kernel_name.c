/* Short names of kernels: see kernel_name.h. Called once for each name by subjects/ops/figures.c.
 *
 * It reads no grammar: brackets are counted, and what does not fit is left as it is. */
#include "subjects/ops/kernel_name.h"

#include "store/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define FOLDED    "<…>"
#define ANONYMOUS "(anonymous namespace)::"

static bool begins(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0;
}

/* "operator<", "operator<<", "operator->", "operator()" are names: how long the sign is. */
static size_t operator_sign(const char *p, const char *end)
{
    static const char *const signs[] = {"()", "<<=", ">>=", "<=>", "<<", ">>",
                                        "<=", ">=",  "->",  "<",   ">"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (begins(p, end, signs[i]))
            return strlen(signs[i]);
    return 0;
}

/* After the bracket that closes the one at p; `end`: none does. */
static const char *after_bracket(const char *p, const char *end)
{
    int depth = 0;
    char last = 0;
    for (; p < end; last = *p++) {
        if (*p == '<' || *p == '(' || *p == '[' || *p == '{')
            depth++;
        else if (*p == ')' || *p == ']' || *p == '}' || (*p == '>' && last != '-'))
            if (--depth == 0)
                return p + 1;
    }
    return end;
}

/* Appends a name up to its parameters. */
static void put_folded(struct sv_buf *to, const char *p, const char *end)
{
    static const char word[] = "operator";
    while (p < end) {
        if (begins(p, end, ANONYMOUS)) {
            p += strlen(ANONYMOUS);
        } else if (begins(p, end, word)) {
            size_t n = strlen(word) + operator_sign(p + strlen(word), end);
            sv_buf_add(to, p, n);
            p += n;
        } else if (*p == '<') {
            sv_buf_add(to, FOLDED, strlen(FOLDED));
            p = after_bracket(p, end);
        } else if (*p == '(') {
            const char *next = after_bracket(p, end);
            if (!begins(next, end, "::")) /* parameters: what follows them is of no name */
                return;
            p = next + 2; /* a lambda within this function */
            sv_buf_add(to, "::", 2);
        } else {
            sv_buf_add(to, p++, 1);
        }
    }
}

/* Is it a name of C++? Others, such as "Memcpy HtoD (Pinned -> Device)", are as they should be. */
static bool is_cpp(const char *p, const char *end)
{
    const char *paren = memchr(p, '(', (size_t)(end - p));
    return (p < end && *p != '<') &&
           (begins(p, end, "void ") || memmem(p, (size_t)(end - p), "::", 2) ||
            memchr(p, '<', (size_t)(end - p)) ||
            (paren && paren > p && !isspace((unsigned char)paren[-1])));
}

void sv_kernel_short_name(struct sv_buf *to, struct sv_text exact)
{
    char *readable = sv_demangle(exact.bytes);
    const char *p = readable ? readable : exact.bytes,
               *end = p + (readable ? strlen(p) : exact.len);
    size_t before = to->len;
    if (is_cpp(p, end))
        put_folded(to, begins(p, end, "void ") ? p + 5 : p, end);
    if (to->len == before)
        sv_buf_add(to, p, (size_t)(end - p));
    free(readable);
}
