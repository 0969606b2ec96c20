/* A probe: one kind of kernel event, with everything that the recorder knows about it.
 *
 * The kernel's side is bpf/NAME.h: the structs of its records, and its programs, whose names begin
 * with on_NAME. This side is probes/NAME.c: one `const struct sv_probe sv_probe_NAME`. list.h has a
 * line for each. These are made from the structs and the list: the sizes and the dispatch of the
 * decoder, the programs to load, the options of `stave record`, the names of losses, the summary,
 * and the table in docs/record.md. */
#ifndef SV_RECORD_PROBES_PROBE_H
#define SV_RECORD_PROBES_PROBE_H

#include "record/bpf/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sv_batch;
struct sv_decode;
struct sv_scout;

enum sv_probe_number {
#define SV_PROBE(name, option, ...) SV_PROBE_##name,
#include "record/probes/list.h"
#undef SV_PROBE
    SV_N_PROBES
};

enum { SV_PROBE_RECORDS = 4, SV_PROBE_SUMS = 2 }; /* per probe, at most */
enum { SV_PROBE_EVENTS = 6 }; /* that a record makes at most, with those that wait before it */

struct sv_probe_record {
    uint16_t kind; /* enum sv_wire_kind */
    uint32_t size; /* of its struct; texts or addresses may follow */
    /* What is lost when the ring is full: "block requests". */
    const char *name;
    /* Adds the events of a record, which has at least `size` bytes. False: the record is
     * malformed. */
    bool (*decode)(struct sv_decode *d, void *state, struct sv_batch *b,
                   const struct sv_wire_head *record, uint32_t size);
};

/* The option of `stave record` that switches it. Arrays, because the table of options is a constant
 * that points to them. */
struct sv_probe_option {
    char name[24]; /* "": none */
    char arg[8];   /* of a COUNT */
    char help[256];
    char topic[24]; /* as in struct sv_option; "": among the first */
    bool turns_off; /* recorded unless given */
    /* Of a PAIR: the option that turns it off; `name` undoes that. Recorded unless turned off. */
    char off_name[24], off_help[64];
};

/* A sum that the summary shows, over the events of a category (record/session/totals.h). */
enum sv_probe_sum_of {
    SV_SUM_NONE,
    SV_SUM_EVENTS,
    SV_SUM_UNFINISHED, /* that have begun and not ended, among sources of whole slices */
    SV_SUM_BYTES       /* of their arguments `bytes` */
};

struct sv_probe_sum {
    enum sv_probe_sum_of of;
    const char *text; /* after the number: "block requests" */
    bool is_always;   /* shown when it is 0, too */
};

/* A row of the table in docs/record.md. The option is added by itself. */
struct sv_probe_docs {
    const char *what; /* the events */
    const char *row;  /* the track that they are on */
    const char *says; /* what an event says */
};

struct sv_probe {
    const char *name;
    const char *cat; /* the category of its events */
    struct sv_probe_record records[SV_PROBE_RECORDS];
    struct sv_probe_option option;
    struct sv_probe_sum sums[SV_PROBE_SUMS];
    struct sv_probe_docs docs;
    const char *less; /* how to record less of it, where a ring was full: "a longer --offcpu-min" */
    /* Without an option of its own: recorded with this probe, or with one of these groups of calls
     * (calls.h). Neither: always. */
    const struct sv_probe *with[2]; /* any of them */
    unsigned groups;
    /* One of its tracepoints that plain hooks do not have; NULL: it works with all hooks. */
    const char *tracepoint;
    /* Memory of the decoder for this probe, zeroed; 0: none. */
    size_t state_size;
    void (*open)(struct sv_decode *d, void *state);  /* may be NULL, and so may close */
    void (*close)(struct sv_decode *d, void *state); /* its members; the state itself is freed */
    /* Events that it has gathered and not given yet (sv_decode_waits()): called at the end of a
     * batch, and before the events of probes that have `ends_gathering`. */
    void (*flush)(struct sv_decode *d, void *state, struct sv_batch *b);
    bool ends_gathering;
    /* Whether a record can be decoded seconds after it came: false where its decoder asks /proc,
     * symbols or files for what may be gone by then. NULL: none of them can. The recorder then
     * decodes all of them at once. See record/spool/scout.h. */
    bool (*can_wait)(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size);
};

extern const struct sv_probe *const sv_probes[SV_N_PROBES];
#define SV_PROBE(name, option, ...) extern const struct sv_probe sv_probe_##name;
#include "record/probes/list.h"
#undef SV_PROBE

/* What the command line gave for each. */
struct sv_probe_setting {
    bool is_given;   /* a FLAG, or the first of a PAIR */
    bool is_off;     /* the second of a PAIR */
    uint64_t number; /* a COUNT */
};

/* Which are recorded, by number: 0 is off, else 1 or the value of the option. `groups`: of system
 * calls. */
void sv_probes_choose(const struct sv_probe_setting settings[SV_N_PROBES], unsigned groups,
                      uint64_t chosen[SV_N_PROBES]);
/* The probe that a kernel program belongs to, by its name; -1: none. */
int sv_probe_of_program(const char *program);
/* What a record of this kind is called when it is lost. */
const char *sv_probe_lost_name(unsigned kind);
/* The probe whose records have this name; NULL: it is not one of a ring that was full. */
const struct sv_probe *sv_probe_that_lost(const char *name);

#endif
