/* The servers of a database and its tables on them. Called once per command, before files are
 * loaded. */
#include "clickhouse/database.h"

#include "clickhouse/answer.h"
#include "clickhouse/schema.h"
#include "core/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHARDS_MAX = 4096 };

/* ---- servers ---- */

static int add_shard(void *ctx, const struct sv_cell *cells, struct sv_err *err)
{
    struct sv_ch_db *db = ctx;
    const char *name = cells[0].type == SV_CELL_TEXT ? cells[0].text : "";
    char host[SV_CH_HOST_MAX];
    if (cells[1].type != SV_CELL_INT || cells[1].i > 1)
        return sv_error(err, SV_ELIMIT,
                        "the cluster '%s' has replicas, which Stave cannot fill: use a cluster "
                        "with one replica per shard",
                        db->target->cluster);
    if (db->n_shards == SHARDS_MAX)
        return sv_error(err, SV_ELIMIT, "the cluster has more than %d shards", SHARDS_MAX);
    snprintf(host, sizeof host, strchr(name, ':') ? "[%.250s]" : "%.250s",
             *name ? name : db->target->host);
    if (!sv_ch_host_is_valid(host))
        return sv_error(err, SV_EIO, "the server names a shard '%.100s', which is no host", host);
    for (size_t i = 0; i < db->n_shards; i++)
        if (strcmp(db->shards[i].host, host) == 0)
            return sv_error(err, SV_ELIMIT,
                            "two shards have the host %.100s: each is reached by its host and the "
                            "port of the URL, so each needs a host of its own",
                            host);
    db->shards = sv_realloc(db->shards, (db->n_shards + 1) * sizeof *db->shards);
    memcpy(db->shards[db->n_shards++].host, host, sizeof host);
    return 0;
}

static int find_shards(struct sv_ch_db *db, struct sv_err *err)
{
    char sql[512];
    if (!*db->target->cluster) {
        db->shards = sv_alloc(sizeof *db->shards);
        memcpy(db->shards[0].host, db->target->host, sizeof db->target->host);
        db->n_shards = 1;
        return 0;
    }
    snprintf(sql, sizeof sql,
             "SELECT if(is_local = 1, '', host_name), replica_num FROM system.clusters WHERE "
             "cluster = '%s' ORDER BY shard_num, replica_num",
             db->target->cluster);
    int code = sv_ch_each(db->client, NULL, sql, 2, add_shard, db, err);
    if (code >= 0 && db->n_shards == 0)
        code = sv_error(err, SV_EIO, "ClickHouse at %.100s:%u knows no cluster '%s'",
                        db->target->host, (unsigned)db->target->port, db->target->cluster);
    return code;
}

/* ---- tables ---- */

/* A database that was made for one server shows that server's part only, whatever cluster is named
 * later. */
static int check_kind(struct sv_ch_db *db, const char *host, struct sv_err *err)
{
    const struct sv_ch_target *t = db->target;
    char sql[1024];
    int64_t n = 0;
    if (*t->cluster)
        snprintf(sql, sizeof sql,
                 "SELECT count() FROM system.tables WHERE database = '%s' AND name = 'slice' AND "
                 "replaceRegexpAll(engine_full, '[`\\']', '') LIKE 'Distributed(%s,%%'",
                 t->database, t->cluster);
    else
        snprintf(sql, sizeof sql,
                 "SELECT count() FROM system.tables WHERE database = '%s' AND name = 'slice' AND "
                 "engine = 'View'",
                 t->database);
    int code = sv_ch_number(db->client, host, sql, &n, err);
    if (code >= 0 && n == 0)
        code = sv_error(err, SV_EIO,
                        "the database %s at %.100s was made %s: use another database, or the "
                        "cluster it was made for",
                        t->database, host,
                        *t->cluster ? "for another cluster or for one server" : "for a cluster");
    return code;
}

/* Views of an older Stave are made anew: no row is stored in them. */
static int drop_old_views(struct sv_ch_db *db, const char *host, struct sv_err *err)
{
    struct sv_buf find, drop;
    int code = 0;
    sv_buf_init(&find, 1u << 16);
    sv_buf_init(&drop, 1u << 16);
    for (size_t i = 0; code >= 0 && sv_ch_old_view(db->target, i, &find, &drop); i++) {
        int64_t n = 0;
        code = sv_ch_number(db->client, host, sv_buf_cstr(&find), &n, err);
        if (code >= 0 && n > 0)
            code = sv_ch_ask(db->client, host, 0, sv_buf_cstr(&drop), drop.len, NULL, err);
        sv_buf_clear(&find);
        sv_buf_clear(&drop);
    }
    sv_buf_fini(&find);
    sv_buf_fini(&drop);
    return code;
}

static int make_tables(struct sv_ch_db *db, const char *host, struct sv_err *err)
{
    const struct sv_ch_target *t = db->target;
    struct sv_buf sql;
    int64_t n_there = 0;
    sv_buf_init(&sql, 1u << 20);
    sv_buf_printf(&sql, "CREATE DATABASE IF NOT EXISTS %s", t->database);
    int code =
        sv_ch_ask(db->client, host, SV_CH_NO_DATABASE, sv_buf_cstr(&sql), sql.len, NULL, err);
    sv_buf_clear(&sql);
    sv_buf_printf(&sql, "SELECT count() FROM system.tables WHERE database = '%s'", t->database);
    if (code >= 0)
        code = drop_old_views(db, host, err);
    if (code >= 0)
        code = sv_ch_number(db->client, host, sv_buf_cstr(&sql), &n_there, err);
    if (code >= 0 && n_there < (int64_t)sv_ch_n_made(t)) {
        for (size_t i = 1; code >= 0; i++) {
            sv_buf_clear(&sql);
            if (!sv_ch_ddl(t, i, &sql))
                break;
            code = sv_ch_ask(db->client, host, 0, sv_buf_cstr(&sql), sql.len, NULL, err);
        }
    }
    sv_buf_fini(&sql);
    if (code >= 0)
        code = check_kind(db, host, err);
    if (code == SV_EUSAGE) /* the statements are ours */
        code = err->code = SV_EIO;
    return code;
}

int sv_ch_db_open(struct sv_ch *c, struct sv_ch_db *db, struct sv_err *err)
{
    *db = (struct sv_ch_db){.client = c, .target = sv_ch_target_of(c)};
    int64_t one;
    const char *hello = "SELECT 1";
    struct sv_buf sql;
    sv_buf_init(&sql, 1024);
    sv_buf_printf(&sql, "CREATE DATABASE IF NOT EXISTS %s", db->target->database);
    int code = sv_ch_ask(c, NULL, SV_CH_NO_DATABASE, sv_buf_cstr(&sql), sql.len, NULL, err);
    sv_buf_fini(&sql);
    if (code >= 0)
        code = find_shards(db, err);
    /* All of them before any of them is changed. */
    for (size_t i = 0; i < db->n_shards && code >= 0; i++)
        code = sv_ch_ask(c, db->shards[i].host, SV_CH_READ | SV_CH_NO_DATABASE, hello,
                         strlen(hello), NULL, err);
    for (size_t i = 0; i < db->n_shards && code >= 0; i++)
        code = make_tables(db, db->shards[i].host, err);
    if (code >= 0) /* and they see each other */
        code = sv_ch_number(c, NULL, "SELECT count() FROM trace", &one, err);
    return code;
}

void sv_ch_db_close(struct sv_ch_db *db)
{
    free(db->shards);
    *db = (struct sv_ch_db){0};
}

/* ---- files ---- */

static void remember(struct sv_ch_file *f, const struct stat *st)
{
    f->inode = st->st_ino;
    f->changed_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

int sv_ch_file_is_same(const struct sv_ch_file *f, struct sv_err *err)
{
    struct stat st;
    struct sv_ch_file now = {0};
    if (stat(f->path, &st) == 0)
        remember(&now, &st);
    if (now.inode == f->inode && now.changed_ns == f->changed_ns)
        return 0;
    return sv_error(err, SV_EINPUT,
                    "%.300s: changed while it was read; load it when it is complete", f->path);
}

static int add_file(struct sv_ch_file *f, const char *path, struct sv_sha256 *h, struct sv_err *err)
{
    uint8_t piece[1 << 15];
    struct stat st;
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        sv_err_sys(err, "%.300s", path);
        return err->code = SV_EINPUT;
    }
    if (f->path == path && fstat(fd, &st) == 0)
        remember(f, &st);
    while ((n = read(fd, piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR)) {
        if (n < 0)
            continue;
        sv_sha256_add(h, piece, (size_t)n);
        f->size_bytes += (uint64_t)n;
    }
    int error = errno;
    close(fd);
    if (n == 0)
        return 0;
    errno = error;
    sv_err_sys(err, "%.300s", path);
    return err->code = SV_EINPUT;
}

int sv_ch_file_read(struct sv_ch_file *f, const char *const *paths, size_t n, struct sv_err *err)
{
    struct sv_sha256 h;
    const char *slash = strrchr(paths[0], '/');
    int code = 0;
    *f = (struct sv_ch_file){.path = paths[0], .rank = -1};
    if (snprintf(f->name, sizeof f->name, "%s", slash ? slash + 1 : paths[0]) >=
        (int)sizeof f->name)
        return sv_error(err, SV_EUSAGE, "%.300s: the name is too long", paths[0]);
    sv_sha256_init(&h);
    for (size_t i = 0; i < n && code >= 0; i++)
        code = add_file(f, paths[i], &h, err);
    sv_sha256_end(&h, f->sha256);
    return code;
}
