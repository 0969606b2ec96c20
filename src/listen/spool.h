/* The spool of `stave listen`: what was received, in one file (OUT.part) that survives the
 * listener, and the way from there to the trace.
 *
 *   header    SV_SPOOL_HEADER bytes: struct sv_spool_header
 *   records   struct sv_spool_record, then its `bytes`
 *     SENDER  struct sv_spool_slot: one for each sender, before its data; changed in its place
 *             later on
 *     DATA    what came from a sender, as it came: frames with their heads
 *             (sdk/write/stream_wire.h), cut anywhere. `prev` is where the sender's
 *             record before it begins
 *
 * Records are only appended, a slot is changed by one write: a reader after the listener was killed
 * finds everything that write() had taken, and the last record perhaps cut. Numbers are in the byte
 * order of the machine. A reader believes no number that it has not compared with the size of the
 * file.
 *
 * What is lost: a slot's `events` is the number of the newest frame's head that came; those of them
 * that no whole frame in the file accounts for are lost. So is, by number, a frame that was cut,
 * unless the listener ended first: then the sender still has it. What a sender did not send is not
 * known here (its own rings have it). */
#pragma once

#include "core/base/err.h"
#include "core/files/claim.h"
#include "core/files/input.h"
#include "core/stream/stages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SV_SPOOL_HEADER = 4096, SV_SPOOL_SENDERS_MAX = 16384 };
#define SV_SPOOL_MAGIC         "SVSPOOL1"
#define SV_SPOOL_RECORD_MAGIC  0x63525653u /* "SVRc" */
#define SV_SPOOL_LIMIT_DEFAULT ((uint64_t)16 << 30)

struct sv_spool_header {
    char magic[8];
    uint32_t header_bytes, reserved;
    char to[32], compress[16], dialect[32]; /* as --to, --compress and --dialect were given */
    char host[72],
        boot[40]; /* where the listener ran: that is where events were lost of which nothing came */
    int64_t boot_ns, wall_ns; /* its CLOCK_BOOTTIME and CLOCK_REALTIME when it began; 0: unknown */
};

enum sv_spool_kind { SV_SPOOL_SENDER = 1, SV_SPOOL_DATA };

struct sv_spool_record {
    uint32_t magic, kind, sender, bytes;
    uint64_t prev;
};

/* Why a stream is not whole. */
enum sv_spool_cause {
    SV_SPOOL_OPEN,    /* it was being received: the listener was killed */
    SV_SPOOL_WHOLE,   /* the sender ended it */
    SV_SPOOL_CUT,     /* the connection ended before the stream */
    SV_SPOOL_BAD,     /* the bytes are not a frame */
    SV_SPOOL_STOP,    /* the listener was asked to end before the sender did */
    SV_SPOOL_LIMIT,   /* the spool had its size */
    SV_SPOOL_NO_SPACE /* the disk was full, or could not be written to */
};
const char *sv_spool_cause_name(enum sv_spool_cause cause); /* as the name of a loss */

/* What a sender's frames hold. */
enum sv_spool_format {
    SV_SPOOL_PERFETTO,
    SV_SPOOL_OTLP,      /* ExportTraceServiceRequest as protobuf */
    SV_SPOOL_OTLP_LOCAL /* the same, of programs on the listener's machine */
};

struct sv_spool_slot {
    uint32_t cause;  /* enum sv_spool_cause */
    uint32_t format; /* enum sv_spool_format */
    uint64_t events;
    int64_t since_ns; /* CLOCK_BOOTTIME of the listener when it came */
    char peer[40];    /* whose connection it was: for people */
};

/* ---- writing ---- */

/* Its functions may be called by any thread, but of one sender by one at a time. */
struct sv_spool {
    pthread_mutex_t lock; /* of `end` and `n_senders` */
    int fd;
    uint64_t end, limit;
    uint32_t n_senders;
};

struct sv_spool_sender {
    uint32_t id;
    uint64_t slot_at, last;
    struct sv_spool_slot slot;
};

struct sv_output_choice;

/* `fd` is an empty file, which stays the caller's. */
int sv_spool_begin(struct sv_spool *s, int fd, uint64_t limit, const struct sv_output_choice *how,
                   struct sv_err *err);
/* False: it cannot be stored, errno says why (EFBIG: a limit of the spool). */
bool sv_spool_add(struct sv_spool *s, const char *peer, enum sv_spool_format format,
                  struct sv_spool_sender *sender);
bool sv_spool_put(struct sv_spool *s, struct sv_spool_sender *sender, const uint8_t *bytes,
                  size_t n);
bool sv_spool_has_place(struct sv_spool *s, uint64_t bytes);
void sv_spool_note(struct sv_spool *s, const struct sv_spool_sender *sender); /* its slot */

/* ---- reading ---- */

struct sv_spool_stream {
    struct sv_spool_slot slot;
    uint64_t last, n_records; /* of its data */
};

struct sv_spool_view {
    int fd;
    uint64_t size, good; /* of the file; up to the first record that cannot be right */
    struct sv_spool_header header;
    struct sv_spool_stream *streams; /* by number of the sender */
    size_t n, cap;
};

/* SV_EFORMAT: no spool. `fd` stays the caller's. */
int sv_spool_look(int fd, struct sv_spool_view *v, struct sv_err *err);
void sv_spool_view_fini(struct sv_spool_view *v);

/* The whole frames of one sender without their heads, as pieces of the file. */
struct sv_spool_frames {
    struct sv_piece *pieces;
    size_t n, cap;
    uint64_t events; /* in them */
    uint64_t lost;   /* events that came, or were to come, and are not in them */
};
int sv_spool_read(const struct sv_spool_view *v, size_t i, struct sv_spool_frames *f,
                  struct sv_err *err);
void sv_spool_frames_fini(struct sv_spool_frames *f);

/* ---- the trace ---- */

struct sv_spool_result {
    size_t senders, cut; /* that sent something; whose streams are not whole */
    uint64_t events, lost;
    size_t more_files;           /* of streams whose clocks relate to none of the others */
    struct sv_tally given, made; /* by the streams; in the files, if they were read again */
};

/* All streams merged into one trace, by the rules of merge: streams that nothing relates to the
 * others go to a file of their own, OUT.2 and so on before its suffix (where the output is no file
 * they are in it, with their times as they are). `out` NULL members: as the listener's options say.
 * The spool stays as it is. */
int sv_spool_merge(int fd, const struct sv_output_choice *out, struct sv_spool_result *result,
                   struct sv_err *err);

/* The trace of a listener's claim: c->part becomes out->path (NULL: the claim's own name, or the
 * next free one where OUT is newer), with what was lost. Then the spool and its marker go, unless
 * they are to be kept; after a failure they stay. For the end of `stave listen` and for `stave
 * recover` (c->kind is SV_CLAIM_LISTENER and its holder has ended). Prints what it did. */
enum sv_spool_how {
    SV_SPOOL_KEEP = 1,
    SV_SPOOL_CHECK =
        2 /* out->path is a file that can be read: what it lacks of the spool is an error */
};
int sv_spool_finish(struct sv_claim *c, const struct sv_output_choice *out, unsigned how,
                    struct sv_err *err);
