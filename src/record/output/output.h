/* The output of `stave record`: its name, its claim, the growing file, what of it is whole, and
 * what becomes of it when the disk is full. */
#ifndef SV_RECORD_OUTPUT_OUTPUT_H
#define SV_RECORD_OUTPUT_OUTPUT_H

#include "core/files/claim.h"
#include "core/stream/stream.h"

struct sv_recorder;
struct sv_record_options;

struct sv_parts;

struct sv_record_output {
    struct sv_claim claim;
    const char *part;               /* the growing file */
    struct sv_sink *sink;           /* writes it */
    struct sv_parts *parts;         /* --rotate, --last; NULL */
    uint32_t first_part, last_part; /* --rotate: numbers of the files, when all is done */
    int64_t commit_ns;              /* the last one */
    bool is_held;                   /* the claim is ours */
    bool is_converted;              /* OUT is made from the growing file at the end */
    bool needs_end;                 /* a growing file that was cut is not whole without its end */
    bool is_dropped;                /* a ring with %t: there is no OUT */
    bool is_kept;                   /* the growing file stays, for `stave recover` */
    /* As of the last commit: these events are in so many bytes. */
    uint64_t whole_bytes, whole_events, whole_lost;
    int64_t whole_ns;
    struct sv_err why;  /* code: writing failed, and everything since the last commit is lost */
    uint64_t end_bytes; /* then: so many are whole, with the end if it could be written */
};

/* Replaces %p and its like in -o, and puts the rank there where a launcher started several. `path`
 * holds the result. */
int sv_record_name(struct sv_record_options *o, char path[static SV_CLAIM_PATH_MAX],
                   struct sv_err *err);
/* Before anything else is made. */
int sv_record_claim(struct sv_recorder *r, struct sv_err *err);
void sv_record_unclaim(struct sv_recorder *r); /* nothing was recorded: nothing stays */

int sv_record_output_open(struct sv_recorder *r, struct sv_err *err);
/* The session in which libstave's events come. */
void sv_record_output_session(struct sv_recorder *r, const char *dir);

/* An output that cannot be written ends the file, not the recording: what comes afterwards is
 * counted. Returns 0 and clears `err`. */
int sv_record_output_fail(struct sv_recorder *r, struct sv_err *err);
/* When it is time (or must be): everything up to here is in the file, and a reader after a kill can
 * see this. */
void sv_record_commit(struct sv_recorder *r, int64_t now, bool must, struct sv_err *err);
/* In the middle of a round that brings many events: little is lost when a disk fills. */
void sv_record_commit_many(struct sv_recorder *r, struct sv_err *err);

/* Closes what was written to the growing file; all of it is committed. */
int sv_record_output_end(struct sv_recorder *r, struct sv_sink *file, struct sv_err *err);
/* The growing file was put away: the next one begins. */
void sv_record_output_turned(struct sv_recorder *r);

/* Gives the file its name. `code` is that of the recording so far; the returned one includes
 * this. */
int sv_record_output_close(struct sv_recorder *r, int code, struct sv_err *err);

#endif
