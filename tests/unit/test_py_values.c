/* Pickle and JSON as plain values: what is read, and what is refused, where. */
#include "formats/torch/py_values.h"

#include "core/base/buf.h"
#include "core/base/json_scan.h"
#include "formats/formats.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

/* The value of `bytes` in a dictionary {"a": …}, as text: i5, r1.5, t:abc, [..], n, b1. */
static void show(const struct sv_py *v, struct sv_buf *to, int depth)
{
    if (!v || depth > 4) {
        sv_buf_str(to, "?");
        return;
    }
    switch (v->type) {
    case SV_PY_NONE: sv_buf_str(to, "n"); break;
    case SV_PY_BOOL: sv_buf_printf(to, "b%d", (int)v->i); break;
    case SV_PY_INT: sv_buf_printf(to, "i%lld", (long long)v->i); break;
    case SV_PY_REAL: sv_buf_printf(to, "r%g", v->d); break;
    case SV_PY_TEXT: sv_buf_printf(to, "t:%.*s", (int)v->len, v->text); break;
    case SV_PY_LIST:
    case SV_PY_DICT:
        sv_buf_str(to, v->type == SV_PY_LIST ? "[" : "{");
        for (size_t i = 0; i < v->n; i++) {
            sv_buf_str(to, i ? " " : "");
            show(v->items[i], to, depth + 1);
        }
        sv_buf_str(to, v->type == SV_PY_LIST ? "]" : "}");
    }
}

#define BYTES(literal) (literal), sizeof(literal) - 1

TEST(operations_of_pickle)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *is;
    } rows[] = {
        {BYTES("\x80\x02K\x05."), "i5"},
        {BYTES("\x80\x02M\x00\x01."), "i256"},
        {BYTES("\x80\x02J\xff\xff\xff\xff."), "i-1"},
        {BYTES("\x80\x02\x8a\x00."), "i0"},
        {BYTES("\x80\x02\x8a\x01\xff."), "i-1"},
        {BYTES("\x80\x02\x8a\x08\x00\x10\x96\x3c\x0b\x5d\x97\x17."), "i1699929687198142464"},
        {BYTES("\x80\x02\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09."), "n"}, /* past 64 bits */
        {BYTES("\x80\x02G\x3f\xf8\x00\x00\x00\x00\x00\x00."), "r1.5"},
        {BYTES("\x80\x02\x88."), "b1"},
        {BYTES("\x80\x02\x89."), "b0"},
        {BYTES("\x80\x02N."), "n"},
        {BYTES("\x80\x02X\x02\x00\x00\x00hi."), "t:hi"},
        {BYTES("\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00\x8c\x02hi\x94."), "t:hi"},
        {BYTES("\x80\x02](K\x01K\x02"
               "e."),
         "[i1 i2]"},
        {BYTES("\x80\x02]K\x01"
               "a."),
         "[i1]"},
        {BYTES("\x80\x02K\x01K\x02\x86."), "[i1 i2]"},
        {BYTES("\x80\x02(K\x01K\x02K\x03K\x04t."), "[i1 i2 i3 i4]"},
        {BYTES("\x80\x02)."), "[]"},
        {BYTES("\x80\x02}(K\x01K\x02u."), "{i1 i2}"},
        {BYTES("\x80\x02}K\x01K\x02s."), "{i1 i2}"},
        {BYTES("\x80\x02](K\x07q\x05h\x05"
               "e."),
         "[i7 i7]"},
        {BYTES("\x80\x02]q\x00h\x00"
               "a."),
         "[[[[[?]]]]]"}, /* a list that holds itself */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sv_py_values v;
        const struct sv_py *top;
        struct sv_err err = {0};
        struct sv_buf text;
        CONTEXT("row %zu", i);
        sv_buf_init(&text, 4096);
        sv_py_init(&v);
        CHECK_INT_EQ(sv_py_unpickle(&v, (const uint8_t *)rows[i].bytes, rows[i].len, &top, &err),
                     0);
        show(top, &text, 0);
        CHECK_STR_EQ(sv_buf_cstr(&text), rows[i].is);
        sv_py_fini(&v);
        sv_buf_fini(&text);
    }
}

TEST(what_pickle_may_not_do)
{
    static const struct {
        const char *bytes;
        size_t len;
        int64_t pos;
        const char *word;
    } rows[] = {
        {BYTES("\x80\x02"
               "cos\nsystem\n."),
         2, "GLOBAL"},
        {BYTES("\x80\x02K\x01"
               "R."),
         4, "REDUCE"},
        {BYTES("\x80\x02"
               "b."),
         2, "BUILD"},
        {BYTES("\x80\x02ios\nsystem\n."), 2, "INST"},
        {BYTES("\x80\x04\x93."), 2, "STACK_GLOBAL"},
        {BYTES("\x80\x02\x81."), 2, "NEWOBJ"},
        {BYTES("\x80\x02P1\n."), 2, "PERSID"},
        {BYTES("\x80\x02\x82\x01."), 2, "EXT1"},
        {BYTES("\x80\x05\x97."), 2, "NEXT_BUFFER"},
        {BYTES("\x80\x02\xfe."), 2, "0xfe"},
        {BYTES("\x80\x06."), 0, "protocol 6"},
        {BYTES("\x80\x02X\xff\xff\xff\x7fhi."), 2, "ends within"},
        {BYTES("\x80\x02K"), 2, "ends within"},
        {BYTES("\x80\x02K\x01"), 4, "STOP"},
        {BYTES("\x80\x02."), 2, "stack"},
        {BYTES("\x80\x02K\x01K\x02."), 6, "stack"},
        {BYTES("\x80\x02(."), 3, "stack"},
        {BYTES("\x80\x02"
               "e."),
         2, "stack"},
        {BYTES("\x80\x02(K\x01"
               "e."),
         5, "stack"},
        {BYTES("\x80\x02}(K\x01u."), 6, "stack"}, /* a key without a value */
        {BYTES("\x80\x02K\x01(K\x01"
               "e."),
         7, "stack"},
        {BYTES("\x80\x02(\x85."), 3, "stack"},
        {BYTES("\x80\x02h\x05."), 2, "refers"},
        {BYTES("\x80\x02q\x05."), 2, "stack"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sv_py_values v;
        const struct sv_py *top;
        struct sv_err err = {0};
        CONTEXT("row %zu", i);
        sv_py_init(&v);
        CHECK_INT_EQ(sv_py_unpickle(&v, (const uint8_t *)rows[i].bytes, rows[i].len, &top, &err),
                     SV_EFORMAT);
        CHECK_INT_EQ(err.pos, rows[i].pos);
        CHECK(strstr(err.msg, rows[i].word) != NULL);
        sv_py_fini(&v);
    }
}

static int json(const char *text, struct sv_buf *to, struct sv_err *err)
{
    char padded[1024 + SV_JSON_PAD] = {0};
    struct sv_py_values v;
    const struct sv_py *top;
    snprintf(padded, 1024, "%s", text);
    sv_py_init(&v);
    int code = sv_py_of_json(&v, (const uint8_t *)padded, strlen(padded), &top, err);
    if (code == 0)
        show(top, to, 0);
    sv_py_fini(&v);
    return code;
}

TEST(json_as_values)
{
    struct sv_buf text;
    struct sv_err err = {0};
    sv_buf_init(&text, 4096);
    CHECK_INT_EQ(
        json(" {\"a\": [1, -2, 1.5, true, null, \"x\\ny\"], \"b\": {\"c\": {}}}", &text, &err), 0);
    CHECK_STR_EQ(sv_buf_cstr(&text), "{t:a [i1 i-2 r1.5 b1 n t:x\ny] t:b {t:c {}}}");
    CHECK_INT_EQ(json("{\"a\": [1, 2", &text, &err), SV_EFORMAT);
    CHECK_INT_EQ(
        json("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
             &text, &err),
        SV_ELIMIT);
    sv_buf_fini(&text);
}

/* Whose dump it is: by the name of the file, unless its groups say that it cannot be. */
TEST(the_rank_of_a_dump)
{
    static const char groups[] =
        "{\"version\":\"2.10\",\"pg_config\":{\"0\":{\"name\":\"0\",\"desc\":\"default_pg\","
        "\"ranks\":"
        "\"[0, 1, 2, 3]\"},\"1\":{\"name\":\"1\",\"desc\":\"x\",\"ranks\":\"[%s]\"}}}";
    static const struct {
        const char *name, *members, *rank;
    } rows[] = {
        {"/d/nccl_trace_rank_3", "1, 3", "3"},
        {"/d/nccl_trace_rank_1.json.gz", "1, 3", "1"},
        {"/d2/_dump_0", "1, 3", NULL},
        {"/d2/dump", "2", "2"},
        {"/d2/dump", "1, 3", NULL},
        {"/d/_dump_7", "3", "3"},
        {"/d/_dump_1", "0, 1, ..., 3", "1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        struct sv_err err = {0};
        struct sv_input *in;
        struct sv_source *source;
        struct sv_report report;
        struct sv_dict *dict = sv_dict_new();
        CONTEXT("%s", rows[i].name);
        sv_report_init(&report);
        snprintf(text, sizeof text, groups, rows[i].members);
        REQUIRE(sv_input_open_memory(text, strlen(text), rows[i].name, &in, &err) == 0);
        REQUIRE(sv_format_open(&sv_flight_recorder_format, in, &(struct sv_read_options){0}, dict,
                               &report, &source, &err) == 0);
        const struct sv_meta *rank = sv_dict_find_meta(dict, "rank");
        CHECK_STR_EQ(rank ? sv_dict_text(dict, rank->value).bytes : "none",
                     rows[i].rank ? rows[i].rank : "none");
        source->close(source);
        sv_input_close(in);
        sv_report_fini(&report);
        sv_dict_free(dict);
    }
}
