/* Call paths for flame graphs, and layers for the layer-wise plot: sums that can be checked by
 * hand. */
#include "core/base/buf.h"
#include "stats/calltree.h"
#include "subjects/steps/layers.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <inttypes.h>
#include <string.h>

/* "depth name total/self*count" of every call, in the order of drawing. */
static void add_calls(const struct sv_calltree *c, uint32_t at, size_t k, struct sv_buf *b)
{
    const struct sv_call_node *x = &c->calls[at];
    sv_buf_printf(b, "%s%u %s %" PRId64 "/%" PRId64 "*%" PRIu64, b->len ? ", " : "", x->depth,
                  x->name, x->total_ns[k], x->self_ns[k], x->count[k]);
    for (uint32_t i = 0; i < x->n_children; i++)
        add_calls(c, c->order[x->first_child + i], k, b);
}

static void check_tree(const char *text, const struct sv_calltree_options *o, const char *expected)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t = trace_text_load(text, d, NULL);
    const struct sv_trace *traces[] = {t};
    struct sv_calltree c;
    struct sv_buf b;
    sv_buf_init(&b, 1u << 16);
    sv_calltree_make(&c, traces, 1, o);
    add_calls(&c, 0, 0, &b);
    CHECK_STR_EQ(sv_buf_cstr(&b), expected);
    sv_calltree_fini(&c);
    sv_buf_fini(&b);
    sv_trace_free(t);
    sv_dict_free(d);
}

TEST(adds_up_by_path)
{
    struct sv_calltree_options o = {0};
    check_tree("X 0 100 t a\nX 10 20 t b\nX 40 30 t b\nX 45 5 t c\nX 200 10 t a\n", &o,
               "0 all 110/0*0, 1 t 110/0*0, 2 a 110/60*2, 3 b 50/45*2, 4 c 5/5*1");
}

TEST(numbers_in_track_names_do_not_count)
{
    struct sv_calltree_options o = {0};
    check_tree("X 0 10 worker-1 a\nX 0 20 worker-22 a\nX 0 5 other a\n", &o,
               "0 all 35/0*0, 1 worker- 30/0*0, 2 a 30/30*2, 1 other 5/0*0, 2 a 5/5*1");
    o.merge_tracks = true;
    check_tree("X 0 10 worker-1 a\nX 0 20 worker-22 a\nX 0 5 other a\n", &o,
               "0 all 35/0*0, 1 a 35/35*3");
}

TEST(steps_are_one_path)
{
    struct sv_calltree_options o = {.merge_tracks = true};
    check_tree("X 0 10 t ProfilerStep#1\nX 2 3 t f\nX 10 10 t ProfilerStep#2\nX 12 4 t f\n", &o,
               "0 all 20/0*0, 1 ProfilerStep# 20/13*2, 2 f 7/7*2");
}

TEST(a_window_clips)
{
    struct sv_calltree_options o = {.merge_tracks = true, .from_ns = 50, .to_ns = 100};
    check_tree("X 0 200 t a\nX 40 20 t b\nX 90 20 t b\nX 150 10 t b\n", &o,
               "0 all 50/0*0, 1 a 50/30*1, 2 b 20/20*3");
}

TEST(instants_and_unfinished_slices)
{
    struct sv_calltree_options o = {.merge_tracks = true};
    check_tree("B 0 t a\nI 5 t mark\nB 10 t b\nE 30 t\nX 0 100 u c\n", &o,
               "0 all 200/0*0, 1 a 100/80*1, 2 b 20/20*1, 1 c 100/100*1");
}

TEST(two_traces_meet_by_path)
{
    struct sv_dict *d[2] = {sv_dict_new(), sv_dict_new()};
    struct sv_trace *t[2] = {
        trace_text_load("X 0 100 t a\nX 10 20 t gone\n", d[0], NULL),
        trace_text_load("X 0 50 t new\nX 50 80 t a\n", d[1], NULL),
    };
    const struct sv_trace *traces[] = {t[0], t[1]};
    struct sv_calltree c;
    struct sv_buf b;
    sv_buf_init(&b, 1u << 16);
    sv_calltree_make(&c, traces, 2, &(struct sv_calltree_options){.merge_tracks = true});
    add_calls(&c, 0, 0, &b);
    CHECK_STR_EQ(sv_buf_cstr(&b), "0 all 100/0*0, 1 a 100/80*1, 2 gone 20/20*1, 1 new 0/0*0");
    sv_buf_clear(&b);
    add_calls(&c, 0, 1, &b);
    CHECK_STR_EQ(sv_buf_cstr(&b), "0 all 130/0*0, 1 a 80/80*1, 2 gone 0/0*0, 1 new 50/50*1");
    sv_calltree_fini(&c);
    sv_buf_fini(&b);
    for (unsigned i = 0; i < 2; i++) {
        sv_trace_free(t[i]);
        sv_dict_free(d[i]);
    }
}

/* ---- layers ---- */

static void check_layers(const char *text, const char *expected)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t = trace_text_load(text, d, NULL);
    struct sv_layers l;
    struct sv_buf b;
    sv_buf_init(&b, 1u << 16);
    sv_layers_find(&l, t, INT64_MIN, INT64_MAX);
    for (size_t i = 0; i < l.n; i++) {
        sv_buf_printf(&b, "%s%" PRId64 ":", i ? "; " : "", l.layers[i].number);
        for (size_t k = 0; k < SV_N_LAYER; k++)
            if (l.layers[i].ns[k])
                sv_buf_printf(&b, " %s %" PRId64, sv_layer_names[k], l.layers[i].ns[k]);
    }
    if (l.outside_ns)
        sv_buf_printf(&b, "; outside %" PRId64, l.outside_ns);
    CHECK_STR_EQ(sv_buf_cstr(&b), expected);
    sv_layers_fini(&l);
    sv_buf_fini(&b);
    sv_trace_free(t);
    sv_dict_free(d);
}

TEST(layers_by_name_argument_and_track)
{
    check_layers("X 0 100 t model.layers.3\nX 10 20 t self_attn\nX 40 30 t mlp_gemm\n",
                 "3: attention 20 gemm 30 other 50");
    check_layers("X 0 10 t attn layer=2\nX 20 10 t rms_norm layer=1\nX 40 7 t read\n",
                 "1: norm 10; 2: attention 10; outside 7");
    check_layers("X 0 10 Layer_5 topk\nX 20 10 Layer_11 silu\n", "5: routing 10; 11: act 10");
    check_layers("X 0 9 t DecoderLayer_7\nX 10 9 t layerless\nX 30 1 t player\n",
                 "7: other 9; outside 10");
}

TEST(no_layers_where_nothing_says_so)
{
    check_layers("X 0 10 t a\nX 20 10 u b\n", "");
    check_layers("", "");
}
