/* Rows of batches: from the seed's CSV, with all that may be wrong with one, and from traces. */
#include "subjects/serving/rows.h"

#include "formats/formats.h"
#include "tests/harness/test.h"

#include <string.h>

#define HEADER                                                                              \
    "batch_id,model_name,worker_id,worker_type,device_id,batch_size,request_ids,"           \
    "request_arrival_us,queue_ms,batch_ms,submit_ms,scheduling_ms,codelet_ms,inference_ms," \
    "callback_ms,total_ms,warmup"

struct made {
    struct sv_batch_rows b;
    struct sv_report findings;
    struct sv_err err;
    int code;
};

static struct made read_trace(const char *text, const struct sv_format *format)
{
    struct made m = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_dict *d = sv_dict_new();
    sv_batch_rows_init(&m.b);
    sv_report_init(&m.findings);
    REQUIRE(sv_input_open_memory(text, strlen(text), "test", &in, &m.err) == 0);
    m.code =
        sv_format_open(format, in, &(struct sv_read_options){0}, d, &m.findings, &source, &m.err);
    if (m.code >= 0) {
        struct sv_trace *t = sv_trace_new(d, &m.findings, 0);
        m.code = sv_pump(source, sv_trace_sink(t), NULL, &m.err);
        sv_batch_rows_from_trace(&m.b, t);
        sv_trace_free(t);
    }
    sv_input_close(in);
    sv_dict_free(d);
    return m;
}

static struct made read_csv(const char *text)
{
    return read_trace(text, &sv_batching_csv_format);
}

static void unmake(struct made *m)
{
    sv_batch_rows_fini(&m->b);
    sv_report_fini(&m->findings);
}

TEST(rows_of_the_seeds_csv)
{
    struct made m =
        read_csv(HEADER "\n7,\"bert, \"\"big\"\"\",2,\"cuda\",0,8,\"5;6;9\",\"1000;1500;2000\","
                        "1.000,0.500,0.750,0.250,3.000,3.100,0.125,5.500,false\n"
                        "3,\"bert\",0,\"cpu\",-1,1,\"4\",\"900\",0,0,0,0,2.5,2.5,0,2.5,false\n"
                        "4,\"bert\",0,\"cpu\",-1,1,\"4\",\"900\",0,0,0,0,2.5,2.5,0,2.5,true\n");
    CHECK_INT_EQ(m.code, 0);
    REQUIRE(m.b.n == 2); /* warm-up does not count */
    const struct sv_batch_row *r = &m.b.rows[1];
    CHECK_UINT_EQ(m.b.rows[0].id, 3); /* by number */
    CHECK_UINT_EQ(r->id, 7);
    CHECK_UINT_EQ(r->size, 8);
    CHECK_UINT_EQ(r->n_requests, 3);
    CHECK_INT_EQ(r->arrival_ns, 1000000);
    CHECK_INT_EQ(r->end_ns, 6500000);
    CHECK_INT_EQ(r->column_ns[SV_BATCH_CALLBACK], 125000);
    CHECK_INT_EQ(r->phase_ns[SV_PHASE_SUBMIT], 250000); /* without the batch in it */
    CHECK_INT_EQ(r->phase_ns[SV_BATCH_REST], 375000);
    int64_t sum = 0;
    for (size_t i = 0; i < SV_N_BATCH_PHASES; i++)
        sum += r->phase_ns[i];
    CHECK_INT_EQ(sum, r->total_ns);
    REQUIRE(m.b.n_workers == 2);
    CHECK_STR_EQ(m.b.workers[r->worker].type, "cuda");
    CHECK_UINT_EQ(m.b.workers[r->worker].device, SV_BATCH_GPU);
    CHECK_UINT_EQ(m.b.requests[r->first_request + 2].id, 9);
    CHECK_INT_EQ(m.b.requests[r->first_request + 2].arrival_ns, 2000000);
    unmake(&m);
}

TEST(exclusive_phases_are_taken_where_the_file_has_them)
{
    struct made m =
        read_csv(HEADER ",congested,excl_queue_ms,excl_batch_ms,excl_submit_ms,excl_scheduling_ms,"
                        "excl_run_ms,excl_callback_ms\n"
                        "1,m,0,cpu,-1,1,1,10,1,1,1,1,1,1,1,6,false,true,0.5,1,1,1,2,0.25\n");
    CHECK_INT_EQ(m.code, 0);
    REQUIRE(m.b.n == 1);
    CHECK(m.b.rows[0].is_congested && m.b.has_congestion && m.b.has_phases);
    CHECK_INT_EQ(m.b.rows[0].phase_ns[SV_PHASE_QUEUE], 500000);
    CHECK_INT_EQ(m.b.rows[0].phase_ns[SV_PHASE_RUN], 2000000);
    CHECK_INT_EQ(m.b.rows[0].phase_ns[SV_PHASE_CALLBACK], 500000);
    unmake(&m);
}

TEST(bad_files_of_batches)
{
    static const struct {
        const char *text;
        int code;
        const char *message; /* part of it */
        size_t rows, damaged;
    } rows[] = {
        {"", SV_EFORMAT, "empty", 0, 0},
        {"\n\r\n", SV_EFORMAT, "no column batch_id", 0, 0},
        {"batch_id,total_ms\n1,2\n", SV_EFORMAT, "worker_id, worker_type, batch_size, queue_ms", 0,
         0},
        {HEADER "\n", 0, NULL, 0, 0},
        {HEADER "\n1,m,0,cpu,-1,1,1,10,1,1,1,1,1,1,1,nan,false\n", 0, NULL, 0, 1},
        {HEADER "\n1,m,0,cpu,-1,1,1,10,1,1,1,1,1,1,1,inf,false\n", 0, NULL, 0, 1},
        {HEADER "\n1,m,0,cpu,-1,1,1,10,1,1,1,1,1,1,1,-3,false\n", 0, NULL, 0, 1},
        {HEADER "\n1,m,0,cpu,-1,1,1,10,,1,1,1,1,1,1,3,false\n", 0, NULL, 0, 1},
        {HEADER "\nx,m,0,cpu,-1,1,1,10,1,1,1,1,1,1,1,3,false\n", 0, NULL, 0, 1},
        {HEADER "\n1,m,0\n2,m,0,cpu,-1,1,1,10,1,1,1,1,1,1,1,9,false\n", 0, NULL, 1, 1},
        {HEADER "\n2,\"m,0,cpu,-1,1,1,10,1,1,1,1,1,1,1,9,false\n", 0, NULL, 0, 1},
        {HEADER "\n2,m,0,cpu,-1,1,\"1;x;\",\"10;nan\",1,1,1,1,1,1,1,9,false", 0, NULL, 0, 1},
        {"\xef\xbb\xbf" HEADER "\r\n2,m,0,cpu,-1,1,1,10,1,1,1,1,1,1,1,9,false\r\n", 0, NULL, 1, 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct made m = read_csv(rows[i].text);
        CONTEXT("row %zu", i);
        CHECK_INT_EQ(m.code, rows[i].code);
        CHECK(!rows[i].message || strstr(m.err.msg, rows[i].message));
        CHECK_UINT_EQ(m.b.n, rows[i].rows);
        CHECK_UINT_EQ(sv_report_count(&m.findings, SV_DAMAGE), rows[i].damaged);
        unmake(&m);
    }
}

TEST(a_summary_without_arrivals_or_numbers_of_requests)
{
    struct made m =
        read_csv("batch_id,worker_id,worker_type,batch_size,queue_ms,batch_ms,submit_ms,"
                 "scheduling_ms,codelet_ms,inference_ms,callback_ms,total_ms\n"
                 "5,0,cpu,3,1,0.5,0.75,0.25,3,3,0.5,5.5\n"
                 "6,0,cpu,2000,1,0.5,0.75,0.25,3,3,0.5,5.5\n");
    CHECK_INT_EQ(m.code, 0);
    REQUIRE(m.b.n == 2);
    const struct sv_batch_row *r = &m.b.rows[0];
    CHECK_UINT_EQ(r->n_requests, 3);
    CHECK(r->arrival_ns == SV_BATCH_UNKNOWN && r->end_ns == SV_BATCH_UNKNOWN);
    CHECK(m.b.requests[r->first_request].arrival_ns == SV_BATCH_UNKNOWN);
    CHECK_INT_EQ(r->total_ns, 5500000);
    CHECK_INT_EQ(r->phase_ns[SV_PHASE_QUEUE], 1000000);
    CHECK_INT_EQ(r->phase_ns[SV_PHASE_RUN], 3000000);
    CHECK_UINT_EQ(m.b.rows[1].size, 2000);
    CHECK_UINT_EQ(m.b.rows[1].n_requests, 1024);
    CHECK_UINT_EQ(sv_report_count(&m.findings, SV_SKIPPED), 976);
    CHECK_UINT_EQ(sv_report_count(&m.findings, SV_NOTE), 2);
    unmake(&m);
}

TEST(a_summary_is_recognised)
{
    static const char metrics[] = "timestamp_us,queue_size,rejected_total\n";
    CHECK(sv_batching_csv_format.probe((const uint8_t *)HEADER "\n", sizeof HEADER));
    CHECK(!sv_batching_csv_format.probe((const uint8_t *)metrics, sizeof metrics - 1));
    CHECK(!sv_batching_csv_format.probe((const uint8_t *)"{\"traceEvents\"", 14));
    CHECK(!sv_batching_csv_format.probe(NULL, 0));
}

TEST(rows_of_the_seeds_trace)
{
    struct made m = read_trace(
        "{\"traceEvents\":["
        "{\"name\":\"request_enqueued\",\"cat\":\"batching\",\"ph\":\"i\",\"ts\":100,\"pid\":1,"
        "\"tid\":1,"
        "\"args\":{\"request_id\":7}},"
        "{\"name\":\"request_enqueued\",\"cat\":\"batching\",\"ph\":\"i\",\"ts\":150,\"pid\":1,"
        "\"tid\":1,"
        "\"args\":{\"request_id\":8}},"
        "{\"name\":\"batch\",\"cat\":\"batching\",\"ph\":\"X\",\"ts\":100,\"dur\":50,\"pid\":1,"
        "\"tid\":2,"
        "\"args\":{\"batch_id\":21,\"batch_size\":9,\"model_name\":\"demo\",\"request_ids\":[7,8]}}"
        ","
        "{\"name\":\"batch_build\",\"cat\":\"batching\",\"ph\":\"X\",\"ts\":200,\"dur\":30,\"pid\":"
        "1,\"tid\":3,"
        "\"args\":{\"batch_id\":21,\"batch_size\":9,\"model_name\":\"demo\",\"request_ids\":[7,8]}}"
        ","
        "{\"name\":\"batch_submitted\",\"cat\":\"batching\",\"ph\":\"X\",\"ts\":240,\"dur\":1,"
        "\"pid\":1,\"tid\":4,"
        "\"args\":{\"batch_id\":21,\"batch_size\":2}},"
        "{\"name\":\"demo\",\"cat\":\"batching\",\"ph\":\"X\",\"ts\":300,\"dur\":400,\"pid\":1,"
        "\"tid\":1010,"
        "\"args\":{\"batch_id\":21,\"batch_size\":9,\"worker_id\":1,\"worker_type\":\"cuda\"}},"
        "{\"name\":\"warming_demo\",\"cat\":\"batching\",\"ph\":\"X\",\"ts\":30,\"dur\":40,\"pid\":"
        "1,\"tid\":1010,"
        "\"args\":{\"warming_batch_id\":1,\"warming_worker_id\":1}}]}",
        &sv_chrome_format);
    REQUIRE(m.b.n == 1);
    const struct sv_batch_row *r = &m.b.rows[0];
    CHECK_UINT_EQ(r->id, 21);
    CHECK_UINT_EQ(r->size, 9);
    CHECK_UINT_EQ(r->n_requests, 2);
    CHECK_UINT_EQ(m.b.requests[r->first_request + 1].id, 8);
    CHECK_INT_EQ(r->total_ns, 600000);
    CHECK_INT_EQ(r->column_ns[SV_BATCH_SUBMIT], 40000);
    CHECK_INT_EQ(r->column_ns[SV_BATCH_SCHEDULING], 60000);
    CHECK_INT_EQ(r->column_ns[SV_BATCH_CODELET], 400000);
    CHECK_STR_EQ(m.b.workers[r->worker].type, "cuda");
    CHECK_INT_EQ(m.b.workers[r->worker].number, 1);
    unmake(&m);
}
