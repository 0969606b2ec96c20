/* What the Chrome JSON reader keeps: one struct for the reader, one for the event being read. */
#pragma once

#include "core/base/json_scan.h"
#include "core/base/map.h"
#include "formats/chrome/tables.h"
#include "formats/formats.h"

#define CHROME_VALUE_MAX \
    ((size_t)64 << 20) /* bytes of one event, or of one top-level value that is looked into */
#define CHROME_META_MAX  ((size_t)1 << 20) /* bytes of a top-level value that is kept as metadata */
#define CHROME_DEPTH_MAX 64u /* nesting of arguments; deeper values are kept as their text */
#define CHROME_KEY_MAX   42u /* longer keys are not cached */
#define CHROME_GUESS_MAX 48u /* bytes */

#define FIELD_BIT(field) (1u << (field))
#define FIELDS_RAW       (FIELD_BIT(FIELD_N) - FIELD_BIT(FIELD_ID))

struct chrome_span {
    const uint8_t *p;
    size_t len;
};

struct chrome_id {
    uint64_t number; /* the id itself or a hash of its text */
    bool is_local;   /* belongs to its process */
    bool is_given;
};

struct chrome_fields {
    uint32_t has; /* FIELD_BIT of what was there and usable */
    uint8_t ph;
    bool ph_is_long, is_empty, ts_is_over, dur_is_bad, dur_is_over;
    uint32_t n_others; /* unknown fields, which became arguments */
    sv_str name, cat;
    int64_t pid, tid, ts_ns, dur_ns, tts_ns, tdur_ns;
    uint32_t args_at, n_args; /* the members of `args` among the open arguments of the batch */
    const uint8_t *start;     /* the event in the window */
    bool has_bond;            /* the two that follow are known: see chrome_look_up() */
    bool is_enclosing;        /* bp: a flow's point belongs to the slice around it */
    struct chrome_id id;
    struct chrome_span args,
        raw[FIELD_N - FIELD_ID]; /* raw is the last: only what `has` names is set */
};

/* A key met before. */
struct chrome_key {
    uint8_t text[CHROME_KEY_MAX];
    uint8_t len, field;
    sv_str str;
};

/* The bytes between two values when an event of this shape was read last: comma, blanks, key,
 * colon; or blanks and the closing brace. Profilers print from fixed formats, so the same bytes
 * come again and need one comparison. */
struct chrome_guess {
    uint8_t text[CHROME_GUESS_MAX];
    uint16_t skip; /* bits of the first 16 bytes that are not in the text */
    uint8_t len;
    uint8_t field; /* enum chrome_field */
    uint8_t least; /* the byte after it must not be below: no blank before a value; 255: free */
    uint8_t step;  /* to the next place */
    sv_str str;    /* the key */
};

#define CHROME_MEMOS     SV_TABLE(256u, 4u)
#define CHROME_MEMO_TEXT 128u /* bytes */
#define CHROME_MEMO_ARGS 24u

/* An array met before, and what it became: shapes and types of an operator's inputs come again and
 * again. Texts in it are kept as their distance from the opening bracket. */
struct chrome_memo {
    uint8_t text[CHROME_MEMO_TEXT];
    struct sv_arg args[CHROME_MEMO_ARGS];
    uint32_t met; /* hash of the array that was met here last: it is kept when it comes again */
    uint8_t len, n;
};

#define CHROME_KEYS    SV_TABLE(512u, 32u)
#define CHROME_SHAPES  SV_TABLE(32u, 4u)
#define CHROME_PLACES  32u /* members of a shape; further ones share the last place */
#define CHROME_WAYS    2u
#define CHROME_TEXTS   SV_TABLE(2048u, 32u)
#define CHROME_THREADS SV_TABLE(256u, 8u)

struct chrome_text {
    uint8_t head[16];
    const char *bytes; /* in the dictionary, where they never move */
    uint32_t len;
    sv_str str;
};

struct chrome_thread {
    int64_t pid, tid;
    sv_track track; /* 0: free */
};

/* Where a key was last seen, for duplicates: stamps are numbers of objects. */
struct chrome_seen {
    uint32_t stamp;
    uint32_t at;
};

struct chrome_undo {
    sv_str key;
    struct chrome_seen seen;
};

struct chrome_level {
    uint32_t at; /* number of the container's argument, UINT32_MAX for `args` itself */
    uint32_t stamp;
    uint32_t n_undo;
    uint8_t close;
};

struct chrome_frame {
    sv_str name;
    bool has_parent;
    uint64_t parent; /* id as a number */
};

/* A process whose name says what its slices are: see formats/chrome/read_device.c. */
enum chrome_row {
    CHROME_ROW_TENSORFLOW,
    CHROME_ROW_WAITS,
    CHROME_ROW_HOST,
    CHROME_ROW_ROCM,
    CHROME_ROW_ROCM_COPY,
    CHROME_ROW_HIP,
    CHROME_ROW_HSA,
    CHROME_ROW_ROCM_RANGES
};

struct chrome_device_row {
    enum chrome_row what;
    uint8_t level; /* of TensorFlow's rows that repeat each other */
    bool is_copy;
    int64_t device, stream; /* -1: the name does not say */
};

#define CHROME_FLOW_HASHES 16u

/* The hash of a flow's category and name, which are few. */
struct chrome_flow_hash {
    sv_str cat, name;
    uint64_t hash;
};

/* What is open or unmatched: see formats/chrome/read_balance.c. */
struct chrome_flow_point {
    uint64_t key; /* 0: none */
    int64_t pos;
};

#define CHROME_WAITING 8u

struct chrome_balance {
    uint32_t *tracks; /* by track: 1 + number in `open`, 0: nothing is open */
    size_t cap_tracks;
    struct chrome_open *open;
    uint32_t *free;
    size_t n, cap, n_free, cap_free;
    uint64_t *flows;
    size_t n_flows, cap_flows;
    struct chrome_flow_point *suspects, waiting[CHROME_WAITING];
    size_t n_suspects, cap_suspects;
    uint32_t n_waiting;
    bool is_reported;
};

enum chrome_state {
    STATE_START,
    STATE_TOP,
    STATE_SKIP,
    STATE_EVENTS,
    STATE_LOST,
    STATE_AFTER,
    STATE_END
};
enum chrome_form { FORM_ARRAY, FORM_OBJECT, FORM_LINES };
enum chrome_step { STEP_ON, STEP_FULL, STEP_MORE };

struct chrome_reader {
    struct sv_source source;
    struct sv_once_paths *once_paths; /* NULL: the file has every path */
    struct sv_input *in;              /* the input, or the view of a block that was read ahead */
    struct sv_dict *dict;
    uint32_t space;
    size_t value_max; /* CHROME_VALUE_MAX, or what the window may hold */
    const struct sv_json_scan *scan;
    struct sv_batch *batch;

    /* the document */
    enum chrome_state state;
    enum chrome_form form;
    size_t need;      /* what STEP_MORE asks for */
    bool is_lost;     /* after damage, until the next good event */
    bool after_comma; /* or at the start of the list */
    bool any_list;    /* some list of events was found */
    bool by_lines;
    bool gap_has_line;  /* the bytes that left the window since the last event hold a newline */
    bool is_closed;     /* the list came to its end */
    uint64_t n_events;  /* objects of lists */
    uint8_t lost_prev;  /* last solid byte before the window while lost */
    uint64_t rescanned; /* bytes read more than once because of damage */
    uint64_t no_quote_until; /* there is no closing quote between here and this position */
    struct sv_json_skip skip;
    uint32_t n_metadata, n_keys;
    size_t series_done; /* of a counter event that did not fit the batch */

    /* reading ahead: formats/chrome/read_ahead.c */
    struct chrome_ahead *ahead; /* NULL: one thread */
    bool is_ahead;   /* this is the reader of a block: what concerns the whole file waits */
    bool needs_turn; /* its event does */

    /* a stop */
    const uint8_t *stop_at;
    bool stop_is_cut; /* at the end of the window */

    /* the event being read */
    uint32_t pending[FOUND_N];
    int64_t pending_pos[FOUND_N];
    uint64_t pending_mask;
    struct chrome_level levels[CHROME_DEPTH_MAX];
    uint32_t depth;
    uint32_t stamp, stamp_now, event_stamp; /* newest, of the open object, of the event */
    bool has_tombs;
    struct chrome_seen *seen;
    size_t cap_seen;
    struct chrome_undo *undo;
    size_t n_undo, cap_undo;

    /* caches */
    struct chrome_key keys[CHROME_KEYS];
    struct chrome_guess event_guesses[CHROME_SHAPES][CHROME_PLACES * CHROME_WAYS];
    struct chrome_guess args_guesses[CHROME_SHAPES][CHROME_PLACES * CHROME_WAYS];
    struct chrome_guess odd; /* the member that was read last without a guess: field and key */
    const uint8_t *odd_end;  /* where its value starts */
    /* the text of the value before it, when that had to be taken longer */
    struct chrome_span mended;
    struct chrome_text texts[CHROME_TEXTS];
    struct chrome_memo memos[CHROME_MEMOS];
    sv_str memo_name; /* of the event whose arguments are read, if it is known by then */
    struct chrome_thread threads[CHROME_THREADS];
    sv_track global_track;

    /* identities */
    struct sv_map text_numbers; /* synthetic pid or tid → its text */
    struct sv_map tracks; /* (pid, tid) → the track that a file of Stave's own says they are */
    struct sv_map pid_tracks;   /* the same for pids */
    struct sv_map plain_tracks; /* uuid in space 0 → process or thread of this space */
    struct sv_map frames;       /* id of a stack frame → number in frame_list */
    struct chrome_frame *frame_list;
    size_t n_frames, cap_frames;
    struct sv_map device_row_of; /* process → 1 + number in device_rows */
    struct sv_map device_levels; /* device → the most exact row of TensorFlow's */
    struct chrome_device_row *device_rows;
    size_t n_device_rows, cap_device_rows;
    bool is_stave;
    struct {
        sv_str flow, source, correlation;
    } keys_of_stave;
    int64_t base_ns; /* what is added to every time */
    bool
        /* Kineto's, without a base so far: the first time shows what times count from */
        may_be_epoch;
    struct chrome_balance balance;
    struct chrome_flow_hash flow_hashes[CHROME_FLOW_HASHES];
};
