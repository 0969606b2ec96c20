/* Perfetto writer: arguments as debug annotations.
 *
 * Called by the long way for each top-level argument that has a name. The list is flat (a container
 * is followed by its members), so one loop with a small stack of open messages writes any nesting.
 * Keys and repeated texts are numbers. Null and empty containers have no form of their own in
 * Perfetto: the former is an empty message, the latter JSON. */
#include "core/perfetto/write.h"

struct open_message {
    size_t mark;              /* of the annotation, for sv_put_end() */
    const struct sv_arg *end; /* the first slot that does not belong to it */
    uint32_t member_field;
};

static void name_put(struct pf *w, struct pf_sequence *s, sv_str key)
{
    struct sv_buf *b = &w->event;
    if (key)
        sv_put_u64(b, SV_PF_ANN_NAME_IID, pf_number(w, s, PF_KEY, key));
    else
        sv_put_bytes(b, SV_PF_ANN_NAME, "", 0);
}

static void text_put(struct pf *w, struct pf_sequence *s, const char *text, size_t len)
{
    uint32_t number = pf_number_text(w, s, text, len);
    if (number)
        sv_put_u64(&w->event, SV_PF_ANN_STRING_IID, number);
    else
        sv_put_text(&w->event, SV_PF_ANN_STRING, text, len);
}

static void json_put(struct pf *w, const char *json)
{
    sv_put_bytes(&w->event, SV_PF_ANN_JSON, json, strlen(json));
}

/* An empty message is what Perfetto reads as null; its type must be one that it knows. (JSON null
 * ends its importer.) */
static void null_put(struct pf *w, struct pf_sequence *s)
{
    sv_put_u64(&w->event, SV_PF_ANN_PROTO_TYPE_IID, pf_number(w, s, PF_TYPE, w->null_type));
    sv_put_bytes(&w->event, SV_PF_ANN_PROTO_VALUE, "", 0);
}

static void scalar_put(struct pf *w, struct pf_sequence *s, const struct sv_arg *a)
{
    struct sv_buf *b = &w->event;
    switch (a->type) {
    case SV_ARG_BOOL: sv_put_u64(b, SV_PF_ANN_BOOL, a->i != 0); break;
    case SV_ARG_INT: sv_put_i64(b, SV_PF_ANN_INT, a->i); break;
    case SV_ARG_UINT: sv_put_u64(b, SV_PF_ANN_UINT, a->u); break;
    case SV_ARG_DOUBLE: sv_put_double(b, SV_PF_ANN_DOUBLE, a->d); break;
    case SV_ARG_POINTER: sv_put_u64(b, SV_PF_ANN_POINTER, a->u); break;
    case SV_ARG_TEXT: text_put(w, s, a->text, a->size); break;
    case SV_ARG_DICT: json_put(w, "{}"); break;
    case SV_ARG_ARRAY: json_put(w, "[]"); break;
    default: null_put(w, s); break;
    }
}

static bool is_container(const struct sv_arg *a)
{
    return a->type == SV_ARG_DICT || a->type == SV_ARG_ARRAY;
}

void pf_annotation(struct pf *w, struct pf_sequence *s, const struct sv_arg *a,
                   const struct sv_arg *end)
{
    struct open_message open[PF_ARG_DEPTH_MAX];
    unsigned depth = 0;
    const struct sv_arg *last = sv_arg_next(a);
    if (last > end)
        last = end;
    while (a < last) {
        while (depth && a >= open[depth - 1].end)
            sv_put_end(&w->event, open[--depth].mark);
        uint32_t field = depth ? open[depth - 1].member_field : SV_PF_EVENT_DEBUG_ANNOTATIONS;
        size_t mark = sv_put_begin(&w->event, field);
        if (field != SV_PF_ANN_ARRAY)
            name_put(w, s, a->key);
        if (!is_container(a) || a->size == 0 || depth == PF_ARG_DEPTH_MAX) {
            scalar_put(w, s, a);
            sv_put_end(&w->event, mark);
            if (is_container(a) && a->size)
                sv_report_add(w->report, SV_SKIPPED, "arguments nested too deeply", 1, SV_NO_POS,
                              "more than %d levels", PF_ARG_DEPTH_MAX);
            a = sv_arg_next(a);
            continue;
        }
        const struct sv_arg *inside = sv_arg_next(a);
        const struct sv_arg *outside = depth ? open[depth - 1].end : last;
        open[depth++] = (struct open_message){
            .mark = mark,
            .end = inside < outside ? inside : outside,
            .member_field = a->type == SV_ARG_DICT ? SV_PF_ANN_DICT : SV_PF_ANN_ARRAY,
        };
        a++;
    }
    while (depth)
        sv_put_end(&w->event, open[--depth].mark);
}

void pf_annotation_i64(struct pf *w, struct pf_sequence *s, sv_str key, int64_t value)
{
    struct sv_arg a = {.key = key, .type = SV_ARG_INT, .i = value};
    pf_annotation(w, s, &a, &a + 1);
}
