/* stave export --to parquet: the tables of each trace in a folder of their own,
 * run=…/host=…/rank=…/TABLE.parquet.
 *
 * One trace after the other, each independent of all others: ranks may be exported by many
 * processes at once. A rank's folder is written under a hidden name beside its own and renamed when
 * all tables are whole, so that who reads the tree meets all of a rank or nothing of it. */
#include "cli/console.h"
#include "cmd/export.h"
#include "cmd/export_columns.h"
#include "cmd/query_shell.h"
#include "store/ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VALUE_MAX 100 /* bytes of a name from a trace in a path, before escaping */
#define RANK_MAX  999999999

struct leaf {
    char parent[4096]; /* …/host=… */
    char path[4200];   /* …/rank=… */
    char hidden[4200]; /* where it grows */
};

/* ---- names ---- */

/* key=value, with what is no letter, digit or one of "._-" as %XX. */
static void put_part(struct sv_buf *b, const char *key, const char *value, const char *none)
{
    size_t len = value ? strnlen(value, VALUE_MAX) : 0;
    sv_buf_printf(b, "/%s=", key);
    if (len == 0)
        sv_buf_str(b, none);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)value[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (is_plain)
            sv_buf_byte(b, c);
        else
            sv_buf_printf(b, "%%%02X", c);
    }
}

/* -1: given as something else than a small number. */
static int64_t rank_number(const char *text)
{
    size_t n = strspn(text, "0123456789");
    return n > 0 && n <= 9 && text[n] == '\0' ? strtoll(text, NULL, 10) : -1;
}

static int name_leaf(const struct sv_export_options *o, const struct sv_dict *dict,
                     struct leaf *leaf, struct sv_err *err)
{
    struct sv_origin who = sv_origin_of(dict, 0);
    int64_t rank = o->rank ? rank_number(o->rank) : who.rank;
    struct sv_buf b;
    sv_buf_init(&b, sizeof leaf->parent - 1);
    sv_buf_str(&b, o->output);
    while (b.len > 1 && b.data[b.len - 1] == '/')
        b.len--;
    put_part(&b, "run", o->run ? o->run : who.job, "default");
    put_part(&b, "host", who.host, "unknown");
    bool fits = !b.failed;
    snprintf(leaf->parent, sizeof leaf->parent, "%s", sv_buf_cstr(&b));
    sv_buf_fini(&b);
    if (!fits)
        return sv_error(err, SV_EUSAGE, "%.300s: the path is too long", o->output);
    rank = rank < 0 || rank > RANK_MAX ? -1 : rank;
    snprintf(leaf->path, sizeof leaf->path, "%s/rank=%" PRId64, leaf->parent, rank);
    snprintf(leaf->hidden, sizeof leaf->hidden, "%s/.rank=%" PRId64 ".%ld", leaf->parent, rank,
             (long)getpid());
    return 0;
}

int sv_export_check_rank(const struct sv_dict *dict, struct sv_err *err)
{
    int64_t first = -1;
    for (sv_track k = 1; k < dict->n_tracks; k++) {
        int64_t rank = dict->tracks[k].kind == SV_TRACK_PROCESS ? sv_origin_of(dict, k).rank : -1;
        if (rank >= 0 && first >= 0 && rank != first)
            return sv_error(err, SV_EUSAGE,
                            "it holds several ranks (%" PRId64 " and %" PRId64
                            "): export the ranks' own files, not what was merged of them",
                            first, rank);
        first = rank >= 0 ? rank : first;
    }
    return 0;
}

/* ---- folders ---- */

static int make_parents(const char *path, struct sv_err *err)
{
    char part[4096];
    for (size_t i = 1;; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        snprintf(part, sizeof part, "%.*s", (int)i, path);
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return sv_err_sys(err, "%.300s: cannot create", part);
        if (path[i] == '\0')
            return 0;
    }
}

/* Removes a folder of tables. Other files in it stay, and so does it then. */
static void remove_leaf(const char *path)
{
    char file[4400];
    for (size_t i = 0; i < sv_n_typed_tables; i++) {
        snprintf(file, sizeof file, "%s/%s.parquet", path, sv_typed_tables[i].name);
        unlink(file);
    }
    rmdir(path);
}

/* Whether all that is in the folder are tables of an export: only then --force may replace it. */
static bool is_leaf(const char *path)
{
    DIR *d = opendir(path);
    bool is_ours = d != NULL;
    for (const struct dirent *e; is_ours && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        char name[256];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        snprintf(name, sizeof name, "%.*s", dot ? (int)(dot - e->d_name) : 0, e->d_name);
        is_ours = dot && strcmp(dot, ".parquet") == 0 && sv_typed_table(name);
    }
    if (d)
        closedir(d);
    return is_ours;
}

static int check_free(const struct sv_export_options *o, const struct leaf *leaf,
                      struct sv_err *err)
{
    struct stat st;
    if (lstat(leaf->path, &st) < 0)
        return 0;
    if (!o->force)
        return sv_error(
            err, SV_EIO,
            "%.400s exists; use --force to replace it, or --run or --rank for another name",
            leaf->path);
    if (!is_leaf(leaf->path))
        return sv_error(err, SV_EIO,
                        "%.400s holds something else than exported tables: it is not replaced",
                        leaf->path);
    return 0;
}

/* The finished folder under its own name. With --force the old one is exchanged for it at once,
 * where the file system can do that. */
static int publish(const struct sv_export_options *o, const struct leaf *leaf, struct sv_err *err)
{
    if (renameat2(AT_FDCWD, leaf->hidden, AT_FDCWD, leaf->path, RENAME_NOREPLACE) == 0)
        return 0;
    bool is_there = errno == EEXIST, is_unknown = errno == EINVAL || errno == ENOSYS;
    if (o->force && is_there &&
        renameat2(AT_FDCWD, leaf->hidden, AT_FDCWD, leaf->path, RENAME_EXCHANGE) == 0) {
        remove_leaf(leaf->hidden);
        return 0;
    }
    if (o->force && (is_there || is_unknown))
        remove_leaf(leaf->path);
    /* A folder that holds anything is not replaced by rename(). */
    if ((is_unknown || o->force) && rename(leaf->hidden, leaf->path) == 0)
        return 0;
    errno = is_there && !o->force ? EEXIST : errno;
    return sv_err_sys(err, "%.300s: cannot rename the finished folder to its name", leaf->path);
}

/* ---- a trace ---- */

static int write_tables(struct sv_sql *q, const struct sv_trace *t, const struct leaf *leaf,
                        const char *trace, struct sv_err *err)
{
    char path[4400];
    int code = 0;
    for (size_t i = 0; i < sv_n_typed_tables && code >= 0; i++) {
        uint64_t n_unfit = 0;
        snprintf(path, sizeof path, "%s/%s.parquet", leaf->hidden, sv_typed_tables[i].name);
        code = sv_parquet_table(q, t, &sv_typed_tables[i], path, &n_unfit, err);
        if (n_unfit)
            sv_console_note("%s: table %s: %" PRIu64
                            " values have another type than their column and are NULL",
                            trace, sv_typed_tables[i].name, n_unfit);
    }
    return code;
}

static int export_loaded(const struct sv_export_options *o, const struct sv_loaded *l,
                         const char *trace, struct sv_err *err)
{
    struct leaf leaf;
    struct sv_sql *q = NULL;
    struct sv_sql_options sql = sv_query_options(l, o->memory_limit);
    int code = sv_export_check_rank(l->dict, err);
    if (code >= 0)
        code = name_leaf(o, l->dict, &leaf, err);
    if (code >= 0)
        code = check_free(o, &leaf, err);
    if (code >= 0)
        code = make_parents(leaf.parent, err);
    if (code < 0)
        return code;
    if (mkdir(leaf.hidden, 0777) < 0)
        return sv_err_sys(err, "%.300s: cannot create", leaf.hidden);
    code = sv_sql_open(l->trace, &sql, &q, err);
    if (code >= 0)
        code = write_tables(q, l->trace, &leaf, trace, err);
    sv_sql_close(q);
    if (code >= 0)
        code = publish(o, &leaf, err);
    if (code < 0)
        remove_leaf(leaf.hidden);
    return code;
}

static int export_trace(const struct sv_export_options *o, const char *trace,
                        const struct sv_rotation *parts, struct sv_err *err)
{
    struct sv_loaded l;
    int code = sv_load(trace,
                       &(struct sv_load_how){.from = o->from,
                                             .strict = o->strict,
                                             .memory_limit_bytes = o->memory_limit,
                                             .index = o->no_index,
                                             .rotation = parts},
                       &l, err);
    if (code >= 0 && (code = export_loaded(o, &l, trace, err)) < 0)
        sv_err_in_file(err, trace);
    sv_loaded_free(&l);
    return code;
}

static int write_parquet(const struct sv_export_options *o, const struct sv_rotations *traces,
                         struct sv_err *err)
{
    int code = 0;
    if (o->rank && (traces->n > 1 || rank_number(o->rank) < 0))
        return sv_error(err, SV_EUSAGE, "--rank: must be a number, and goes with one trace");
    for (size_t i = 0; i < traces->n && code >= 0; i++)
        code = export_trace(o, traces->inputs[i], sv_rotation_of(traces, traces->inputs[i]), err);
    return code;
}

const struct sv_export_form sv_export_parquet = {
    .name = "parquet",
    .help = "column files for other engines, a folder for each trace",
    .about = "parquet: each trace becomes a folder PATH/run=…/host=…/rank=… with one file per "
             "table, the layout that engines read as partitions. Traces are not merged: each "
             "keeps its own clock, and the table clock_snapshot relates it to the wall clock. A "
             "rank's folder appears when it is whole; one that exists is replaced by --force "
             "only. docs/scale.md has the rest.",
    .options = "run rank",
    .to_folder = true,
    .write_each = write_parquet,
};
