/* A database of traces: its servers, its ledger of loaded files, and the load of a file.
 *
 * Exactly once: a load writes its rows under a number of its own (load_id), checks that the server
 * has as many as were sent, and becomes seen by one row of the ledger. A load that was killed is
 * never seen, and removed by a later one. A load of a file that is there replaces it in the same
 * moment. The file's rows and its ledger rows are on one server, so that one insert decides.
 *
 * States in the ledger: begun, done, dropped (not to be seen again). */
#pragma once

#include "clickhouse/client.h"
#include "core/base/sha256.h"
#include "sql/sql.h"

struct sv_ch_shard {
    char host[SV_CH_HOST_MAX];
};

struct sv_ch_db {
    struct sv_ch *client;
    const struct sv_ch_target *target;
    struct sv_ch_shard *shards; /* one without a cluster */
    size_t n_shards;
};

/* Finds the servers, every one of which must answer, and makes the tables where they are not
 * there. */
int sv_ch_db_open(struct sv_ch *c, struct sv_ch_db *db, struct sv_err *err);
void sv_ch_db_close(struct sv_ch_db *db); /* the client stays */

/* Who a file is. */
struct sv_ch_file {
    const char *path;
    const char *run; /* NULL: of any run, before the trace is read */
    char name[256];  /* the last part of its path */
    char sha256[SV_SHA256_TEXT];
    uint64_t size_bytes, inode;
    int64_t changed_ns;
    const char *host;
    int64_t rank;
};

/* Its name and what it holds. */
/* `paths`: the file, or the parts of one recording, whose first one gives the name. */
int sv_ch_file_read(struct sv_ch_file *f, const char *const *paths, size_t n, struct sv_err *err);
/* Nobody wrote to it since. */
int sv_ch_file_is_same(const struct sv_ch_file *f, struct sv_err *err);

/* What of a file is there. */
struct sv_ch_found {
    bool has_content;   /* the same bytes in the same run … */
    bool is_same_place; /* … under the same host, rank and name */
    bool has_place;     /* other bytes under the same host, rank and name */
    char run[256], name[256];
    size_t shard; /* where, if anything is there */
};
int sv_ch_find(struct sv_ch_db *db, const struct sv_ch_file *f, struct sv_ch_found *found,
               struct sv_err *err);

/* One row of the ledger. */
struct sv_ch_entry {
    const struct sv_ch_file *file;
    const char *host; /* the server */
    uint64_t load_id;
    int64_t start_ts, end_ts, world_size; /* world_size -1: unknown */
    bool has_realtime;
    int64_t realtime_offset;
    uint64_t slices;
};
int sv_ch_record(struct sv_ch_db *db, const struct sv_ch_entry *e, const char *state,
                 struct sv_err *err);
uint64_t sv_ch_new_id(void); /* of a load */
/* Removes the rows of a load from a server, whatever state it is in; it is not seen any more. An
 * insert that is still under way there stores its rows later: the next cleaning removes them. */
int sv_ch_drop(struct sv_ch_db *db, const char *host, const char *run, uint64_t load_id,
               struct sv_err *err);
/* Removes what is stored of loads that were replaced or dropped, or that a process began that no
 * longer runs (of other machines: a day ago). */
int sv_ch_clean(struct sv_ch_db *db, const char *host, struct sv_err *err);

struct sv_ch_progress {
    void (*call)(void *ctx, const char *table, uint64_t rows);
    /* After a table: values that were not of their column's type and are NULL; 0: none. */
    void (*lost)(void *ctx, const char *table, uint64_t n);
    void *ctx;
};

/* Loads the tables of `q`, an open connection over the trace of the file; the file was not found or
 * is to be replaced. */
int sv_ch_load(struct sv_ch_db *db, const struct sv_ch_file *f, const struct sv_ch_found *found,
               struct sv_sql *q, const struct sv_trace *t, const struct sv_ch_progress *progress,
               struct sv_err *err);
