/* Looking through lists of arguments without decoding them finds what decoding finds. */
#include "core/base/mem.h"
#include "tests/harness/test.h"
#include "trace_text.h"
#include "view/search_args.h"

#include <stdlib.h>
#include <string.h>

static const char *const sample = "X 0 10 t a path='/data/shard_1' n=5 x=1.5\n"
                                  "X 10 10 t a path='/data/shard_2' n=-7 x=2\n"
                                  "X 20 10 t a path='/data/shard_1' n=5 x=1e300\n"
                                  "X 30 10 t a path='/DATA/Shard_1' n=12 x=0.25\n"
                                  "X 40 10 t b list=['one','two',3] deep='tail'\n"
                                  "B 50 t c first='begun' n=1\nE 60 t last='ended' n=2\n"
                                  "X 70 10 t d\nX 80 10 t e >7 path='/data/shard_2'\n"
                                  "X 90 10 t f big=18446744073709551615 minus=-1\n";

TEST(what_decoding_finds_is_found)
{
    static const char *const words[] = {
        "shard_1", "SHARD", "2", "5",    "-7",      "path",   "one",   "tail",
        "begun",   "ended", "n", "x",    "nothing", "/data*", "*_2",   "-1",
        "1",       "",      "3", "list", "12",      "300",    "first", "18446744073709551615"};
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t = trace_text_load(sample, d, NULL);
    size_t hits = 0;
    for (size_t i = 0; i < TEST_COUNT(words); i++) {
        struct sv_arg_search s;
        uint8_t *is_match = sv_alloc((size_t)d->n_strings + 1);
        CONTEXT("word %s", words[i]);
        for (sv_str k = 1; k < d->n_strings; k++)
            is_match[k] = *words[i] && strcasestr(sv_dict_text(d, k).bytes, words[i]) != NULL;
        sv_arg_search_init(&s, t, words[i], is_match);
        for (uint64_t row = 0; row < t->slices.n; row++) {
            sv_str key;
            uint32_t list = t->slices.args[row];
            bool is_there = list && sv_arg_search_find(&s, list, &key) != NULL;
            CHECK(sv_arg_search_has(&s, list) == is_there);
            CHECK(sv_arg_search_has(&s, list) == is_there); /* as it was kept */
            hits += is_there;
        }
        sv_arg_search_fini(&s);
        free(is_match);
    }
    CHECK(hits > 40);
    sv_trace_free(t);
    sv_dict_free(d);
}
