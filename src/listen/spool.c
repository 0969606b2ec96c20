/* The spool's file: see spool.h. Written by `stave listen` (its own thread, and those of OTLP's
 * server), read by its end and by `stave recover`.
 *
 * Must not merge or judge what streams hold: spool_merge.c does. */
#include "listen/spool.h"
#include "core/base/mem.h"
#include "core/base/now.h"
#include "core/files/process_id.h"
#include "core/files/write_all.h"
#include "files/open.h"
#include "listen/sender.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

const char *sv_spool_cause_name(enum sv_spool_cause cause)
{
    static const char *const names[] = {
        [SV_SPOOL_OPEN] = "listener killed",
        [SV_SPOOL_WHOLE] = "stream damaged",
        [SV_SPOOL_CUT] = "stream cut",
        [SV_SPOOL_BAD] = "stream damaged",
        [SV_SPOOL_STOP] = "listener ended first",
        [SV_SPOOL_LIMIT] = "spool limit",
        [SV_SPOOL_NO_SPACE] = "no space for spool",
    };
    return cause <= SV_SPOOL_NO_SPACE ? names[cause] : "stream damaged";
}

/* ---- writing ---- */

/* All of it or nothing: what a failed write has left is cut off again. */
static bool write_at(int fd, uint64_t at, const struct iovec *parts, int n)
{
    struct iovec left[2];
    uint64_t begin = at;
    memcpy(left, parts, (size_t)n * sizeof *parts);
    for (struct iovec *v = left; v < left + n;) {
        ssize_t done = pwritev(fd, v, (int)(left + n - v), (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            int error = done < 0 && errno != EFBIG ? errno
                                                   : ENOSPC; /* EFBIG is the spool's own limit */
            if (ftruncate(fd, (off_t)begin) != 0)
                errno = error; /* a reader finds a record that is cut, as after a kill */
            errno = error;
            return false;
        }
        at += (uint64_t)done;
        for (; v < left + n && (size_t)done >= v->iov_len; v++)
            done -= (ssize_t)v->iov_len;
        if (v < left + n) {
            v->iov_base = (char *)v->iov_base + done;
            v->iov_len -= (size_t)done;
        }
    }
    return true;
}

static void copy_word(char *to, size_t size, const char *word)
{
    snprintf(to, size, "%s", word ? word : "");
}

static void describe_machine(struct sv_spool_header *h)
{
    struct utsname u;
    uint8_t id[SV_BOOT_ID_BYTES];
    char text[SV_BOOT_TEXT];
    if (uname(&u) == 0)
        snprintf(h->host, sizeof h->host, "%.71s", u.nodename);
    if (sv_boot_id(id)) {
        sv_boot_text(id, text);
        copy_word(h->boot, sizeof h->boot, text);
    }
}

int sv_spool_begin(struct sv_spool *s, int fd, uint64_t limit, const struct sv_output_choice *how,
                   struct sv_err *err)
{
    union {
        struct sv_spool_header header;
        uint8_t bytes[SV_SPOOL_HEADER];
    } first = {.header = {.header_bytes = SV_SPOOL_HEADER}};
    memcpy(first.header.magic, SV_SPOOL_MAGIC, sizeof first.header.magic);
    copy_word(first.header.to, sizeof first.header.to, how->to);
    copy_word(first.header.compress, sizeof first.header.compress, how->compress);
    copy_word(first.header.dialect, sizeof first.header.dialect, how->dialect);
    describe_machine(&first.header);
    first.header.boot_ns = sv_now_ns(CLOCK_BOOTTIME);
    first.header.wall_ns = sv_now_ns(CLOCK_REALTIME);
    *s = (struct sv_spool){.fd = fd, .end = SV_SPOOL_HEADER, .limit = limit};
    pthread_mutex_init(&s->lock, NULL);
    if (!write_at(fd, 0, &(struct iovec){first.bytes, sizeof first.bytes}, 1))
        return sv_err_sys(err, "cannot write");
    return 0;
}

static bool has_place(const struct sv_spool *s, uint64_t bytes)
{
    uint64_t used = s->end + sizeof(struct sv_spool_record);
    return used <= s->limit && bytes <= s->limit - used;
}

bool sv_spool_has_place(struct sv_spool *s, uint64_t bytes)
{
    pthread_mutex_lock(&s->lock);
    bool has = has_place(s, bytes);
    pthread_mutex_unlock(&s->lock);
    return has;
}

/* Under the lock. Where the record begins, 0: it could not be written. */
static uint64_t append(struct sv_spool *s, const struct sv_spool_record *head, const void *bytes)
{
    struct iovec parts[] = {{(void *)(uintptr_t)head, sizeof *head},
                            {(void *)(uintptr_t)bytes, head->bytes}};
    uint64_t at = s->end;
    if (!has_place(s, head->bytes)) {
        errno = EFBIG;
        return 0;
    }
    if (!write_at(s->fd, s->end, parts, 2))
        return 0;
    s->end += sizeof *head + head->bytes;
    return at;
}

static bool add(struct sv_spool *s, struct sv_spool_sender *sender)
{
    struct sv_spool_record head = {.magic = SV_SPOOL_RECORD_MAGIC,
                                   .kind = SV_SPOOL_SENDER,
                                   .sender = s->n_senders,
                                   .bytes = sizeof sender->slot};
    if (s->n_senders == SV_SPOOL_SENDERS_MAX) {
        errno = EFBIG;
        return false;
    }
    uint64_t at = append(s, &head, &sender->slot);
    if (!at)
        return false;
    sender->slot_at = at + sizeof head;
    sender->id = s->n_senders++;
    return true;
}

bool sv_spool_add(struct sv_spool *s, const char *peer, enum sv_spool_format format,
                  struct sv_spool_sender *sender)
{
    *sender = (struct sv_spool_sender){.slot = {.format = format}};
    sender->slot.since_ns = sv_now_ns(CLOCK_BOOTTIME);
    copy_word(sender->slot.peer, sizeof sender->slot.peer, peer);
    pthread_mutex_lock(&s->lock);
    bool ok = add(s, sender);
    pthread_mutex_unlock(&s->lock);
    return ok;
}

bool sv_spool_put(struct sv_spool *s, struct sv_spool_sender *sender, const uint8_t *bytes,
                  size_t n)
{
    struct sv_spool_record head = {.magic = SV_SPOOL_RECORD_MAGIC,
                                   .kind = SV_SPOOL_DATA,
                                   .sender = sender->id,
                                   .bytes = (uint32_t)n,
                                   .prev = sender->last};
    pthread_mutex_lock(&s->lock);
    uint64_t at = append(s, &head, bytes);
    pthread_mutex_unlock(&s->lock);
    if (at)
        sender->last = at;
    return at != 0;
}

/* In its place: a full disk has it already. */
void sv_spool_note(struct sv_spool *s, const struct sv_spool_sender *sender)
{
    ssize_t done = pwrite(s->fd, &sender->slot, sizeof sender->slot, (off_t)sender->slot_at);
    (void)done; /* nothing better is at hand: the reader then takes it for one that was killed */
}

/* ---- reading ---- */

/* The head of the record at `at`; false: there is none. A last record that is cut has as many bytes
 * as there are. */
static bool record_at(const struct sv_spool_view *v, uint64_t at, struct sv_spool_record *r)
{
    if (at < SV_SPOOL_HEADER || at > v->size || v->size - at < sizeof *r ||
        !sv_read_all_at(v->fd, r, sizeof *r, at) || r->magic != SV_SPOOL_RECORD_MAGIC)
        return false;
    uint64_t left = v->size - at - sizeof *r;
    if (r->bytes > left)
        r->bytes = (uint32_t)left;
    return true;
}

static bool meet_sender(struct sv_spool_view *v, uint64_t at, const struct sv_spool_record *r)
{
    struct sv_spool_stream s = {0};
    if (r->sender != v->n || v->n == SV_SPOOL_SENDERS_MAX || r->bytes != sizeof s.slot ||
        !sv_read_all_at(v->fd, &s.slot, sizeof s.slot, at + sizeof *r))
        return false;
    s.slot.peer[sizeof s.slot.peer - 1] = '\0';
    SV_APPEND(v->streams, v->n, v->cap) = s;
    return true;
}

static bool meet_data(struct sv_spool_view *v, uint64_t at, const struct sv_spool_record *r)
{
    if (r->sender >= v->n || r->prev != v->streams[r->sender].last)
        return false;
    v->streams[r->sender].last = at;
    v->streams[r->sender].n_records++;
    return true;
}

static void end_texts(struct sv_spool_header *h)
{
    h->to[sizeof h->to - 1] = '\0';
    h->compress[sizeof h->compress - 1] = '\0';
    h->dialect[sizeof h->dialect - 1] = '\0';
    h->host[sizeof h->host - 1] = '\0';
    h->boot[sizeof h->boot - 1] = '\0';
}

int sv_spool_look(int fd, struct sv_spool_view *v, struct sv_err *err)
{
    struct stat st;
    struct sv_spool_record r;
    *v = (struct sv_spool_view){.fd = fd};
    if (fstat(fd, &st) != 0)
        return sv_err_sys(err, "cannot read");
    v->size = (uint64_t)st.st_size;
    if (v->size < SV_SPOOL_HEADER || !sv_read_all_at(fd, &v->header, sizeof v->header, 0) ||
        memcmp(v->header.magic, SV_SPOOL_MAGIC, sizeof v->header.magic) != 0 ||
        v->header.header_bytes != SV_SPOOL_HEADER)
        return sv_err_set(err, SV_EFORMAT, 0, "not a spool of 'stave listen'");
    end_texts(&v->header);
    for (v->good = SV_SPOOL_HEADER; record_at(v, v->good, &r); v->good += sizeof r + r.bytes) {
        bool ok = r.kind == SV_SPOOL_SENDER ? meet_sender(v, v->good, &r)
                                            : r.kind == SV_SPOOL_DATA && meet_data(v, v->good, &r);
        if (!ok)
            break;
    }
    return 0;
}

void sv_spool_view_fini(struct sv_spool_view *v)
{
    free(v->streams);
    v->streams = NULL;
}

/* A sender's records in the order in which they came: each one leads to the one before it. */
static struct sv_piece *collect(const struct sv_spool_view *v, const struct sv_spool_stream *s)
{
    struct sv_piece *pieces = sv_alloc((s->n_records + 1) * sizeof *pieces);
    uint64_t at = s->last;
    for (uint64_t i = s->n_records; i > 0; i--) {
        struct sv_spool_record r;
        if (!record_at(v, at, &r)) { /* it was there a moment ago */
            free(pieces);
            return NULL;
        }
        pieces[i - 1] = (struct sv_piece){.at = at + sizeof r, .bytes = r.bytes};
        at = r.prev;
    }
    return pieces;
}

/* Bytes of frames, not of heads, as they lie in the file. */
static void add_piece(struct sv_spool_frames *f, uint64_t at, uint64_t bytes)
{
    if (bytes == 0)
        return;
    SV_APPEND(f->pieces, f->n, f->cap) = (struct sv_piece){.at = at, .bytes = bytes};
}

/* One record's worth of the stream. *whole: pieces of whole frames. False: the stream cannot be
 * followed further. */
static bool follow(const struct sv_spool_view *v, struct sv_piece record, struct sv_frames *frames,
                   struct sv_spool_frames *f, size_t *whole)
{
    while (record.bytes > 0 || (frames->is_open && frames->left == 0)) {
        uint8_t head[SV_FRAME_HEAD];
        bool in_head = !frames->is_open;
        uint64_t want = in_head ? sizeof head - frames->n_head : frames->left;
        size_t n = (size_t)(want < record.bytes ? want : record.bytes), used;
        if (in_head && !sv_read_all_at(v->fd, head, n, record.at))
            return false;
        if (!in_head)
            add_piece(f, record.at, n);
        enum sv_frames_step step = sv_frames_next(frames, head, n, &used);
        if (step == SV_FRAMES_BAD)
            return false;
        if (step == SV_FRAMES_WHOLE)
            *whole = f->n;
        record.at += n;
        record.bytes -= n;
    }
    return true;
}

int sv_spool_read(const struct sv_spool_view *v, size_t i, struct sv_spool_frames *f,
                  struct sv_err *err)
{
    const struct sv_spool_stream *s = &v->streams[i];
    struct sv_frames frames = {0};
    struct sv_piece *records = collect(v, s);
    size_t whole = 0;
    *f = (struct sv_spool_frames){0};
    if (!records)
        return sv_err_sys(err, "the spool cannot be read");
    for (uint64_t k = 0; k < s->n_records; k++)
        if (!follow(v, records[k], &frames, f, &whole))
            break;
    free(records);
    f->n = whole;
    f->events = frames.events;
    /* Without an answer the sender keeps a frame: where the listener ended first, its own trace or
     * its rings have it. */
    bool has_sender = s->slot.cause == SV_SPOOL_OPEN || s->slot.cause == SV_SPOOL_STOP;
    uint64_t seen = frames.is_open && !has_sender ? frames.frame.events : frames.events;
    if (s->slot.events > seen)
        seen = s->slot.events;
    f->lost = seen - f->events;
    return 0;
}

void sv_spool_frames_fini(struct sv_spool_frames *f)
{
    free(f->pieces);
    *f = (struct sv_spool_frames){0};
}
