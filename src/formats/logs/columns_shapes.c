/* Layouts of logs that have no header: it was cut off, or a pipeline wrote the lines without one.
 * Called by the readers of such logs.
 *
 * A layout is taken when most lines at the beginning of the file have it. Of several the one with
 * the most such lines counts, then the one that the file's name suggests, then the one that comes
 * first here: those with more numbers come first, since a path takes any rest of a line. */
#include "formats/logs/columns.h"

#include <stdio.h>
#include <string.h>

#define HEAD_LINES 64
#define FD_MAX     1023       /* the usual limit of a process */
#define BOOT_MIN   1000000000 /* nobody traces in the first second after boot */

static const struct sv_log_shape shapes[] = {
    {"start:utc,end:utc,name", NULL, "intervals: start, end, kind", SV_BEFORE_NONE},
    {"end:utc,name,latency:ns", NULL, "intervals: end, kind, latency", SV_BEFORE_NONE},
    {"ts:utc %usr %nice %sys %iowait %irq %soft %steal %guest %gnice %idle", NULL,
     "mpstat's values with UTC", SV_BEFORE_NONE},
    {"ts:utc gpu pid - sm mem enc dec fb comm", NULL, "pmon's values with UTC", SV_BEFORE_NONE},
    {"pid function mode latency path", NULL, "created and removed files", SV_BEFORE_BOOT},
    {"pid function latency path", NULL, "created and removed files", SV_BEFORE_BOOT},
    {"pid comm - - disk rw bytes latency", "block", "block requests (2022)", SV_BEFORE_BOTH},
    {"pid comm disk rw bytes sector latency", "block", "block requests", SV_BEFORE_BOTH},
    {"pid tid comm disk rw bytes latency", "block", "block requests by thread", SV_BEFORE_BOTH},
    {"pid rw bytes latency", "block", "block requests of one process (bio_PID)", SV_BEFORE_UTC},
    {"pid comm|fd address offset requested ret latency path", "write", "writes (2022)",
     SV_BEFORE_BOTH},
    {"pid fd address latency path", "mmap", "mappings", SV_BEFORE_BOOT},
    {"pid address length latency", "munmap", "mappings", SV_BEFORE_BOOT},
    {"pid address latency path", "write", "writes of one process (write_PID)", SV_BEFORE_UTC},
    {"pid fd ret latency path", "read", "reads by descriptor (2022)", SV_BEFORE_BOTH},
    {"pid offset ret latency path", "read", "reads", SV_BEFORE_BOTH},
    {"pid offset ret latency path", "write", "writes", SV_BEFORE_BOTH},
    {"pid comm ret latency path", "read", "reads by command", SV_BEFORE_BOTH},
    {"pid tid comm latency path", "openat", "opened files by thread", SV_BEFORE_BOTH},
    {"pid tid comm latency path", "read", "reads by thread", SV_BEFORE_BOTH},
    {"pid tid comm latency path", "write", "writes by thread", SV_BEFORE_BOTH},
    {"pid comm offset ret path", "read", "reads without a latency", SV_BEFORE_BOTH},
    {"pid ret latency path", "read", "reads of one process (read_PID)", SV_BEFORE_UTC},
    {"pid fd latency path", "close", "closed files", SV_BEFORE_BOTH},
    {"pid comm|fd latency path+name", "openat", "opened files", SV_BEFORE_BOTH},
    {"pid latency path+name", "openat", "opened files of one process (open_PID)", SV_BEFORE_UTC},
};

static const char *name_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

const char *sv_log_op_of_path(const char *path)
{
    static const char *const words[][2] = {{"read", "read"},   {"write", "write"},
                                           {"open", "openat"}, {"close", "close"},
                                           {"bio", "block"},   {"block", "block"}};
    const char *name = name_of(path);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i][0]))
            return words[i][1];
    return NULL;
}

const char *sv_log_op_of_columns(const struct sv_columns *c, const char *path)
{
    const char *named = sv_log_op_of_path(path);
    bool has_file = sv_columns_have(c, SV_COL_PATH);
    if (sv_columns_have(c, SV_COL_DISK))
        return "block";
    if (named && strcmp(named, "block") != 0)
        return named;
    if (sv_columns_have(c, SV_COL_PATH_NAME))
        return "openat";
    if (has_file && sv_columns_have(c, SV_COL_ERRNO))
        return "openat";
    if (sv_columns_have(c, SV_COL_REQUESTED))
        return "write";
    if (sv_columns_have(c, SV_COL_RET) || sv_columns_have(c, SV_COL_BYTES))
        return "read";
    return has_file && sv_columns_have(c, SV_COL_FD) ? "close" : "event";
}

unsigned sv_log_subject(const char *op)
{
    static const struct {
        const char *op;
        unsigned subject;
    } subjects[] = {{"read", SV_ABOUT_READS},
                    {"write", SV_ABOUT_WRITES},
                    {"openat", SV_ABOUT_OPENS},
                    {"close", SV_ABOUT_CLOSES},
                    {"block", SV_ABOUT_BLOCKS}};
    for (size_t i = 0; op && i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(op, subjects[i].op) == 0)
            return subjects[i].subject;
    return 0;
}

int64_t sv_log_pid_of_path(const char *path)
{
    const char *name = name_of(path), *line = strrchr(name, '_');
    size_t len = line ? strcspn(line + 1, ".") : 0;
    int64_t pid;
    struct sv_text digits = {line ? line + 1 : "", (uint32_t)len};
    return len && len < 11 && sv_text_i64(digits, &pid) && pid >= 0 ? pid : -1;
}

static bool describe(const struct sv_log_shape *shape, enum sv_column_unit unit,
                     struct sv_columns *c)
{
    char text[160];
    bool is_boot = unit == SV_UNIT_BOOT;
    if (shape->times == SV_BEFORE_BOOT ? !is_boot : shape->times != SV_BEFORE_BOTH && is_boot)
        return false;
    int n = snprintf(text, sizeof text, "%s%s",
                     shape->times == SV_BEFORE_NONE ? ""
                     : is_boot                      ? "ts:boot "
                                                    : "ts:utc ",
                     shape->columns);
    return n > 0 && (size_t)n < sizeof text && sv_columns_parse(c, text, NULL) == 0;
}

/* Fields that fit but mean something else. `shape` NULL: the user said what they are. */
static bool is_likely(const struct sv_log_shape *shape, const struct sv_columns *c,
                      const struct sv_record *r)
{
    const struct sv_stamp *ts = &r->stamp[SV_COL_TS];
    if (!shape)
        return true;
    if (ts->unit == SV_UNIT_BOOT && (ts->ns < BOOT_MIN || ts->ns < r->number[SV_COL_LATENCY]))
        return false;
    bool has_fd = sv_columns_have(c, SV_COL_FD);
    int64_t fd = r->number[SV_COL_FD];
    struct sv_text path = r->text[SV_COL_PATH_NAME];
    char rw = sv_record_rw(r);
    if (has_fd && (fd < -1 || fd == 0 || fd > FD_MAX))
        return false; /* an offset */
    if (sv_columns_have(c, SV_COL_ADDRESS) && !sv_text_begins(r->text[SV_COL_ADDRESS], "0x"))
        return false;
    if (rw && !strchr("RWDFN", rw))
        return false;
    if (sv_columns_have(c, SV_COL_COMM) && sv_text_i64(r->text[SV_COL_COMM], &fd))
        return false;
    for (size_t i = 0; i < c->n; i++)
        if (c->items[i].meter && !sv_text_is(r->cells[i], "-") &&
            !sv_text_double(r->cells[i], &(double){0}))
            return false;
    if (sv_columns_have(c, SV_COL_PATH_NAME) && path.len && !memchr(path.bytes, '/', path.len) &&
        shape->op)
        return false;
    if (sv_columns_have(c, SV_COL_FUNCTION)) {
        struct sv_text f = r->text[SV_COL_FUNCTION];
        return f.len > 2 && memcmp(f.bytes + f.len - 2, "()", 2) == 0;
    }
    return true;
}

static int count_fitting(const struct sv_log_shape *shape, const struct sv_columns *c,
                         struct sv_fields head, int *lines)
{
    struct sv_csv_line csv = {0};
    struct sv_record r;
    struct sv_text line;
    int fitting = 0;
    *lines = 0;
    while (*lines < HEAD_LINES && sv_head_line(&head, &line)) {
        bool is_cut = head.p == head.end && *lines > 0; /* of the window, perhaps */
        if (line.len == 0 || is_cut || line.bytes[0] == '@' || sv_text_begins(line, "Attach"))
            continue;
        ++*lines;
        fitting += sv_columns_take(c, line, &csv, &r) && is_likely(shape, c, &r);
    }
    sv_csv_fini(&csv);
    return fitting;
}

bool sv_log_fits(struct sv_fields head, const struct sv_columns *c)
{
    int lines, fitting = count_fitting(NULL, c, head, &lines);
    return 2 * fitting > lines;
}

/* All layouts begin with a number; most files that are no logs do not. */
static bool may_have_shape(struct sv_fields head)
{
    struct sv_text line;
    int numbers = 0, lines = 0;
    while (lines < HEAD_LINES && sv_head_line(&head, &line)) {
        struct sv_fields f = {line.bytes, line.bytes + line.len};
        struct sv_text first = sv_field_next(&f);
        lines += first.len > 0;
        numbers += first.len > 0 && first.bytes[0] >= '0' && first.bytes[0] <= '9';
    }
    return 2 * numbers > lines;
}

const struct sv_log_shape *sv_log_shape_of(struct sv_fields head, enum sv_column_unit unit,
                                           const char *path, struct sv_columns *c)
{
    const struct sv_log_shape *best = NULL;
    const char *op = sv_log_op_of_path(path);
    int best_score = 0;
    if (!may_have_shape(head))
        return NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct sv_columns one;
        int lines;
        if (!describe(&shapes[i], unit, &one))
            continue;
        int fitting = count_fitting(&shapes[i], &one, head, &lines);
        bool is_named = op && shapes[i].op && strcmp(op, shapes[i].op) == 0;
        if (2 * fitting <= lines || 2 * fitting + is_named <= best_score)
            continue;
        best = &shapes[i];
        best_score = 2 * fitting + is_named;
        *c = one;
    }
    return best;
}
