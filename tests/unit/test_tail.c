/* The end of a recording: what is read of it is what comes last, whole and in its place. */
#include "files/load.h"
#include "files/tail.h"
#include "tests/harness/test.h"
#include "trace_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_SLICES = 4000 };

static void write_bytes(const char *path, const struct sv_buf *b)
{
    FILE *f = fopen(path, "wb");
    REQUIRE(f != NULL);
    REQUIRE(fwrite(b->data, 1, b->len, f) == b->len);
    REQUIRE(fclose(f) == 0);
}

/* Slices with their number as name, in a file with a resync point every 2,000 bytes. */
static void write_recording(const char *path, struct sv_buf *bytes)
{
    struct sv_err err = {0};
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_report report;
    struct sv_buf text;
    struct sv_dict *d = sv_dict_new();
    sv_report_init(&report);
    sv_buf_init(&text, 1u << 20);
    for (int i = 0; i < N_SLICES; i++)
        sv_buf_printf(&text, "X %d 5 t n%d\n", 1000 + i * 10, i);
    struct sv_trace *t = trace_text_load(sv_buf_cstr(&text), d, NULL);
    struct sv_source *source = sv_trace_source(t, &report);
    REQUIRE(sv_output_open_buf(bytes, SV_PLAIN, &out, &err) == 0);
    REQUIRE(sv_format_named("perfetto")
                ->writer->open(out, &(struct sv_write_options){.resync_bytes = 2000}, d, &report,
                               &sink, &err) == 0);
    REQUIRE(sv_pump(source, sink, NULL, &err) == 0);
    write_bytes(path, bytes);
    sv_trace_free(t);
    sv_dict_free(d);
    sv_buf_fini(&text);
    sv_report_fini(&report);
}

static struct sv_loaded load_tail(const char *path, uint64_t bytes)
{
    struct sv_loaded l;
    struct sv_err err = {0};
    struct sv_load_how how = {.index = SV_INDEX_NOT_USED, .is_live = true, .tail_bytes = bytes};
    REQUIRE(sv_load(path, &how, &l, &err) == 0);
    return l;
}

/* The last so many slices, each with its own time and name. */
static uint64_t check_last(const struct sv_loaded *l)
{
    const struct sv_slices *c = &l->trace->slices;
    for (uint64_t i = 0; i < c->n; i++) {
        char name[32];
        int number = (int)(N_SLICES - c->n + i);
        snprintf(name, sizeof name, "n%d", number);
        CHECK_INT_EQ(c->ts_ns[i], 1000 + number * 10);
        CHECK_INT_EQ(c->dur_ns[i], 5);
        CHECK_STR_EQ(sv_dict_text(l->dict, c->name[i]).bytes, name);
    }
    return c->n;
}

TEST(the_end_of_a_recording_is_read_alone)
{
    char path[] = "tail_test_XXXXXX";
    struct sv_buf bytes;
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    close(fd);
    sv_buf_init(&bytes, 1u << 24);
    write_recording(path, &bytes);
    struct sv_loaded l = load_tail(path, bytes.len / 4);
    CHECK(l.in.piece.bytes > 0 && l.in.piece.bytes <= bytes.len / 4);
    uint64_t n = check_last(&l);
    CHECK(n > N_SLICES / 8 && n < N_SLICES / 2);
    sv_loaded_free(&l);
    l = load_tail(path, bytes.len + 1); /* more than there is: all */
    CHECK_UINT_EQ(l.in.piece.bytes, 0);
    CHECK_UINT_EQ(check_last(&l), N_SLICES);
    sv_loaded_free(&l);
    l = load_tail(path, 30); /* no resync point so near its end: all */
    CHECK_UINT_EQ(check_last(&l), N_SLICES);
    sv_loaded_free(&l);
    unlink(path);
    sv_buf_fini(&bytes);
}
