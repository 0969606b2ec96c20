/* Nsight Systems' SQLite exports, inside their reader: rows by the names of their columns, and what
 * is known of a report.
 *
 * nsys_read.c opens the database and walks its tables, nsys_tables.c says what a row means. Tables
 * and columns come and go between versions of Nsight Systems: a column that is absent reads as
 * NULL, a table that is absent is empty. */
#pragma once

#include "core/base/map.h"
#include "formats/lines.h"

struct sqlite3;
struct sqlite3_stmt;

/* A table of names. */
/* clang-format off */
#define SV_NSYS_COLUMNS(X) \
    X(start) X(end) X(timestamp) X(deviceId) X(contextId) X(streamId) X(correlationId) \
    X(globalPid) X(globalTid) X(demangledName) X(shortName) X(registersPerThread) X(gridX) \
    X(gridY) X(gridZ) X(blockX) X(blockY) X(blockZ) X(staticSharedMemory) \
    X(dynamicSharedMemory) X(localMemoryPerThread) X(graphNodeId) X(graphId) X(bytes) \
    X(copyKind) X(srcKind) X(dstKind) X(srcDeviceId) X(dstDeviceId) X(value) X(memKind) \
    X(syncType) X(eventId) X(nameId) X(returnValue) X(eventType) X(rangeId) X(category) \
    X(color) X(text) X(textId) X(endGlobalTid) X(domainId) X(uint64Value) X(int64Value) \
    X(doubleValue) X(uint32Value) X(int32Value) X(floatValue) X(jsonText) X(jsonTextId) \
    X(severity) X(id) X(name) X(pid) X(cudaId) X(gpuId) X(totalMemory) X(smCount) \
    X(computeMajor) X(computeMinor) X(busLocation) X(utcEpochNs) X(address) \
    X(memoryOperationType) X(typeId) X(metricId) X(metricName) X(overheadType) X(priority)
/* clang-format on */

#define SV_I_COLUMN(name) SV_NSYS_##name,
enum sv_nsys_column { SV_NSYS_COLUMNS(SV_I_COLUMN) SV_NSYS_COLUMNS_N };
#undef SV_I_COLUMN

struct sv_nsys {
    struct sv_lines lines; /* first */
    struct sqlite3 *db;
    void *copy; /* of an input that is not a file: the database in memory */
    struct sqlite3_stmt *rows;
    int16_t column[SV_NSYS_COLUMNS_N]; /* of `rows`, -1: absent */
    size_t table;                      /* being read */
    uint64_t n_rows, rows_max;         /* more rows than fit into the file: a loop in its pages */
    int64_t epoch_ns;                  /* added to all times */
    struct sv_map strings;             /* id → sv_str */
    struct sv_map processes, threads;  /* global id → name */
    struct sv_map gpus, cuda_devices;  /* id → name; (pid, CUDA's id) → id */
    struct sv_map domains, categories, metrics;
    struct sv_map tracks; /* of devices, contexts, streams, by a hash of where they are */
};

/* ---- of the row that is being read ---- */

bool sv_nsys_has(const struct sv_nsys *s, enum sv_nsys_column c); /* there, and not NULL */
int64_t sv_nsys_int(const struct sv_nsys *s, enum sv_nsys_column c);
double sv_nsys_double(const struct sv_nsys *s, enum sv_nsys_column c);
struct sv_text sv_nsys_text(const struct sv_nsys *s,
                            enum sv_nsys_column c); /* until the next row */
/* The text, or the text with this number. */
sv_str sv_nsys_string(struct sv_nsys *s, enum sv_nsys_column text, enum sv_nsys_column id);

/* ---- nsys_tables.c ---- */

struct sv_nsys_table {
    const char *name;
    /* One row. False: it is malformed, and is counted as damage. */
    bool (*row)(struct sv_nsys *s, struct sv_batch *b);
    enum sv_nsys_column needs; /* without this column the table is of no use */
    bool is_about;             /* describes others: read before all events */
};
extern const struct sv_nsys_table sv_nsys_tables[]; /* ends with a NULL name */
