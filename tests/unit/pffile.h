/* Perfetto files built by hand and read back: what the reader's tests share.
 *
 *     struct file f;
 *     struct read r;
 *     file_init(&f);
 *     named_event(&f, 1, 100, SV_PF_TYPE_BEGIN, 7, "outer");
 *     read_file(&r, &f);
 *     CHECK_STR_EQ(events_of(&r), "100 0 begin #0000000000000007 outer \n");
 *     done(&r, &f);
 */
#ifndef TESTS_UNIT_PFFILE_H
#define TESTS_UNIT_PFFILE_H

#include "core/base/wire.h"
#include "core/perfetto/proto.h"
#include "core/perfetto/proto_gpu.h"
#include "formats/formats.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

struct file {
    struct sv_buf b;
    size_t packet, payload; /* marks of what is open */
};

void file_init(struct file *f);
void packet(struct file *f, uint32_t seq); /* opens one; seq 0: none */
void end(struct file *f);
void u64(struct file *f, uint32_t id, uint64_t v);
void text(struct file *f, uint32_t id, const char *s);
size_t open_message(struct file *f, uint32_t id);
void close_message(struct file *f, size_t mark);

/* A track event of a type (0: none) at a time, left open for more fields until event_end(). */
void event(struct file *f, uint32_t seq, uint64_t ts, unsigned type);
void event_end(struct file *f);
void named_event(struct file *f, uint32_t seq, uint64_t ts, unsigned type, uint64_t track,
                 const char *name);

/* An entry of InternedData, a message of its own within the open packet. */
void interned(struct file *f, uint32_t list, uint64_t iid, const char *name);
/* A packet that clears the state; with a default clock and track unless 0. */
void cleared(struct file *f, uint32_t seq, uint32_t clock, uint64_t track);

struct clock_row {
    uint32_t id;
    uint64_t ts, multiplier;
    bool is_incremental;
};
void snapshot(struct file *f, uint32_t seq, uint32_t primary, const struct clock_row *rows,
              size_t n);

/* A TrackDescriptor, left open until descriptor_end(). */
void descriptor(struct file *f, uint64_t uuid, uint64_t parent, const char *name);
void descriptor_end(struct file *f);

struct read {
    struct sv_dict *dict;
    struct sv_report report;
    struct collect got;
    struct sv_buf text;
    int rc;
    struct sv_err err;
};

void read_bytes(struct read *r, const void *bytes, size_t len, uint32_t space);
void read_file(struct read *r, const struct file *f);
const char *events_of(struct read *r);
/* kind, uuid, parent's uuid, numbers, texts; one line each */
const char *tracks_of(struct read *r);
void done(struct read *r, struct file *f);

void check_finding(const struct read *r, enum sv_severity severity, const char *what,
                   uint64_t count, int64_t pos); /* pos < 0: any */
void check_no_damage(const struct read *r);

#endif
