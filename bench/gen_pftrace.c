/* Makes a Perfetto trace to measure readers with: begin/end events of 100 names on 8 threads.
 *
 *     gen_pftrace [-a ARGS] [-p] [-s SLICES] [-q] OUTPUT
 *
 * Every thread is a sequence of its own with an incremental clock, default track and interned
 * names, the way the Perfetto SDK writes them (-q: without the flags that it adds to each packet).
 * -a adds that many integer arguments to each begin, -p a path, one of 512,000. The packets are
 * written by hand, so that the file does not depend on Stave's own writer. */
#include "core/base/wire.h"
#include "core/files/output.h"
#include "core/perfetto/proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, NAMES = 100, DEPTH = 4 };

struct gen {
    struct sv_output *out;
    struct sv_buf packet;
    unsigned n_args;
    bool is_quiet, has_paths;
    uint64_t seed;
};

static uint64_t next_random(struct gen *g)
{
    g->seed = g->seed * 6364136223846793005ull + 1442695040888963407ull;
    return g->seed >> 33;
}

static void flush(struct gen *g)
{
    uint8_t head[12] = {0x0a};
    size_t n = 1 + sv_put_varint_at(head + 1, g->packet.len);
    sv_output_write(g->out, head, n);
    sv_output_write(g->out, g->packet.data, g->packet.len);
    sv_buf_clear(&g->packet);
}

static void interned(struct sv_buf *b, uint32_t list, uint64_t iid, const char *name)
{
    size_t mark = sv_put_begin(b, list);
    sv_put_u64(b, SV_PF_INTERNED_IID, iid);
    sv_put_bytes(b, SV_PF_INTERNED_TEXT, name, strlen(name));
    sv_put_end(b, mark);
}

static void clock_reading(struct sv_buf *b, uint32_t id, uint64_t ts, bool is_incremental)
{
    size_t mark = sv_put_begin(b, SV_PF_SNAPSHOT_CLOCKS);
    sv_put_u64(b, SV_PF_CLOCK_ID, id);
    sv_put_u64(b, SV_PF_CLOCK_TIMESTAMP, ts);
    if (is_incremental)
        sv_put_u64(b, SV_PF_CLOCK_IS_INCREMENTAL, 1);
    sv_put_end(b, mark);
}

static void describe_thread(struct gen *g, unsigned t)
{
    struct sv_buf *b = &g->packet;
    char name[32];
    snprintf(name, sizeof name, "worker-%u", t);
    sv_put_u64(b, SV_PF_PACKET_SEQUENCE_ID, t + 1);
    size_t track = sv_put_begin(b, SV_PF_PACKET_TRACK_DESCRIPTOR);
    sv_put_u64(b, SV_PF_TRACK_UUID, 1000 + t);
    sv_put_u64(b, SV_PF_TRACK_PARENT_UUID, 999);
    size_t thread = sv_put_begin(b, SV_PF_TRACK_THREAD);
    sv_put_u64(b, SV_PF_THREAD_PID, 77);
    sv_put_u64(b, SV_PF_THREAD_TID, 78 + t);
    sv_put_bytes(b, SV_PF_THREAD_NAME, name, strlen(name));
    sv_put_end(b, thread);
    sv_put_end(b, track);
    flush(g);
}

static void describe_process(struct gen *g)
{
    struct sv_buf *b = &g->packet;
    size_t track = sv_put_begin(b, SV_PF_PACKET_TRACK_DESCRIPTOR);
    sv_put_u64(b, SV_PF_TRACK_UUID, 999);
    size_t process = sv_put_begin(b, SV_PF_TRACK_PROCESS);
    sv_put_u64(b, SV_PF_PROCESS_PID, 77);
    sv_put_bytes(b, SV_PF_PROCESS_NAME, "train.py", 8);
    sv_put_end(b, process);
    sv_put_end(b, track);
    flush(g);
}

static void begin_sequence(struct gen *g, unsigned t)
{
    struct sv_buf *b = &g->packet;
    sv_put_u64(b, SV_PF_PACKET_SEQUENCE_ID, t + 1);
    sv_put_u64(b, SV_PF_PACKET_SEQUENCE_FLAGS, SV_PF_SEQ_CLEARED);
    size_t defaults = sv_put_begin(b, SV_PF_PACKET_DEFAULTS);
    sv_put_u64(b, SV_PF_DEFAULTS_CLOCK_ID, 64);
    size_t event = sv_put_begin(b, SV_PF_DEFAULTS_TRACK_EVENT);
    sv_put_u64(b, SV_PF_EVENT_TRACK_UUID, 1000 + t);
    sv_put_end(b, event);
    sv_put_end(b, defaults);
    size_t data = sv_put_begin(b, SV_PF_PACKET_INTERNED_DATA);
    for (unsigned i = 1; i <= NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "operation_%u", i);
        interned(b, SV_PF_INTERNED_NAMES, i, name);
    }
    interned(b, SV_PF_INTERNED_CATEGORIES, 1, "nn");
    for (unsigned i = 1; i <= g->n_args; i++) {
        char name[32];
        snprintf(name, sizeof name, "arg%u", i);
        interned(b, SV_PF_INTERNED_ANNOTATION_NAMES, i, name);
    }
    sv_put_end(b, data);
    size_t snapshot = sv_put_begin(b, SV_PF_PACKET_CLOCK_SNAPSHOT);
    clock_reading(b, 6, 1000000000, false);
    clock_reading(b, 64, 1000000000, true);
    sv_put_end(b, snapshot);
    flush(g);
}

static void put_path(struct gen *g)
{
    struct sv_buf *b = &g->packet;
    char path[64];
    uint64_t n = next_random(g);
    int len = snprintf(path, sizeof path, "/data/shard_%u/part_%05u.tar", (unsigned)(n % 128),
                       (unsigned)(n / 128 % 4000));
    size_t arg = sv_put_begin(b, SV_PF_EVENT_DEBUG_ANNOTATIONS);
    sv_put_bytes(b, SV_PF_ANN_NAME, "path", 4);
    sv_put_bytes(b, SV_PF_ANN_STRING, path, (size_t)len);
    sv_put_end(b, arg);
}

static void edge(struct gen *g, unsigned t, bool is_begin)
{
    struct sv_buf *b = &g->packet;
    sv_put_u64(b, SV_PF_PACKET_TIMESTAMP, 50 + next_random(g) % 900);
    sv_put_u64(b, SV_PF_PACKET_SEQUENCE_ID, t + 1);
    if (!g->is_quiet)
        sv_put_u64(b, SV_PF_PACKET_SEQUENCE_FLAGS, SV_PF_SEQ_NEEDS_STATE);
    size_t event = sv_put_begin(b, SV_PF_PACKET_TRACK_EVENT);
    if (is_begin)
        sv_put_u64(b, SV_PF_EVENT_CATEGORY_IIDS, 1);
    for (unsigned i = 1; is_begin && i <= g->n_args; i++) {
        size_t arg = sv_put_begin(b, SV_PF_EVENT_DEBUG_ANNOTATIONS);
        sv_put_u64(b, SV_PF_ANN_NAME_IID, i);
        sv_put_u64(b, SV_PF_ANN_INT, next_random(g) % 5000);
        sv_put_end(b, arg);
    }
    if (is_begin && g->has_paths)
        put_path(g);
    sv_put_u64(b, SV_PF_EVENT_TYPE, is_begin ? SV_PF_TYPE_BEGIN : SV_PF_TYPE_END);
    if (is_begin)
        sv_put_u64(b, SV_PF_EVENT_NAME_IID, 1 + next_random(g) % NAMES);
    sv_put_end(b, event);
    flush(g);
}

static void write_events(struct gen *g, uint64_t n_slices)
{
    unsigned depth[THREADS] = {0};
    uint64_t begun = 0, ended = 0;
    while (ended < n_slices) {
        unsigned t = (unsigned)(next_random(g) % THREADS);
        for (unsigned run = 0; run < 64 && ended < n_slices;
             run++) { /* as a shared buffer drains */
            bool can_begin = begun < n_slices && depth[t] < DEPTH;
            bool is_begin = can_begin && (depth[t] == 0 || next_random(g) % 2);
            if (!is_begin && depth[t] == 0)
                break;
            edge(g, t, is_begin);
            depth[t] += is_begin ? 1u : ~0u;
            begun += is_begin;
            ended += !is_begin;
        }
    }
}

int main(int argc, char **argv)
{
    struct gen g = {.seed = 1};
    struct sv_err err = {0};
    uint64_t n_slices = 1000000;
    int option;
    while ((option = getopt(argc, argv, "a:ps:q")) != -1) {
        if (option == 'a')
            g.n_args = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 's')
            n_slices = strtoull(optarg, NULL, 10);
        else if (option == 'p')
            g.has_paths = true;
        else if (option == 'q')
            g.is_quiet = true;
        else
            return 2;
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "usage: gen_pftrace [-a ARGS] [-p] [-s SLICES] [-q] OUTPUT\n");
        return 2;
    }
    sv_buf_init(&g.packet, (size_t)1 << 20);
    if (sv_output_open(argv[optind], SV_OUTPUT_RENAME, SV_PLAIN, &g.out, &err) < 0) {
        fprintf(stderr, "gen_pftrace: %s\n", err.msg);
        return 3;
    }
    describe_process(&g);
    for (unsigned t = 0; t < THREADS; t++) {
        begin_sequence(&g, t);
        describe_thread(&g, t);
    }
    write_events(&g, n_slices);
    sv_buf_fini(&g.packet);
    if (sv_output_close(g.out, &err) < 0) {
        fprintf(stderr, "gen_pftrace: %s\n", err.msg);
        return 3;
    }
    return 0;
}
