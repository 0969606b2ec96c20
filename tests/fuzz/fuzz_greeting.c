/* Arbitrary bytes as a sender of `stave listen`: its greeting and its frames, into a spool and out
 * of it again; and as spools.
 *
 * The first byte chooses: bit 0 a token is asked for, bit 1 the spool is small, bit 7 the rest is a
 * spool. The second one is the size of the pieces in which the rest comes, about PIECES at most.
 * Whatever comes: every event of a head that was taken is in the spool or counted there, and the
 * spool keeps its limit. */
#include "files/open.h"
#include "listen/sender.h"
#include "tests/fuzz/mutate_records.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each one is a record of the spool: more of them take time and show nothing. */
enum { PIECES = 16 };

static int spool_file(void)
{
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create("spool", MFD_CLOEXEC);
    assert(fd >= 0 && ftruncate(fd, 0) == 0);
    return fd;
}

static uint64_t size_of(int fd)
{
    struct stat st;
    assert(fstat(fd, &st) == 0);
    return (uint64_t)st.st_size;
}

/* Every piece lies in the file. Returns the events of the first sender that are there or lost. */
static uint64_t read_all(int fd)
{
    struct sv_spool_view v;
    struct sv_err err = {0};
    uint64_t first = 0, size = size_of(fd);
    if (sv_spool_look(fd, &v, &err) < 0) {
        assert(err.msg[0]);
        return 0;
    }
    for (size_t i = 0; i < v.n; i++) {
        struct sv_spool_frames f;
        assert(sv_spool_read(&v, i, &f, &err) == 0);
        for (size_t k = 0; k < f.n; k++)
            assert(f.pieces[k].bytes <= size && f.pieces[k].at <= size - f.pieces[k].bytes);
        first = i == 0 ? f.events + f.lost : first;
        sv_spool_frames_fini(&f);
    }
    sv_spool_view_fini(&v);
    return first;
}

static void spool_from_nowhere(const uint8_t *data, size_t size)
{
    static const struct sv_spool_header header = {.magic = {'S', 'V', 'S', 'P', 'O', 'O', 'L', '1'},
                                                  .header_bytes = SV_SPOOL_HEADER};
    int fd = spool_file();
    assert(pwrite(fd, &header, sizeof header, 0) == sizeof header);
    assert(pwrite(fd, data, size, SV_SPOOL_HEADER) == (ssize_t)size);
    read_all(fd);
}

static void sender_from_nowhere(const uint8_t *data, size_t size, size_t step, const char *token,
                                uint64_t limit)
{
    struct sv_spool spool;
    struct sv_stream s = {0};
    struct sv_greeting g = {0};
    size_t at = 0, used;
    enum sv_greeted greeted = SV_GREETED_MORE;
    for (; at < size && greeted == SV_GREETED_MORE; at += used) {
        size_t n = size - at < step ? size - at : step;
        greeted = sv_greeting_take(&g, data + at, n, token, &used);
        assert(used <= n && used > 0 && g.n <= sizeof g.text);
    }
    if (greeted != SV_GREETED_OK)
        return;
    int fd = spool_file();
    assert(sv_spool_begin(&spool, fd, limit, &(struct sv_output_choice){0}, NULL) == 0);
    if (!sv_spool_add(&spool, "nobody", SV_SPOOL_PERFETTO, &s.spooled))
        return;
    enum sv_taken taken = SV_TAKEN_SOME;
    for (; at < size && taken == SV_TAKEN_SOME; at += step)
        taken = sv_stream_take(&s, &spool, data + at, size - at < step ? size - at : step);
    assert(s.taken <= s.seen && s.seen <= size && size_of(fd) <= limit);
    uint64_t seen = s.frames.is_open ? s.frames.frame.events : s.frames.events;
    bool is_kept = s.spooled.slot.cause ==
                   SV_SPOOL_OPEN; /* as after a kill: the sender has the rest */
    assert(read_all(fd) == (is_kept ? s.frames.events : seen));
    sv_stream_cut(&s, &spool, taken == SV_TAKEN_BAD ? SV_SPOOL_BAD : SV_SPOOL_CUT);
    assert(read_all(fd) == seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t step = (size_t)data[1] + 1;
    if (step < size / PIECES)
        step = size / PIECES;
    if (data[0] & 0x80)
        spool_from_nowhere(data + 2, size - 2);
    else
        sender_from_nowhere(data + 2, size - 2, step, data[0] & 1 ? "secret word" : NULL,
                            data[0] & 2 ? SV_SPOOL_HEADER + 400 : SV_SPOOL_LIMIT_DEFAULT);
    return 0;
}

/* ---- mutation ---- */

/* Frames: eight bytes of length begin a head. */
static size_t frame_size(const uint8_t *at, size_t left)
{
    uint64_t n;
    memcpy(&n, at, sizeof n);
    return n <= left - SV_FRAME_HEAD ? SV_FRAME_HEAD + (size_t)n : 0;
}

static void frame_set_size(uint8_t *at, size_t bytes)
{
    uint64_t n = bytes - SV_FRAME_HEAD;
    memcpy(at, &n, sizeof n);
}

static size_t record_size(const uint8_t *at, size_t left)
{
    struct sv_spool_record r;
    memcpy(&r, at, sizeof r);
    return r.bytes <= left - sizeof r ? sizeof r + r.bytes : 0;
}

static void record_set_size(uint8_t *at, size_t bytes)
{
    uint32_t n = (uint32_t)(bytes - sizeof(struct sv_spool_record));
    memcpy(at + offsetof(struct sv_spool_record, bytes), &n, sizeof n);
}

/* A spool is a list of records, a sender's stream one of frames behind its first line. */
static struct mutate_shape shape_of(const uint8_t *data, size_t size)
{
    if (size > 2 && data[0] & 0x80)
        return (struct mutate_shape){.first = 2,
                                     .head = sizeof(struct sv_spool_record),
                                     .align = 1,
                                     .most = MUTATE_SCRATCH,
                                     .size_of = record_size,
                                     .set_size = record_set_size};
    const uint8_t *line = size > 2 ? memchr(data + 2, '\n', size - 2) : NULL;
    return (struct mutate_shape){.first = line ? (size_t)(line - data) + 1 : size,
                                 .head = SV_FRAME_HEAD,
                                 .align = 1,
                                 .most = MUTATE_SCRATCH,
                                 .size_of = frame_size,
                                 .set_size = frame_set_size};
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static struct mutate m;
    struct mutate_shape shape = shape_of(data, size);
    mutate_init(&m, data, size, max_size, seed);
    return mutate_records(&m, &shape);
}
