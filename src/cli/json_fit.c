/* Short answers: see json_fit.h. Called by the verbs whose answers have lists beside figures. */
#include "cli/json_fit.h"

#include "cli/console.h"

#include <stdio.h>
#include <string.h>

enum { TAIL = 200, TEXT_MOST = 200 };

struct sv_text sv_json_short(struct sv_text t)
{
    if (t.len <= TEXT_MOST)
        return t;
    t.len = TEXT_MOST;
    while (t.len > TEXT_MOST - 3 && ((uint8_t)t.bytes[t.len] & 0xc0) == 0x80)
        t.len--;
    return t;
}

/* In front of the bracket that ends the object. */
static void add_truncated(struct sv_buf *b, size_t most, size_t whole, const char *more)
{
    char text[TAIL];
    while (b->len && b->data[b->len - 1] == '\n')
        b->len--;
    if (b->len)
        b->len--;
    while (b->len && b->data[b->len - 1] == '\n')
        b->len--;
    snprintf(text, sizeof text,
             ",\"truncated\":{\"rows\":%zu,\"bytes\":%zu,\"more\":\"%.120s\"}}\n", most, whole,
             more);
    sv_buf_str(b, text);
}

int sv_json_fit(const struct sv_json_fit *f, struct sv_err *err)
{
    static const size_t limits[] = {SIZE_MAX, 100, 30, 10, 3, 1, 0};
    struct sv_buf b;
    size_t whole = 0, most = SIZE_MAX;
    int code = 0;
    sv_buf_init(&b, (size_t)2 << 30);
    for (size_t i = 0; i < sizeof limits / sizeof *limits && code >= 0; i++) {
        sv_buf_clear(&b);
        most = limits[i];
        code = f->fill(f->ctx, most, &b, err);
        whole = i == 0 ? b.len : whole;
        if (b.len + TAIL <= SV_JSON_MOST || f->all)
            break;
    }
    if (code >= 0 && most != SIZE_MAX)
        add_truncated(&b, most, whole, f->more);
    else if (code >= 0 && b.len && b.data[b.len - 1] != '\n')
        sv_buf_byte(&b, '\n');
    if (code >= 0)
        code = b.failed ? sv_error(err, SV_ELIMIT, "the answer is larger than 2 GB")
                        : sv_print_data(stdout, b.data, b.len, err);
    sv_buf_fini(&b);
    return code;
}
