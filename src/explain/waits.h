/* A group of waits on its way to a finding: between explain_waits.c and explain_files.c. */
#ifndef SV_EXPLAIN_WAITS_H
#define SV_EXPLAIN_WAITS_H

#include "explain/explain.h"

/* Sums by key, with the longest piece of each. */
struct sv_why_sum {
    uint64_t key, n;
    int64_t ns, longest_ns;
    uint32_t piece;
};
struct sv_why_sums {
    struct sv_map by_key;
    struct sv_why_sum *items;
    size_t n, cap;
};
void sv_why_sums_add(struct sv_why_sums *t, uint64_t key, uint32_t piece, int64_t ns);
const struct sv_why_sum *sv_why_sums_most(const struct sv_why_sums *t); /* NULL: it is empty */
void sv_why_sums_fini(struct sv_why_sums *t);

/* What one cause would be: the waits for one lock, for one peer, for the loaders. */
struct sv_wait_sum {
    unsigned class;
    bool is_stopped; /* unknown, but that somebody stopped it */
    int64_t ns;
};
struct sv_wait_groups {
    uint32_t *of; /* by piece: number of its group; UINT32_MAX: its unit does not count */
    struct sv_wait_sum *items;
    size_t n;
};

struct sv_wait_group {
    struct sv_explaining *x;
    uint32_t number;
    unsigned class;
    struct sv_answer answer;
    int64_t ns, assumed_ns, doing_ns[SV_N_DOINGS];
    int64_t rapid_ns; /* reads and the moments between two of them: what a larger buffer saves */
    int64_t rapid_reads_ns; /* of it the reads; those that a busy machine made long are none */
    struct sv_why_sums holders, paths; /* by thread; by path */
    char waits_in[96];                 /* the waiter's own slice, where nothing else is known */
    const struct sv_why_piece *piece;  /* that stands for them; NULL: not chosen yet */
    const struct sv_why_piece *last;   /* of who did most for the culprit; NULL: the culprit did */
};

/* Of units that are gaps of a device: the findings that the launching thread's waits are worth,
 * with shares of `all_ns`, into x->e. */
void sv_waits_of_gaps(struct sv_explaining *x, int64_t all_ns);

/* Is the piece of this group, and of a unit that is asked about? */
bool sv_waits_has(const struct sv_wait_group *w, size_t piece);
const char *sv_waits_of(const struct sv_wait_group *w); /* "the time": what shares are of */
/* The thread that a piece is charged to: who had what was waited for. */
uint32_t sv_waits_holder(const struct sv_ledger *l, const struct sv_why_piece *p);
/* Culprit and chain: whoever had most of it. */
void sv_waits_name(struct sv_wait_group *w);
/* " in hold() (train.py:12)", or nothing. */
void sv_culprit_where(const struct sv_culprit *c, char *to, size_t size);
extern const char *const sv_doing_words[SV_N_DOINGS]; /* "computes" … */
/* What the culprit does: "computes", "reads data/a.bin", or for whom it waits in turn. */
void sv_waits_tell_doing(const struct sv_wait_group *w, unsigned doing, char *to, size_t size);
unsigned sv_waits_doing(const struct sv_wait_group *w); /* what took most of the time */
/* Who ran meanwhile, for a wait for a CPU: the end of its sentence, and the culprit. False: the
 * kernel's own count says that it hardly waited. */
bool sv_waits_rival(struct sv_wait_group *w);
/* For how much of the time those who are waited for could run and did not, by the kernel's own
 * count. */
double sv_waits_delayed(const struct sv_wait_group *w);
void sv_waits_say_data(struct sv_wait_group *w);
void sv_waits_say_disk(struct sv_wait_group *w);

/* Finds the units that are slow, and which share of what they take longer each group has. False:
 * none is slow. */
bool sv_slow_units_ask(struct sv_explaining *x, double *shares);
void sv_slow_units_answer(struct sv_explaining *x, double *shares,
                          void (*explain)(struct sv_explaining *, double *, double));

uint32_t sv_waited_for(const struct sv_ledger *l, const struct sv_why_piece *p);
bool sv_is_of_loader(const struct sv_ledger *l, const struct sv_why_piece *p);

#endif
