/* Arguments as rings carry them: every value, and bytes that end anywhere. */
#include "core/stream/dict.h"
#include "sdk/drain/drain_items.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <stave/stave.h>
#include <stdlib.h>
#include <string.h>

/* What the bytes say, as one line. They lie at the end of their memory. */
static const char *said(struct sv_buf *text, const void *bytes, size_t n, bool has_key)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_batch b;
    uint8_t *copy = malloc(n + 64);
    REQUIRE(copy != NULL);
    memcpy(copy, bytes, n);
    memset(copy + n, 1, 64); /* what looks like more of it */
    sv_batch_init(&b);
    struct sv_event *e = sv_batch_event(&b);
    *e = (struct sv_event){.kind = SV_INSTANT};
    sv_items_put(dict, &b, has_key ? sv_dict_cstr(dict, "args") : 0, copy, n);
    sv_batch_finish(&b, e);
    const char *line = dump(text, dict, b.events, 1);
    line = strchr(line, '#') + 19;
    line += *line == ' ';
    free(copy);
    sv_batch_fini(&b);
    sv_dict_free(dict);
    return line;
}

static void build(struct stave_args *a)
{
    stave_args_init(a);
    stave_args_int(a, "int", -1);
    stave_args_uint(a, "uint", UINT64_MAX);
    stave_args_uint(a, "small", INT64_MAX);
    stave_args_double(a, "double", 0.25);
    stave_args_bool(a, "bool", true);
    stave_args_null(a, "null");
    stave_args_pointer(a, "pointer", (void *)16);
    stave_args_flow(a, STAVE_FLOW_OUT, 5);
    stave_args_uint(a, STAVE_CORRELATION, 6);
    stave_args_uint(a, "\001", 7);
    stave_args_text(a, "text", "abc");
    stave_args_dict(a, "dict");
    stave_args_list(a, "list");
    stave_args_int(a, NULL, 1);
    stave_args_end(a);
    stave_args_int(a, "in", 2);
    stave_args_end(a);
    stave_args_int(a, "last", 3);
}

TEST(every_value)
{
    static struct stave_args a;
    struct sv_buf text;
    sv_buf_init(&text, 1 << 20);
    build(&a);
    const char *all = "int=int:-1 uint=uint:18446744073709551615 small=int:9223372036854775807 "
                      "double=double:0.25 bool=bool:1 null=null pointer=pointer:16 flow:5 "
                      "correlation:6 \\x01=int:7 text='abc' dict=dict(3) list=array(1) int:1 "
                      "in=int:2 last=int:3\n";
    CHECK_STR_EQ(said(&text, a.bytes, a.len, false), all);
    const char *below = said(&text, a.bytes, a.len, true);
    CHECK(strncmp(below, "args=dict(16) ", 14) == 0);
    CHECK_STR_EQ(below + 14, all);
    sv_buf_fini(&text);
}

/* The stack of an event is a list with a key of its own; what only looks like it is a list. */
TEST(a_list_that_is_the_stack)
{
    static struct stave_args a;
    struct sv_buf text;
    sv_buf_init(&text, 1 << 20);
    stave_args_init(&a);
    stave_args_list(&a, STAVE_STACK);
    stave_args_text(&a, NULL, "main");
    stave_args_pointer(&a, NULL, (void *)16);
    stave_args_end(&a);
    stave_args_list(&a, "\001");
    stave_args_end(&a);
    stave_args_dict(&a, STAVE_STACK);
    stave_args_end(&a);
    CHECK_STR_EQ(said(&text, a.bytes, a.len, false),
                 "stack(2) 'main' pointer:16 \\x01=array(0) \\x01s=dict(0)\n");
    sv_buf_fini(&text);
}

/* Bytes that are cut give the items that are whole, and nothing of what lies behind. */
TEST(bytes_that_end_anywhere)
{
    static struct stave_args a;
    struct sv_buf text, before;
    sv_buf_init(&text, 1 << 20);
    sv_buf_init(&before, 1 << 20);
    build(&a);
    size_t n_items = 0;
    sv_buf_str(&before, "\n");
    for (size_t n = 0; n <= a.len; n++) {
        CONTEXT("%zu bytes", n);
        const char *line = said(&text, a.bytes, n, false);
        bool is_more = strcmp(line, sv_buf_cstr(&before)) != 0;
        if (!is_more)
            continue;
        n_items++;
        sv_buf_clear(&before);
        sv_buf_str(&before, line);
    }
    CHECK_UINT_EQ(n_items, 16);
    sv_buf_fini(&text);
    sv_buf_fini(&before);
}

TEST(items_that_are_none)
{
    static const struct {
        uint8_t bytes[24];
        size_t n;
        const char *said;
    } rows[] = {
        {{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 11, "\n"},   /* no type */
        {{200, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 11, "\n"}, /* no such type */
        {{1, 9, 0, 'k'}, 4, "\n"},                       /* a key that is longer */
        {{1, 1, 0, 'k', 1, 0, 0, 0, 0, 0, 0, 0}, 12, "k=int:1\n"},
    };
    struct sv_buf text;
    sv_buf_init(&text, 1 << 20);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        CHECK_STR_EQ(said(&text, rows[i].bytes, rows[i].n, false), rows[i].said);
    }
    sv_buf_fini(&text);
}
