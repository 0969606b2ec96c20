/* The law of a trace for every reader: what it reads of a sample is the same after each writer and
 * its reader.
 *
 * The samples are the golden files and those that fuzzing begins with, good and damaged: whatever a
 * reader makes of them is a trace. Compared is what the traces say (canon.h), without arguments
 * where JSON has no place for them (docs/formats.md). */
#include "core/stream/stages.h"
#include "formats/formats.h"
#include "tests/harness/canon.h"
#include "tests/harness/test.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BYTES_MAX ((size_t)1 << 28)

struct reading {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_input *in;
    struct sv_source *source;
};

/* False: no format, or none that begins; that is for other tests. */
static bool read_open(struct reading *r, struct sv_input *in, const struct sv_format *f)
{
    struct sv_err err = {0};
    struct sv_read_options options = {0};
    *r = (struct reading){.dict = sv_dict_new(), .in = in};
    sv_report_init(&r->report);
    return f && sv_format_reads(f) &&
           sv_format_open(f, in, &options, r->dict, &r->report, &r->source, &err) == 0;
}

static void read_close(struct reading *r)
{
    sv_input_close(r->in);
    sv_report_fini(&r->report);
    sv_dict_free(r->dict);
}

/* Has it arguments that JSON says in another way? */
static bool has_other_args(const char *text)
{
    static const char *const signs[] = {"=pointer:", "=nan", "=inf", "=-inf", "\"correlation\"="};
    for (size_t i = 0; i < TEST_COUNT(signs); i++)
        if (strstr(text, signs[i]))
            return true;
    return false;
}

/* What the sample says; false: it is refused. */
static bool say_sample(const char *path, struct sv_buf *text, unsigned flags,
                       const struct sv_format **format)
{
    struct sv_err err = {0};
    struct reading r;
    struct sv_input *in;
    REQUIRE(sv_input_open(path, &in, &err) == 0);
    *format = sv_format_probe(in, &err);
    bool ok = read_open(&r, in, *format);
    if (ok) {
        struct sv_trace *t = sv_trace_new(r.dict, NULL, 0);
        ok = sv_pump(r.source, sv_trace_sink(t), NULL, &err) == 0;
        if (ok)
            canon(text, t, flags);
        sv_trace_free(t);
    }
    read_close(&r);
    return ok;
}

/* The sample through a writer into memory; what was left out is counted. */
static uint64_t write_sample(const char *path, const struct sv_format *format, struct sv_buf *bytes)
{
    struct sv_err err = {0};
    struct reading r;
    struct sv_input *in;
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_write_options options = {0};
    REQUIRE(sv_input_open(path, &in, &err) == 0);
    REQUIRE(read_open(&r, in, sv_format_probe(in, &err)));
    REQUIRE(sv_output_open_buf(bytes, SV_PLAIN, &out, &err) == 0);
    struct sv_report report;
    sv_report_init(&report);
    REQUIRE(format->writer->open(out, &options, r.dict, &report, &sink, &err) == 0);
    CHECK_INT_EQ(sv_pump(r.source, sink, NULL, &err), 0);
    CHECK_STR_EQ(err.msg, "");
    uint64_t skipped = sv_report_count(&report, SV_SKIPPED);
    sv_report_fini(&report);
    read_close(&r);
    return skipped;
}

static void check_writer(const char *path, const char *writer, const char *want, unsigned flags)
{
    struct sv_err err = {0};
    struct sv_buf bytes, got;
    struct reading r;
    struct sv_input *in;
    const struct sv_format *f = sv_format_named(writer);
    sv_buf_init(&bytes, BYTES_MAX);
    sv_buf_init(&got, BYTES_MAX);
    uint64_t skipped = write_sample(path, f, &bytes);
    REQUIRE(sv_input_open_memory(bytes.data, bytes.len, "law", &in, &err) == 0);
    REQUIRE(read_open(&r, in, f));
    canon_source(&got, r.source, flags);
    CHECK_UINT_EQ(skipped, 0);
    canon_equal(want, sv_buf_cstr(&got));
    read_close(&r);
    sv_buf_fini(&bytes);
    sv_buf_fini(&got);
}

static void check_sample(const char *path, const char *name, size_t *n)
{
    static const char *const writers[] = {"text", "perfetto", "chrome"};
    struct sv_buf want;
    const struct sv_format *format;
    sv_buf_init(&want, BYTES_MAX);
    if (say_sample(path, &want, 0, &format)) {
        (*n)++;
        for (size_t i = 0; i < TEST_COUNT(writers); i++) {
            bool is_json = strcmp(writers[i], "chrome") == 0;
            unsigned flags = is_json && has_other_args(sv_buf_cstr(&want)) ? CANON_NO_ARGS : 0;
            if (strcmp(writers[i], "text") != 0)
                flags |= CANON_UTF8;
            CONTEXT("%s, by %s to %s", name, format->name, writers[i]);
            say_sample(path, &want, flags, &format);
            check_writer(path, writers[i], sv_buf_cstr(&want), flags);
        }
    }
    sv_buf_fini(&want);
}

static void check_folder(const char *folder, size_t *n)
{
    DIR *d = opendir(test_source(folder));
    REQUIRE(d != NULL);
    char path[4096];
    struct stat st;
    for (struct dirent *e; (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        const char *full = test_source(path);
        if (stat(full, &st) == 0 && S_ISREG(st.st_mode))
            check_sample(full, path, n);
    }
    closedir(d);
}

TEST(what_a_reader_reads_is_the_same_after_each_writer)
{
    size_t n = 0;
    check_folder("tests/golden/good", &n);
    check_folder("tests/golden/bad", &n);
    DIR *d = opendir(test_source("tests/fuzz/corpus"));
    REQUIRE(d != NULL);
    for (struct dirent *e; (e = readdir(d));) {
        char folder[512];
        const char *read = strstr(e->d_name, "_read");
        snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", e->d_name);
        if (read && read[5] == 0)
            check_folder(folder, &n);
    }
    closedir(d);
    CHECK(n > 100);
}
