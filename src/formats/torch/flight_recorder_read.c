/* Dumps of PyTorch's flight recorder: what each rank had enqueued, started and finished when it was
 * dumped. Pickle or JSON, versions 2.x.
 *
 * Opened through the table of formats. The file is read as a whole and becomes plain values
 * (py_values.h), then each entry a slice from the time at which it was enqueued: of category
 * collective, or p2p, with the words of subjects/comm/words.h; one that was not seen completed has
 * no end. The dump does not say whose it is: the rank is the last number in the file's name, as
 * PyTorch writes it, or the only rank that is in all of its groups. */
#include "core/base/buf.h"
#include "core/stream/launched.h"
#include "formats/formats.h"
#include "formats/torch/py_values.h"
#include "subjects/comm/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES_MAX = 64, TENSORS_MAX = 64, DIMENSIONS_MAX = 16, RANKS_MAX = 1 << 16 };

struct reader {
    struct sv_source source;
    struct sv_py_values values;
    const struct sv_py *top, *entries, *groups;
    size_t at;
    sv_track process;
    struct sv_buf text;
    sv_str collective, p2p;
    struct {
        sv_str op, group, desc, members, size, seq, bytes, state, peer, record, started, timeout,
            in_sizes, out_sizes;
    } key;
};

/* ---- recognition ---- */

static bool holds(const uint8_t *head, size_t n, const char *word)
{
    return memmem(head, n, word, strlen(word)) != NULL;
}

static int probe(const uint8_t *head, size_t n)
{
    bool is_pickle = n > 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
    size_t blank = 0;
    while (blank < n && strchr(" \t\r\n", head[blank]) && head[blank])
        blank++;
    bool is_json = blank < n && head[blank] == '{';
    bool is_dump = holds(head, n, "pg_config") || holds(head, n, "collective_seq_id") ||
                   holds(head, n, "nccl_comm_state");
    return (is_pickle || is_json) && is_dump ? 95 : 0;
}

/* ---- whose it is ---- */

/* The last number of the name before its first dot: "_dump_14", "nccl_trace_rank_3.json". -1:
 * none. */
static int64_t rank_in_name(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    size_t end = strcspn(name, ".");
    while (end > 0 && (name[end - 1] < '0' || name[end - 1] > '9'))
        end--;
    size_t from = end;
    while (from > 0 && name[from - 1] >= '0' && name[from - 1] <= '9')
        from--;
    return end > from && end - from < 8 ? strtoll(name + from, NULL, 10) : -1;
}

struct ranks {
    int64_t *items;
    size_t n, cap;
};

/* "[0, 1, 2]"; false: it does not list them. */
static bool read_ranks(const struct sv_py *text, struct ranks *to)
{
    size_t len;
    const char *p = sv_py_text(text, &len), *end = p + len;
    int64_t number = -1;
    to->n = 0;
    if (len < 2 || *p != '[' || end[-1] != ']' || memmem(p, len, "..", 2))
        return false;
    for (p++; p < end && to->n < RANKS_MAX; p++) {
        if (*p >= '0' && *p <= '9' && number < INT32_MAX) {
            number = (number < 0 ? 0 : number * 10) + (*p - '0');
            continue;
        }
        if (number >= 0)
            SV_APPEND(to->items, to->n, to->cap) = number;
        number = -1;
    }
    return to->n > 0;
}

static bool has_rank(const struct ranks *r, int64_t rank)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i] == rank)
            return true;
    return false;
}

/* The ranks that are in all groups. A few groups settle it; the number of them is the file's. */
static void common_ranks(const struct sv_py *groups, struct ranks *common)
{
    struct ranks own = {0};
    bool is_first = true;
    for (size_t i = 0; sv_py_is(groups, SV_PY_DICT) && i + 1 < groups->n; i += 2) {
        if (!read_ranks(sv_py_member(groups->items[i + 1], "ranks"), &own))
            continue;
        if (is_first) {
            struct ranks none = *common;
            *common = own;
            own = none;
            is_first = false;
            continue;
        }
        if (common->n * own.n > (size_t)1 << 24) /* hostile: larger than any job */
            break;
        size_t kept = 0;
        for (size_t k = 0; k < common->n; k++)
            if (has_rank(&own, common->items[k]))
                common->items[kept++] = common->items[k];
        common->n = kept;
    }
    free(own.items);
}

static int64_t find_rank(struct reader *r, const char *name)
{
    struct ranks common = {0};
    int64_t rank = rank_in_name(name);
    common_ranks(r->groups, &common);
    if (rank >= 0 && common.n && !has_rank(&common, rank)) {
        sv_report_add(r->source.report, SV_NOTE, "rank in a file's name that is not in its groups",
                      1, SV_NO_POS, "%" PRId64 ": the name is not used", rank);
        rank = -1;
    }
    if (rank < 0 && common.n == 1)
        rank = common.items[0];
    free(common.items);
    return rank;
}

/* ---- entries ---- */

/* "4096x5120 BFloat16, 8 Float" and the bytes; -1: not known. */
static int64_t put_sizes(struct reader *r, const struct sv_py *sizes, const struct sv_py *types)
{
    int64_t bytes = 0;
    sv_buf_clear(&r->text);
    for (size_t i = 0; sv_py_is(sizes, SV_PY_LIST) && i < sizes->n && i < TENSORS_MAX; i++) {
        const struct sv_py *size = sizes->items[i];
        int64_t n = 1;
        size_t len = 0;
        const char *type = "";
        if (sv_py_is(types, SV_PY_LIST) && i < types->n)
            type = sv_py_text(types->items[i], &len);
        sv_buf_str(&r->text, i ? ", " : "");
        for (size_t k = 0; sv_py_is(size, SV_PY_LIST) && k < size->n && k < DIMENSIONS_MAX; k++) {
            int64_t dimension = sv_py_int(size->items[k], -1);
            sv_buf_printf(&r->text, "%s%" PRId64, k ? "x" : "", dimension);
            if (dimension < 0 || __builtin_mul_overflow(n, dimension, &n))
                n = -1;
        }
        if (len)
            sv_buf_printf(&r->text, " %.*s", (int)(len < 40 ? len : 40), type);
        int64_t each = sv_comm_type_bytes(type, len), own;
        if (bytes < 0 || n < 0 || !each || __builtin_mul_overflow(n, each, &own) ||
            __builtin_add_overflow(bytes, own, &bytes))
            bytes = -1;
    }
    return sv_py_is(sizes, SV_PY_LIST) && sizes->n && sizes->n <= TENSORS_MAX ? bytes : -1;
}

static void put_copy(struct sv_batch *b, sv_str key, const char *text, size_t len)
{
    len = len < SV_TEXT_MAX ? len : SV_TEXT_MAX;
    if (len)
        sv_batch_str(b, key, sv_batch_text(b, text, len), len);
}

static void put_value(struct sv_batch *b, sv_str key, const struct sv_py *value)
{
    size_t len;
    const char *text = sv_py_text(value, &len);
    if (len)
        put_copy(b, key, text, len);
    else if (sv_py_is(value, SV_PY_INT))
        sv_batch_int(b, key, value->i);
}

/* PyTorch lists the innermost frame first. */
static void put_frames(struct reader *r, struct sv_batch *b, const struct sv_py *frames)
{
    if (!sv_py_is(frames, SV_PY_LIST) || frames->n == 0)
        return;
    size_t open = sv_batch_open(b, 0, SV_ARG_STACK);
    for (size_t i = frames->n < FRAMES_MAX ? frames->n : FRAMES_MAX; i > 0; i--) {
        size_t name_len, file_len;
        const struct sv_py *frame = frames->items[i - 1];
        const char *name = sv_py_text(sv_py_member(frame, "name"), &name_len);
        const char *file = sv_py_text(sv_py_member(frame, "filename"), &file_len);
        sv_buf_clear(&r->text);
        sv_buf_add(&r->text, name, name_len);
        if (file_len)
            sv_buf_printf(&r->text, " (%.*s:%" PRId64 ")", (int)(file_len < 4096 ? file_len : 4096),
                          file, sv_py_int(sv_py_member(frame, "line"), 0));
        sv_batch_str(b, 0, sv_batch_text(b, sv_buf_cstr(&r->text), r->text.len), r->text.len);
    }
    sv_batch_close(b, open);
}

/* "nccl:send 0->3", "nccl:recv 3<-0": the second number is the other's place in the group. */
static void put_peer(struct reader *r, struct sv_batch *b, const struct sv_py *entry,
                     const struct sv_py *members)
{
    struct ranks ranks = {0};
    size_t len;
    const char *name = sv_py_text(sv_py_member(entry, "profiling_name"), &len);
    int64_t place = -1;
    for (size_t i = 0; i + 2 < len; i++)
        if (memcmp(name + i, "->", 2) == 0 || memcmp(name + i, "<-", 2) == 0)
            for (place = 0, i += 2;
                 i < len && name[i] >= '0' && name[i] <= '9' && place < INT32_MAX; i++)
                place = place * 10 + (name[i] - '0');
    if (place >= 0) {
        bool is_listed = read_ranks(members, &ranks) && (size_t)place < ranks.n;
        sv_batch_int(b, r->key.peer, is_listed ? ranks.items[place] : place);
    }
    free(ranks.items);
}

static void put_group(struct reader *r, struct sv_batch *b, const struct sv_py *entry, bool is_p2p)
{
    const struct sv_py *group = sv_py_member(entry, "process_group");
    const struct sv_py *config = NULL;
    struct ranks ranks = {0};
    bool is_pair = sv_py_is(group, SV_PY_LIST) && group->n > 0;
    for (size_t i = 0; is_pair && sv_py_is(r->groups, SV_PY_DICT) && i + 1 < r->groups->n; i += 2) {
        size_t len, own;
        const char *name = sv_py_text(r->groups->items[i], &len);
        const char *is = sv_py_text(group->items[0], &own);
        if (len && len == own && memcmp(name, is, len) == 0)
            config = r->groups->items[i + 1];
    }
    const struct sv_py *members = sv_py_member(config, "ranks");
    if (is_pair)
        put_value(b, r->key.group, group->items[0]);
    if (is_pair && group->n > 1)
        put_value(b, r->key.desc, group->items[1]);
    put_value(b, r->key.members, members);
    if (read_ranks(members, &ranks))
        sv_batch_int(b, r->key.size, (int64_t)ranks.n);
    if (is_p2p)
        put_peer(r, b, entry, members);
    free(ranks.items);
}

static void put_args(struct reader *r, struct sv_batch *b, const struct sv_py *entry, bool is_p2p,
                     int64_t ts_ns)
{
    size_t len;
    const char *name = sv_py_text(sv_py_member(entry, "profiling_name"), &len);
    const char *op = sv_comm_op_name(sv_comm_op_of(name, len));
    int64_t seq = sv_py_int(sv_py_member(entry, is_p2p ? "p2p_seq_id" : "collective_seq_id"),
                            sv_py_int(sv_py_member(entry, "seq_id"), -1));
    int64_t started = sv_py_int(sv_py_member(entry, "time_discovered_started_ns"), 0);
    sv_batch_str(b, r->key.op, op, strlen(op));
    put_group(r, b, entry, is_p2p);
    if (seq >= 0)
        sv_batch_int(b, r->key.seq, seq);
    int64_t bytes =
        put_sizes(r, sv_py_member(entry, "input_sizes"), sv_py_member(entry, "input_dtypes"));
    if (bytes >= 0)
        sv_batch_int(b, r->key.bytes, bytes);
    put_copy(b, r->key.in_sizes, sv_buf_cstr(&r->text), r->text.len);
    put_sizes(r, sv_py_member(entry, "output_sizes"), sv_py_member(entry, "output_dtypes"));
    put_copy(b, r->key.out_sizes, sv_buf_cstr(&r->text), r->text.len);
    put_value(b, r->key.state, sv_py_member(entry, "state"));
    put_value(b, r->key.record, sv_py_member(entry, "record_id"));
    if (started >= ts_ns && started > 0)
        sv_batch_int(b, r->key.started, started - ts_ns);
    put_value(b, r->key.timeout, sv_py_member(entry, "timeout_ms"));
    put_frames(r, b, sv_py_member(entry, "frames"));
}

static sv_track track_of(struct reader *r, const struct sv_py *entry)
{
    const struct sv_py *group = sv_py_member(entry, "process_group");
    sv_buf_clear(&r->text);
    for (size_t i = 0; sv_py_is(group, SV_PY_LIST) && i < group->n && i < 2; i++) {
        size_t len;
        const char *text = sv_py_text(group->items[i], &len);
        sv_buf_str(&r->text, i && len && r->text.len ? " " : "");
        sv_buf_add(&r->text, text, len < 256 ? len : 256);
    }
    if (r->text.len == 0)
        sv_buf_str(&r->text, "collectives");
    struct sv_dict *d = r->source.dict;
    return sv_dict_child(d, r->process, SV_TRACK_CUSTOM,
                         sv_dict_str(d, sv_buf_cstr(&r->text), r->text.len));
}

static void read_entry(struct reader *r, struct sv_batch *b, const struct sv_py *entry)
{
    int64_t ts = sv_py_int(sv_py_member(entry, "time_created_ns"), -1), dur = 0;
    int64_t end = sv_py_int(sv_py_member(entry, "time_discovered_completed_ns"), 0);
    size_t len;
    const char *name = sv_py_text(sv_py_member(entry, "profiling_name"), &len);
    bool is_p2p = sv_py_int(sv_py_member(entry, "is_p2p"), 0) == 1;
    if (!sv_py_is(entry, SV_PY_DICT) || ts < 0 || len == 0) {
        sv_report_add(r->source.report, SV_DAMAGE, "entry without name or time", 1, SV_NO_POS,
                      "number %zu", r->at);
        return;
    }
    bool has_ended = end > 0 && !__builtin_sub_overflow(end, ts, &dur) && dur >= 0;
    put_args(r, b, entry, is_p2p, ts);
    struct sv_event *e = sv_batch_put(b, SV_SLICE, ts, track_of(r, entry),
                                      sv_dict_str(r->source.dict, name, len < 4096 ? len : 4096),
                                      is_p2p ? r->p2p : r->collective);
    e->dur_ns = has_ended ? dur : SV_UNFINISHED;
    if (!sv_batch_finish(b, e))
        sv_report_add(r->source.report, SV_SKIPPED, "arguments past the limit of an event", 1,
                      SV_NO_POS, NULL);
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct reader *r = (struct reader *)source;
    while (b->n < SV_BATCH && r->entries && r->at < r->entries->n) {
        read_entry(r, b, r->entries->items[r->at]);
        r->at++;
    }
    return sv_source_given(source, b->n, err);
}

/* ---- life ---- */

static void close_source(struct sv_source *source)
{
    struct reader *r = (struct reader *)source;
    sv_py_fini(&r->values);
    sv_buf_fini(&r->text);
    free(r);
}

static void name_keys(struct reader *r, struct sv_dict *d)
{
    const struct {
        sv_str *to;
        const char *word;
    } rows[] = {
        {&r->collective, SV_CAT_COLLECTIVE},
        {&r->p2p, SV_CAT_P2P},
        {&r->key.op, SV_COMM_OP},
        {&r->key.group, SV_COMM_GROUP},
        {&r->key.desc, SV_COMM_DESC},
        {&r->key.members, SV_COMM_MEMBERS},
        {&r->key.size, SV_COMM_SIZE},
        {&r->key.seq, SV_COMM_SEQ},
        {&r->key.bytes, SV_COMM_BYTES},
        {&r->key.state, SV_COMM_STATE},
        {&r->key.peer, SV_COMM_PEER},
        {&r->key.record, "record_id"},
        {&r->key.started, "started_after_ns"},
        {&r->key.timeout, "timeout_ms"},
        {&r->key.in_sizes, "in_sizes"},
        {&r->key.out_sizes, "out_sizes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        *rows[i].to = sv_dict_cstr(d, rows[i].word);
}

static void set_meta(struct sv_dict *d, const char *key, const struct sv_py *value)
{
    size_t len;
    const char *text = sv_py_text(value, &len);
    if (len)
        sv_dict_set_meta(d, key, text, len, false);
}

/* The dump names no process: its number is the rank. */
static void describe(struct reader *r, int64_t rank, uint32_t space)
{
    struct sv_dict *d = r->source.dict;
    char text[32];
    d->clocks.trace_clock = SV_CLOCK_REALTIME;
    set_meta(d, "flight_recorder.version", sv_py_member(r->top, "version"));
    set_meta(d, "flight_recorder.nccl_version", sv_py_member(r->top, "nccl_version"));
    r->process = sv_dict_process(d, space, rank < 0 ? 0 : rank);
    if (rank < 0) {
        sv_report_add(r->source.report, SV_NOTE, "dump of an unknown rank", 1, SV_NO_POS,
                      "name the file after its rank: nccl_trace_rank_3");
        return;
    }
    int n = snprintf(text, sizeof text, "%" PRId64, rank);
    sv_dict_set_meta(d, SV_META_RANK, text, (size_t)n, false);
    n = snprintf(text, sizeof text, "rank %" PRId64, rank);
    d->tracks[r->process].name = sv_dict_str(d, text, (size_t)n);
    d->tracks[r->process].is_described = true;
    sv_dict_touch(d, r->process);
}

static int read_values(struct reader *r, const struct sv_input *in, struct sv_err *err)
{
    int code = in->len && in->data[0] == 0x80
                   ? sv_py_unpickle(&r->values, in->data, in->len, &r->top, err)
                   : sv_py_of_json(&r->values, in->data, in->len, &r->top, err);
    if (code < 0)
        return code;
    r->groups = sv_py_member(r->top, "pg_config");
    r->entries = sv_py_member(r->top, "entries");
    if (!sv_py_is(r->entries, SV_PY_LIST))
        r->entries = NULL;
    if (!sv_py_is(r->top, SV_PY_DICT) || (!r->entries && !r->groups))
        return sv_err_set(err, SV_EFORMAT, 0,
                          "no dump of the flight recorder: it has no 'entries' and no 'pg_config'");
    return 0;
}

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    int code =
        sv_input_need_all(in, "too large for a dump of the flight recorder: 1 GiB at most", err);
    if (code < 0)
        return code;
    struct reader *r = sv_alloc(sizeof *r);
    r->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
                                   .dict = dict,
                                   .report = report};
    sv_py_init(&r->values);
    sv_buf_init(&r->text, 1u << 20);
    code = read_values(r, in, err);
    if (code < 0) {
        close_source(&r->source);
        return code;
    }
    name_keys(r, dict);
    describe(r, find_rank(r, in->name ? in->name : ""), options ? options->space : 0);
    *out = &r->source;
    return 0;
}

const struct sv_format sv_flight_recorder_format = {
    .name = "flight-recorder",
    .help = "a dump of PyTorch's flight recorder",
    .lacks = "threads, flows, counters",
    .files = "one rank's dump, pickle or JSON: `nccl_trace_rank_N`, `_dump_N` ([comm.md](comm.md))",
    .times = "nanoseconds of the wall clock",
    .probe = probe,
    .open_source = open_source,
};
