/* Nsight Systems' SQLite exports: databases made here, of older and newer schemas, with tables
 * missing and with bad content. */
#include "formats/formats.h"
#include "store/trace.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

#ifdef SV_HAVE_SQLITE
#include <sqlite3.h>
#include <stdio.h>

struct report {
    struct sv_dict *dict;
    struct sv_trace *trace;
    struct sv_report report;
    struct sv_err err;
    int code;
};

static struct report read_bytes(const void *bytes, size_t size)
{
    struct report r = {.dict = sv_dict_new()};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_read_options options = {0};
    sv_report_init(&r.report);
    REQUIRE(sv_input_open_memory(bytes, size, "test", &in, &r.err) == 0);
    r.trace = sv_trace_new(r.dict, &r.report, 0);
    r.code = sv_format_open(&sv_nsys_format, in, &options, r.dict, &r.report, &source, &r.err);
    if (r.code == 0)
        r.code = sv_pump(source, sv_trace_sink(r.trace), NULL, &r.err);
    sv_input_close(in);
    return r;
}

/* A database of these statements, as bytes; freed with sqlite3_free(). */
static unsigned char *make(const char *sql, size_t *size)
{
    sqlite3 *db;
    char *message = NULL;
    sqlite3_int64 n = 0;
    REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        CHECK_STR_EQ(message, "");
    unsigned char *bytes = sqlite3_serialize(db, "main", &n, 0);
    sqlite3_close(db);
    *size = (size_t)n;
    return bytes;
}

static struct report read_sql(const char *sql)
{
    size_t size;
    unsigned char *bytes = make(sql, &size);
    struct report r = read_bytes(bytes, size);
    sqlite3_free(bytes);
    return r;
}

static void report_free(struct report *r)
{
    sv_trace_free(r->trace);
    sv_report_fini(&r->report);
    sv_dict_free(r->dict);
}

static uint64_t find(const struct report *r, const char *name)
{
    for (uint64_t i = 0; i < r->trace->slices.n; i++)
        if (strcmp(sv_dict_text(r->dict, r->trace->slices.name[i]).bytes, name) == 0)
            return i;
    CHECK_STR_EQ(name, "(among the slices)");
    return 0;
}

static const char *cat_of(const struct report *r, uint64_t row)
{
    return sv_dict_text(r->dict, r->trace->slices.cat[row]).bytes;
}

static bool arg(const struct report *r, uint64_t row, const char *key, struct sv_arg *a)
{
    sv_str s = sv_dict_find_str(r->dict, key, strlen(key));
    return s && sv_trace_arg(r->trace, r->trace->slices.args[row], s, a);
}

static int64_t int_of(const struct report *r, uint64_t row, const char *key)
{
    struct sv_arg a;
    return arg(r, row, key, &a) ? a.i : -1;
}

static bool text_is(const struct report *r, uint64_t row, const char *key, const char *text)
{
    struct sv_arg a;
    return arg(r, row, key, &a) && a.type == SV_ARG_TEXT && a.size == strlen(text) &&
           memcmp(a.text, text, a.size) == 0;
}

static const char *track_name(const struct report *r, sv_track t)
{
    return sv_dict_text(r->dict, r->dict->tracks[t].name).bytes;
}

/* Process 100, threads 100 and 101: (1 << 48) | (100 << 24) | tid */
#define PID  "281476654432256"
#define TID  "281476654432356"
#define TID2 "281476654432357"
#define STRINGS                                                                                 \
    "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);"                              \
    "INSERT INTO StringIds VALUES (1,'gemm<float>'), (2,'cudaLaunchKernel_v7000'), (3,'gemm')," \
    "(4,'cuMemcpyHtoDAsync_v2'), (5,'worker'), (6,'poll'), (7,'step'), (8,'{\"a\": 1}');"

static const char newer[] = STRINGS
    "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
    "INSERT INTO PROCESSES VALUES (" PID ", 100, 'python3');"
    "CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);"
    "INSERT INTO ThreadNames VALUES (5, 1, " TID2 ");"
    "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER);"
    "INSERT INTO TARGET_INFO_GPU VALUES (0,'H100',85899345920,132), (1,'L4',25769803776,58);"
    "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
    "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 100);"
    "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
    "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,"
    " contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,"
    " demangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ"
    " INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER,"
    " dynamicSharedMemory INTEGER, graphNodeId INTEGER, graphId INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000,3000,0,1,7,42," PID
    ",1,40,64,2,1,128,1,1,1024,2048,9,5);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,"
    " contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER,"
    " copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (4000,5000,0,1,7,43," PID ",4096,1,1,2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, "
    "streamId"
    " INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER, memKind "
    "INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (5000,5100,0,7,44," PID ",255,512,2);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId "
    "INTEGER,"
    " contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType"
    " INTEGER, eventId INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (6000,7000,0,1,7,45," PID
    ",3,4294967295);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,"
    " correlationId INTEGER, nameId INTEGER, returnValue INTEGER);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100,500," TID ",42,2,0), (600,700," TID2
    ",43,4,2);"
    "CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER,"
    " returnValue INTEGER);"
    "INSERT INTO OSRT_API VALUES (0, 50, " TID2 ", 6, 1);"
    "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, category INTEGER,"
    " color INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER, int64Value"
    " INTEGER, doubleValue REAL, jsonTextId INTEGER);"
    "INSERT INTO NVTX_EVENTS VALUES"
    " (0,NULL,75,NULL,NULL,'NCCL'," TID ",NULL,3,NULL,NULL,NULL),"
    " (0,NULL,33,7,NULL,'comm'," TID ",NULL,3,NULL,NULL,NULL),"
    " (10,9000,59,NULL,4278190335,NULL," TID ",7,0,NULL,NULL,NULL),"
    " (20,8000,59,7,NULL,'all_reduce'," TID ",NULL,3,NULL,NULL,8),"
    " (30,NULL,60,NULL,NULL,'open'," TID ",NULL,0,-5,NULL,NULL),"
    " (40,NULL,34,NULL,NULL,'mark'," TID ",NULL,0,NULL,0.5,NULL);"
    "CREATE TABLE SCHED_EVENTS (start INTEGER);";

TEST(nsys_newer_schema)
{
    struct report r = read_sql(newer);
    CHECK_INT_EQ(r.code, 0);
    CHECK_INT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_REALTIME);
    uint64_t k = find(&r, "gemm<float>");
    CHECK_INT_EQ(r.trace->slices.ts_ns[k], 1700000000000001000);
    CHECK_INT_EQ(r.trace->slices.dur_ns[k], 2000);
    CHECK_STR_EQ(cat_of(&r, k), "kernel");
    CHECK_INT_EQ(int_of(&r, k, "device"), 0);
    CHECK_INT_EQ(int_of(&r, k, "shared memory"), 3072);
    CHECK_INT_EQ(int_of(&r, k, "graph node id"), 9);
    sv_track stream = r.trace->slices.track[k], context = r.dict->tracks[stream].parent;
    CHECK_STR_EQ(track_name(&r, stream), "Stream 7");
    CHECK_STR_EQ(track_name(&r, context), "Context 1");
    /* CUDA's device 0 of this process is the machine's second one. */
    CHECK_STR_EQ(track_name(&r, r.dict->tracks[context].parent), "GPU 0 L4");
    uint64_t call = find(&r, "cudaLaunchKernel"), first;
    CHECK_STR_EQ(cat_of(&r, call), "cuda_runtime");
    CHECK_INT_EQ(sv_trace_flows_in(r.trace, (uint32_t)k, &first), 1);
    CHECK_INT_EQ(r.trace->flows.from[r.trace->flows.by_to[first]], call);
    report_free(&r);
}

TEST(nsys_copies_waits_and_calls)
{
    struct report r = read_sql(newer);
    uint64_t copy = find(&r, "Memcpy HtoD (Pinned -> Device)");
    CHECK_STR_EQ(cat_of(&r, copy), "gpu_memcpy");
    CHECK_INT_EQ(int_of(&r, copy, "bytes"), 4096);
    CHECK_STR_EQ(cat_of(&r, find(&r, "Memset (Device)")), "gpu_memset");
    CHECK_STR_EQ(cat_of(&r, find(&r, "Stream Sync")), "cuda_sync");
    CHECK_INT_EQ(int_of(&r, find(&r, "Stream Sync"), "wait_on_cuda_event_id"), -1);
    uint64_t call = find(&r, "cuMemcpyHtoDAsync");
    CHECK_STR_EQ(cat_of(&r, call), "cuda_driver");
    CHECK_INT_EQ(int_of(&r, call, "error"), 2);
    CHECK_STR_EQ(track_name(&r, r.trace->slices.track[call]), "worker");
    CHECK_STR_EQ(cat_of(&r, find(&r, "poll")), "osrt");
    CHECK_INT_EQ(sv_report_count(&r.report, SV_DAMAGE), 0);
    CHECK_INT_EQ(sv_report_count(&r.report, SV_SKIPPED), 1); /* SCHED_EVENTS */
    report_free(&r);
}

TEST(nsys_nvtx)
{
    struct report r = read_sql(newer);
    uint64_t step = find(&r, "step"), reduce = find(&r, "all_reduce"), open = find(&r, "open");
    CHECK_STR_EQ(cat_of(&r, step), "user_annotation");
    CHECK(text_is(&r, step, "color", "#0000ff"));
    CHECK(text_is(&r, reduce, "domain", "NCCL"));
    CHECK(text_is(&r, reduce, "category", "comm"));
    CHECK(text_is(&r, reduce, "payload", "{\"a\": 1}"));
    CHECK_INT_EQ(r.trace->slices.dur_ns[open], SV_UNFINISHED);
    CHECK_INT_EQ(int_of(&r, open, "payload"), -5);
    CHECK_STR_EQ(track_name(&r, r.trace->slices.track[open]), "NVTX ranges");
    report_free(&r);
}

/* No PROCESSES, no start time, short names only, NVTX by text, columns missing. */
TEST(nsys_older_schema)
{
    struct report r = read_sql(
        STRINGS
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,"
        " streamId INTEGER, correlationId INTEGER, globalPid INTEGER, shortName INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000,3000,2,7,42," PID ",3);"
        "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
        " globalTid INTEGER);"
        "INSERT INTO NVTX_EVENTS VALUES (10, 20, 59, 'old range', " TID ");");
    CHECK_INT_EQ(r.code, 0);
    CHECK_INT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_UNKNOWN);
    uint64_t k = find(&r, "gemm");
    CHECK_INT_EQ(r.trace->slices.ts_ns[k], 1000);
    sv_track stream = r.trace->slices.track[k];
    CHECK_STR_EQ(track_name(&r, r.dict->tracks[stream].parent), "GPU 2");
    find(&r, "old range");
    CHECK_INT_EQ(sv_report_count(&r.report, SV_DAMAGE), 0);
    report_free(&r);
}

TEST(nsys_rows_that_make_no_sense)
{
    struct report r = read_sql(
        STRINGS
        "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId, streamId,"
        " globalPid, demangledName);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (3000,1000,0,1,7," PID
        ",1)," /* ends first */
        " (NULL,1000,0,1,7," PID ",1), (7,1,0,1,7," PID ",1),"
        " ('text','more','x','y','z','w','v'), (5,6,-1,-9,99999999999," PID ",777),"
        " (X'0102', 7, 0, 1, 7, " PID ", 1);");
    CHECK_INT_EQ(r.code, 0);
    CHECK(sv_report_count(&r.report, SV_DAMAGE) >= 3);
    CHECK(r.trace->slices.n >= 1);
    report_free(&r);
}

TEST(nsys_times_that_do_not_fit_are_refused)
{
    static const char *const rows[] = {"(9223372036854775807,1,0,1,7," PID ",1)",
                                       "(1,9223372036854775807,0,1,7," PID ",1)"};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char sql[1024];
        CONTEXT("%s", rows[i]);
        snprintf(sql, sizeof sql,
                 "%sCREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
                 "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);"
                 "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, contextId,"
                 " streamId, globalPid, demangledName);"
                 "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES %s;",
                 STRINGS, rows[i]);
        struct report r = read_sql(sql);
        CHECK_INT_EQ(r.code, SV_ELIMIT);
        report_free(&r);
    }
}

TEST(nsys_only_plain_tables_are_read)
{
    /* A view that never ends, and a column that is computed. */
    struct report r = read_sql(
        STRINGS
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL"
        " SELECT start + 1 FROM n) SELECT start FROM n;"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER GENERATED ALWAYS AS"
        " (length(hex(zeroblob(1000000)))) VIRTUAL);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start) VALUES (1);"
        "CREATE TABLE OSRT_API (finish INTEGER); INSERT INTO OSRT_API VALUES (1);");
    CHECK_INT_EQ(r.code, 0);
    CHECK_INT_EQ(r.trace->slices.n, 0);
    CHECK(sv_report_count(&r.report, SV_DAMAGE) >= 1);
    CHECK_INT_EQ(sv_report_count(&r.report, SV_SKIPPED), 1); /* OSRT_API without its columns */
    report_free(&r);
}

TEST(nsys_other_databases_are_refused)
{
    struct report r = read_sql("CREATE TABLE slice (ts INTEGER);");
    CHECK_INT_EQ(r.code, SV_EFORMAT);
    CHECK(strstr(r.err.msg, "no export of Nsight Systems") != NULL);
    report_free(&r);
    r = read_bytes("SQLite format 3\0 and then nothing of the kind", 46);
    CHECK(r.code < 0);
    report_free(&r);
}

/* Every cut and many flips: whatever is read must end, and nothing may be written past its
 * place. */
TEST(nsys_damaged_files)
{
    size_t size;
    unsigned char *bytes = make(newer, &size), *copy = malloc(size);
    REQUIRE(copy != NULL);
    for (size_t cut = 0; cut < size; cut += size / 40 + 1) {
        struct report r = read_bytes(bytes, cut);
        report_free(&r);
    }
    uint64_t random = 88172645463325252u;
    for (int round = 0; round < 150; round++) {
        memcpy(copy, bytes, size);
        for (int i = 0; i < 20; i++) {
            random ^= random << 13, random ^= random >> 7, random ^= random << 17;
            copy[100 + random % (size - 100)] = (unsigned char)(random >> 32);
        }
        struct report r = read_bytes(copy, size);
        report_free(&r);
    }
    free(copy);
    sqlite3_free(bytes);
}

TEST(nsys_probe)
{
    size_t size;
    unsigned char *bytes = make(newer, &size);
    CHECK_INT_EQ(sv_nsys_format.probe(bytes, size), 99);
    sqlite3_free(bytes);
    bytes = make("CREATE TABLE t (x)", &size);
    CHECK_INT_EQ(sv_nsys_format.probe(bytes, size), 40);
    sqlite3_free(bytes);
    CHECK_INT_EQ(sv_nsys_format.probe((const uint8_t *)"SQLite", 6), 0);
}
#endif
