/* The operator that a profile of JAX or TensorFlow names in the work itself. Called by figures.c
 * for each piece of work that has no operator on the host.
 *
 *     jit(step)/jit(main)/transpose(jvp(MLP))/Dense_0/dot_general[…]
 *         operator dot_general, module MLP/Dense_0, phase backward
 *     model/dense/MatMul:MatMul           operator MatMul, module model/dense
 *     fusion.3                            operator fusion.3 */
#include "subjects/ops/figures.h"

#include <string.h>

static bool has(struct sv_text s, const char *word)
{
    return memmem(s.bytes, s.len, word, strlen(word)) != NULL;
}

static bool begins(struct sv_text s, const char *word)
{
    return s.len >= strlen(word) && memcmp(s.bytes, word, strlen(word)) == 0;
}

static enum sv_ops_phase phase_in(struct sv_text s)
{
    if (has(s, "ptimizer") || has(s, "adam") || has(s, "Adam"))
        return SV_OPS_OPTIMIZER;
    if (has(s, "transpose(") || has(s, "gradient_tape") || has(s, "gradients/"))
        return SV_OPS_BACKWARD;
    return has(s, "jvp(") ? SV_OPS_FORWARD : SV_OPS_OTHER;
}

/* The next part of the path, up to a '/' outside of brackets. */
static struct sv_text next_part(struct sv_text *rest)
{
    uint32_t n = 0;
    for (int depth = 0; n < rest->len && (depth > 0 || rest->bytes[n] != '/'); n++)
        depth += rest->bytes[n] == '(' || rest->bytes[n] == '['   ? 1
                 : rest->bytes[n] == ')' || rest->bytes[n] == ']' ? -1
                                                                  : 0;
    struct sv_text part = {rest->bytes, n};
    uint32_t used = n < rest->len ? n + 1 : n;
    *rest = (struct sv_text){rest->bytes + used, rest->len - used};
    return part;
}

/* "transpose(jvp(MLP))" is about MLP. */
static struct sv_text unwrap(struct sv_text s)
{
    static const char *const wrappers[] = {"transpose(", "jvp(", "vmap(", "remat(", "checkpoint("};
    for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
        if (begins(s, wrappers[i]) && s.bytes[s.len - 1] == ')') {
            uint32_t n = (uint32_t)strlen(wrappers[i]);
            s = (struct sv_text){s.bytes + n, s.len - n - 1};
            i = (size_t)-1; /* from the first one again */
        }
    return s;
}

static bool is_of_compiler(struct sv_text part)
{
    return part.len == 0 || begins(part, "jit(") || begins(part, "pjit(") ||
           begins(part, "pmap(") || begins(part, "gradient_tape");
}

static void add_module(struct sv_ops_path *p, struct sv_text part)
{
    size_t n = strlen(p->module);
    if (n + part.len + 2 > sizeof p->module)
        return;
    if (n)
        p->module[n++] = '/';
    memcpy(p->module + n, part.bytes, part.len);
    p->module[n + part.len] = 0;
}

void sv_ops_path_read(struct sv_ops_path *p, struct sv_text text)
{
    struct sv_text rest = text, last = {text.bytes, 0};
    *p = (struct sv_ops_path){.phase = phase_in(text)};
    while (rest.len) {
        struct sv_text part = unwrap(next_part(&rest));
        if (is_of_compiler(part))
            continue;
        if (last.len)
            add_module(p, last);
        last = part;
    }
    const char *end = last.len ? memchr(last.bytes, '[', last.len) : NULL;
    const char *type = last.len ? memchr(last.bytes, ':', last.len) : NULL;
    p->op = last.len ? last : text;
    if (end && end > last.bytes)
        p->op.len = (uint32_t)(end - last.bytes);
    else if (type && type > last.bytes)
        p->op.len = (uint32_t)(type - last.bytes);
}
