/* Operators: which work of devices the operators, modules and phases of a program launched.
 *
 *     struct sv_ops_report r;
 *     sv_ops_report_make(&r, trace);
 *     for (size_t i = 0; i < r.operators.n; i++) … r.operators.items[i].self_ns …
 *     sv_ops_report_fini(&r);
 *
 * A piece of work (a kernel, copy or fill) belongs to the host call that launched it
 * (why/launch.h), and to the innermost operator and module that were open there. An operator is a
 * slice of category cpu_op, a module one that PyTorch's profiler calls "nn.Module: …" or Stave's
 * hooks have written (torch.forward, torch.backward). Backward operators have the module of the
 * forward operator that an arrow leads from. Profiles of JAX and TensorFlow name the operator in
 * the work itself. */
#pragma once

#include "core/stream/gpu_words.h"
#include "store/trace.h"

/* clang-format off */
#define SV_OPS_PHASES(PHASE)            \
    PHASE(OTHER, "other")               \
    PHASE(FORWARD, "forward")           \
    PHASE(BACKWARD, "backward")         \
    PHASE(OPTIMIZER, "optimizer")
/* clang-format on */
enum sv_ops_phase {
#define SV_OPS_PHASE_MEMBER(member, name) SV_OPS_##member,
    SV_OPS_PHASES(SV_OPS_PHASE_MEMBER)
#undef SV_OPS_PHASE_MEMBER
        SV_N_OPS_PHASES
};
extern const char *const sv_ops_phase_names[SV_N_OPS_PHASES];

/* One piece of work. Strings are those of the report. */
struct sv_ops_work {
    uint32_t row, launch;    /* SV_NO_ROW: not known */
    uint32_t op_row;         /* the operator; SV_NO_ROW: none, or the work names it */
    sv_str kernel, exact;    /* its name, short and as it is */
    sv_str op, module, dims; /* 0: none */
    uint8_t phase, class_;   /* enum sv_gpu_class */
};

/* An operator, a module or a phase. Work below several of one name counts once. */
struct sv_ops_group {
    sv_str name;    /* 0: work without one */
    uint64_t calls; /* slices of the host */
    int64_t host_ns, host_self_ns;
    uint64_t n;                /* pieces of work below it */
    int64_t total_ns, self_ns; /* of devices: all below it, and what it launched itself */
};
struct sv_ops_groups {
    struct sv_ops_group *items; /* the most self time first */
    size_t n, cap;
};

/* Pieces of work that are alike. */
struct sv_ops_kind {
    struct sv_ops_work like; /* its rows are those of the longest */
    uint64_t n;
    int64_t total_ns, max_ns;
};

struct sv_ops_report {
    const struct sv_trace *trace;
    struct sv_dict *names;
    struct sv_ops_work *work;  /* in the order of rows */
    struct sv_ops_kind *kinds; /* the most time first */
    struct sv_ops_groups operators, modules, phases;
    size_t n_work, n_kinds;
    int64_t kernels_ns, copies_ns;         /* sums of durations, as `report gpu` has them */
    uint64_t n_kernels, n_copies, n_calls; /* n_calls: slices of operators and modules */
    uint64_t without_launch, without_operator;
};

void sv_ops_report_make(struct sv_ops_report *r, const struct sv_trace *t);
void sv_ops_report_fini(struct sv_ops_report *r);

/* ---- the parts, for each other ---- */

/* A slice of the host that says what is below it. */
struct sv_ops_node {
    uint32_t row, above; /* a node; SV_NO_ROW: none */
    uint32_t op, module; /* the innermost nodes of these kinds, itself included */
    uint32_t outer;      /* the outermost node of its name and kind that is around it, or itself */
    sv_str name;         /* of the report; 0: it only says the phase */
    sv_str dims;
    uint8_t phase;
    bool is_op, is_module, has_dims; /* dims was looked up */
    uint64_t n;                      /* work launched here and below */
    int64_t total_ns, self_ns;
    uint64_t module_n; /* work of this module, by whatever launched */
    int64_t module_ns, module_self_ns;
};

struct sv_ops_nodes {
    const struct sv_trace *t;
    struct sv_dict *names;
    struct sv_ops_node *items;
    size_t n, cap;
    uint32_t *of_row; /* by row: the innermost node */
};

/* The nodes of the host, each after the one above it. */
void sv_ops_nodes_make(struct sv_ops_nodes *h, const struct sv_trace *t, struct sv_dict *names);
void sv_ops_nodes_fini(struct sv_ops_nodes *h);
/* The sizes of its tensors as text, "64×128, 128×256"; 0: not known. */
sv_str sv_ops_dims(struct sv_ops_nodes *h, uint32_t node);

/* What the work itself says, in profiles of JAX and TensorFlow ("jit(f)/transpose(jvp(MLP))/
 * Dense_0/dot_general"): operator, module and phase. */
struct sv_ops_path {
    struct sv_text op;
    char module[256];
    enum sv_ops_phase phase;
};
void sv_ops_path_read(struct sv_ops_path *p, struct sv_text text);
