/* ONNX Runtime through its C interface, found by dlopen.
 *
 * Called when a model is loaded and by CPU workers for a batch. The library offers one table of
 * functions that only ever grows at its end, so a function is known by its place: OrtApi in
 * microsoft/onnxruntime, include/onnxruntime/core/session/onnxruntime_c_api.h, whose own assertions
 * fix the places of each version. All places used here belong to version 1. Prints nothing; what
 * the library complains about becomes our error. The library stays loaded: it has threads and exit
 * handlers of its own. */
#include "server/run/onnx.h"

#include "core/base/mem.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION      11 /* libraries from 2022 on have it */
#define RANK_MAX         (SV_DIMS_MAX + 1)
#define ROWS_LIMIT       4096
#define LOG_FATAL        4 /* OrtLoggingLevel */
#define ALLOCATOR_DEVICE 0 /* OrtAllocatorType: no arena */
#define MEMORY_DEFAULT   0 /* OrtMemType */

/* The library's objects: only ever pointed at. A status is NULL when all went well. */
struct ort_status;
struct ort_env;
struct ort_session;
struct ort_options;
struct ort_run_options;
struct ort_value;
struct ort_memory;
struct ort_allocator;
struct ort_type;
struct ort_tensor_type;

typedef void (*any_function)(void);

struct ort_base {
    const any_function *(*get_api)(uint32_t version);
    const char *(*version)(void);
};

struct ort {
    const char *(*error_message)(const struct ort_status *s);
    struct ort_status *(*new_env)(int level, const char *name, struct ort_env **out);
    struct ort_status *(*new_session)(const struct ort_env *env, const char *path,
                                      const struct ort_options *options, struct ort_session **out);
    struct ort_status *(*run)(struct ort_session *s, const struct ort_run_options *options,
                              const char *const *in_names, const struct ort_value *const *in,
                              size_t n_in, const char *const *out_names, size_t n_out,
                              struct ort_value **out);
    struct ort_status *(*new_options)(struct ort_options **out);
    struct ort_status *(*set_intra_threads)(struct ort_options *options, int n);
    struct ort_status *(*set_inter_threads)(struct ort_options *options, int n);
    struct ort_status *(*count_inputs)(const struct ort_session *s, size_t *out);
    struct ort_status *(*count_outputs)(const struct ort_session *s, size_t *out);
    struct ort_status *(*input_type)(const struct ort_session *s, size_t i, struct ort_type **out);
    struct ort_status *(*output_type)(const struct ort_session *s, size_t i, struct ort_type **out);
    struct ort_status *(*input_name)(const struct ort_session *s, size_t i,
                                     struct ort_allocator *allocator, char **out);
    struct ort_status *(*output_name)(const struct ort_session *s, size_t i,
                                      struct ort_allocator *allocator, char **out);
    struct ort_status *(*tensor_over)(const struct ort_memory *memory, void *data, size_t bytes,
                                      const int64_t *dims, size_t n_dims, int element,
                                      struct ort_value **out);
    struct ort_status *(*tensor_data)(struct ort_value *value, void **out);
    struct ort_status *(*as_tensor_type)(const struct ort_type *type,
                                         const struct ort_tensor_type **out);
    struct ort_status *(*element_type)(const struct ort_tensor_type *type, int *out);
    struct ort_status *(*count_dims)(const struct ort_tensor_type *type, size_t *out);
    struct ort_status *(*get_dims)(const struct ort_tensor_type *type, int64_t *dims, size_t n);
    struct ort_status *(*type_of_value)(const struct ort_value *value,
                                        struct ort_tensor_type **out);
    struct ort_status *(*cpu_memory)(int allocator, int type, struct ort_memory **out);
    struct ort_status *(*allocator_free)(struct ort_allocator *allocator, void *p);
    struct ort_status *(*default_allocator)(struct ort_allocator **out);
    void (*free_env)(struct ort_env *p);
    void (*free_status)(struct ort_status *p);
    void (*free_memory)(struct ort_memory *p);
    void (*free_session)(struct ort_session *p);
    void (*free_value)(struct ort_value *p);
    void (*free_type)(struct ort_type *p);
    void (*free_tensor_type)(struct ort_tensor_type *p);
    void (*free_options)(struct ort_options *p);
};

#define PLACE(member, n)                \
    {                                   \
        offsetof(struct ort, member), n \
    }
static const struct {
    size_t at;
    unsigned place;
} places[] = {
    PLACE(error_message, 2),      PLACE(new_env, 3),
    PLACE(new_session, 7),        PLACE(run, 9),
    PLACE(new_options, 10),       PLACE(set_intra_threads, 24),
    PLACE(set_inter_threads, 25), PLACE(count_inputs, 30),
    PLACE(count_outputs, 31),     PLACE(input_type, 33),
    PLACE(output_type, 34),       PLACE(input_name, 36),
    PLACE(output_name, 37),       PLACE(tensor_over, 49),
    PLACE(tensor_data, 51),       PLACE(as_tensor_type, 55),
    PLACE(element_type, 60),      PLACE(count_dims, 61),
    PLACE(get_dims, 62),          PLACE(type_of_value, 65),
    PLACE(cpu_memory, 69),        PLACE(allocator_free, 76),
    PLACE(default_allocator, 78), PLACE(free_env, 92),
    PLACE(free_status, 93),       PLACE(free_memory, 94),
    PLACE(free_session, 95),      PLACE(free_value, 96),
    PLACE(free_type, 98),         PLACE(free_tensor_type, 99),
    PLACE(free_options, 100),
};
_Static_assert(sizeof places / sizeof *places == sizeof(struct ort) / sizeof(any_function),
               "each function has its place");

/* ONNXTensorElementDataType; 0: not served. */
static const uint8_t elements[SV_TYPES] = {
    [SV_TYPE_FP32] = 1,  [SV_TYPE_UINT8] = 2, [SV_TYPE_INT8] = 3,    [SV_TYPE_UINT16] = 4,
    [SV_TYPE_INT16] = 5, [SV_TYPE_INT32] = 6, [SV_TYPE_INT64] = 7,   [SV_TYPE_BOOL] = 9,
    [SV_TYPE_FP16] = 10, [SV_TYPE_FP64] = 11, [SV_TYPE_UINT32] = 12, [SV_TYPE_UINT64] = 13,
    [SV_TYPE_BF16] = 16,
};

struct side {
    struct sv_tensor_spec specs[SV_IO_MAX];
    int64_t rows[SV_IO_MAX]; /* the first dimension; -1: any number */
    uint32_t n;
};

struct sv_onnx {
    struct ort f;
    const char *version;
    struct ort_env *env;
    struct ort_session *session;
    struct ort_memory *memory;
    struct side sides[2]; /* inputs, outputs */
    uint32_t fixed_rows;
};

static const char *const side_names[2] = {"input", "output"};

/* ---- errors ---- */

/* The status's message on one line; gives the status back. */
static void take_message(const struct ort *f, struct ort_status *s, char *out, size_t size)
{
    snprintf(out, size, "ONNX Runtime: %s", f->error_message(s));
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    f->free_status(s);
}

static int check(const struct sv_onnx *o, struct ort_status *s, const char *path,
                 struct sv_err *err)
{
    char message[400];
    if (!s)
        return 0;
    take_message(&o->f, s, message, sizeof message);
    return sv_error(err, SV_EFORMAT, "%s: %s", path, message);
}

/* ---- the library ---- */

static void *open_library(const char *given)
{
    static const char *const names[] = {"libonnxruntime.so.1", "libonnxruntime.so"};
    void *library = given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !given && !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static int load(struct sv_onnx *o, const char *path, const char *given, struct sv_err *err)
{
    const struct ort_base *(*get_base)(void) = NULL;
    const char *own = getenv("STAVE_ONNXRUNTIME");
    given = own && *own ? own : given;
    void *library = open_library(given);
    if (!library)
        return sv_error(err, SV_EIO,
                        "%s needs ONNX Runtime (%s): install libonnxruntime.so.1 (a Linux archive "
                        "of github.com/microsoft/onnxruntime/releases has it) or set "
                        "STAVE_ONNXRUNTIME=/path/to/libonnxruntime.so.1",
                        path, dlerror());
    void *symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get_base, &symbol, sizeof get_base);
    const struct ort_base *base = get_base ? get_base() : NULL;
    const any_function *api = base ? base->get_api(API_VERSION) : NULL;
    if (!api)
        return sv_error(
            err, SV_EIO,
            "%s is not an ONNX Runtime that %s can use: version 1.%d or newer is needed",
            given ? given : "libonnxruntime.so", path, API_VERSION);
    o->version = base->version();
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        memcpy((char *)&o->f + places[i].at, &api[places[i].place], sizeof *api);
    return 0;
}

/* ---- the model ---- */

static int open_session(struct sv_onnx *o, const char *path, struct sv_err *err)
{
    struct ort_options *options = NULL;
    int code = check(o, o->f.new_env(LOG_FATAL, "stave-server", &o->env), path, err);
    if (code == 0)
        code = check(o, o->f.new_options(&options), path, err);
    /* The workers are the threads. */
    if (code == 0)
        code = check(o, o->f.set_intra_threads(options, 1), path, err);
    if (code == 0)
        code = check(o, o->f.set_inter_threads(options, 1), path, err);
    if (code == 0)
        code = check(o, o->f.new_session(o->env, path, options, &o->session), path, err);
    if (code == 0)
        code = check(o, o->f.cpu_memory(ALLOCATOR_DEVICE, MEMORY_DEFAULT, &o->memory), path, err);
    if (options)
        o->f.free_options(options);
    return code;
}

static int read_counts(struct sv_onnx *o, const char *path, struct sv_err *err)
{
    size_t n[2] = {0, 0};
    int code = check(o, o->f.count_inputs(o->session, &n[0]), path, err);
    if (code == 0)
        code = check(o, o->f.count_outputs(o->session, &n[1]), path, err);
    if (code == 0 && (n[0] < 1 || n[1] < 1 || n[0] > SV_IO_MAX || n[1] > SV_IO_MAX))
        code = sv_error(err, SV_EFORMAT,
                        "%s has %zu inputs and %zu outputs: one to %d of each can be served", path,
                        n[0], n[1], SV_IO_MAX);
    o->sides[0].n = (uint32_t)n[0];
    o->sides[1].n = (uint32_t)n[1];
    return code;
}

static int read_name(struct sv_onnx *o, unsigned side, uint32_t i, const char *path,
                     struct sv_err *err)
{
    struct ort_allocator *allocator = NULL;
    struct sv_tensor_spec *s = &o->sides[side].specs[i];
    char *name = NULL;
    int code = check(o, o->f.default_allocator(&allocator), path, err);
    if (code == 0)
        code = check(o,
                     side == 0 ? o->f.input_name(o->session, i, allocator, &name)
                               : o->f.output_name(o->session, i, allocator, &name),
                     path, err);
    if (code < 0)
        return code;
    if (!name || !name[0] || strlen(name) >= sizeof s->name)
        code = sv_error(err, SV_EFORMAT, "%s: an %s has no name, or one of more than %zu bytes",
                        path, side_names[side], sizeof s->name - 1);
    else
        memcpy(s->name, name, strlen(name) + 1);
    if (!name)
        return code;
    int freed = check(o, o->f.allocator_free(allocator, name), path, err);
    return code < 0 ? code : freed;
}

/* Rows first; what is known of the rest. */
static int take_shape(struct side *s, uint32_t i, const int64_t *dims, size_t n, const char *what,
                      const char *path, struct sv_err *err)
{
    struct sv_tensor_spec *spec = &s->specs[i];
    size_t row = 1;
    s->rows[i] = dims[0];
    spec->n_dims = (uint32_t)n - 1;
    for (size_t d = 1; d < n; d++) {
        spec->dims[d - 1] = dims[d] < 0 ? SV_DIM_DYNAMIC : dims[d];
        if (dims[d] < 0)
            continue;
        if (dims[d] == 0 || dims[d] > SV_VALUES_MAX || row * (size_t)dims[d] > SV_VALUES_MAX)
            return sv_error(err, SV_ELIMIT,
                            "%s: a row of the %s '%s' has no numbers or more than %d", path, what,
                            spec->name, SV_VALUES_MAX);
        row *= (size_t)dims[d];
    }
    return 0;
}

static bool type_of_element(int element, enum sv_datatype *out)
{
    for (int t = 0; element > 0 && t < SV_TYPES; t++)
        if (elements[t] == element) {
            *out = (enum sv_datatype)t;
            return true;
        }
    return false;
}

static int read_tensor_type(struct sv_onnx *o, unsigned side, uint32_t i,
                            const struct ort_type *type, const char *path, struct sv_err *err)
{
    const struct ort_tensor_type *tensor = NULL;
    struct sv_tensor_spec *s = &o->sides[side].specs[i];
    int64_t dims[RANK_MAX];
    size_t n = 0;
    int element = 0;
    int code = check(o, o->f.as_tensor_type(type, &tensor), path, err);
    if (code == 0 && tensor)
        code = check(o, o->f.element_type(tensor, &element), path, err);
    if (code == 0 && !type_of_element(element, &s->type))
        return sv_error(err, SV_EFORMAT,
                        "%s: the %s '%s' is not a tensor of numbers or truth values", path,
                        side_names[side], s->name);
    if (code == 0)
        code = check(o, o->f.count_dims(tensor, &n), path, err);
    if (code == 0 && (n < 1 || n > RANK_MAX))
        return sv_error(err, SV_EFORMAT,
                        "%s: the %s '%s' has %zu dimensions: rows and up to %d more can be served",
                        path, side_names[side], s->name, n, SV_DIMS_MAX);
    if (code == 0)
        code = check(o, o->f.get_dims(tensor, dims, n), path, err);
    return code == 0 ? take_shape(&o->sides[side], i, dims, n, side_names[side], path, err) : code;
}

static int read_tensor(struct sv_onnx *o, unsigned side, uint32_t i, const char *path,
                       struct sv_err *err)
{
    struct ort_type *type = NULL;
    int code = read_name(o, side, i, path, err);
    if (code == 0)
        code = check(o,
                     side == 0 ? o->f.input_type(o->session, i, &type)
                               : o->f.output_type(o->session, i, &type),
                     path, err);
    if (code == 0)
        code = read_tensor_type(o, side, i, type, path, err);
    if (type)
        o->f.free_type(type);
    return code;
}

/* Rows that come in must come out. */
static int check_rows(struct sv_onnx *o, const char *path, struct sv_err *err)
{
    int64_t in = o->sides[0].rows[0];
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < o->sides[side].n; i++) {
            int64_t rows = o->sides[side].rows[i];
            bool fits = side == 0 ? rows == in : rows < 0 || rows == in;
            if (in == 0 || in > ROWS_LIMIT || !fits)
                return sv_error(err, SV_EFORMAT,
                                "%s: %lld rows in and %lld of the %s '%s' (-1: any number): they "
                                "must be the same, at most %d",
                                path, (long long)in, (long long)rows, side_names[side],
                                o->sides[side].specs[i].name, ROWS_LIMIT);
        }
    o->fixed_rows = in > 0 ? (uint32_t)in : 0;
    return 0;
}

static struct sv_network *shape_of(const struct sv_onnx *o)
{
    struct sv_network *net = sv_alloc(sizeof *net);
    net->kind = SV_NETWORK_OUTSIDE;
    net->n_inputs = o->sides[0].n;
    net->n_outputs = o->sides[1].n;
    memcpy(net->inputs, o->sides[0].specs, sizeof net->inputs);
    memcpy(net->outputs, o->sides[1].specs, sizeof net->outputs);
    return net;
}

bool sv_onnx_is_model(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && strcmp(path + n - 5, ".onnx") == 0;
}

int sv_onnx_open(const char *path, const char *library, struct sv_onnx **out,
                 struct sv_network **shape, struct sv_err *err)
{
    struct sv_onnx *o = sv_alloc(sizeof *o);
    int code = load(o, path, library, err);
    if (code == 0)
        code = open_session(o, path, err);
    if (code == 0)
        code = read_counts(o, path, err);
    for (unsigned side = 0; code == 0 && side < 2; side++)
        for (uint32_t i = 0; code == 0 && i < o->sides[side].n; i++)
            code = read_tensor(o, side, i, path, err);
    if (code == 0)
        code = check_rows(o, path, err);
    if (code < 0) {
        sv_onnx_close(o);
        return code;
    }
    *shape = shape_of(o);
    *out = o;
    return 0;
}

void sv_onnx_close(struct sv_onnx *o)
{
    if (!o)
        return;
    if (o->memory)
        o->f.free_memory(o->memory);
    if (o->session)
        o->f.free_session(o->session);
    if (o->env)
        o->f.free_env(o->env);
    free(o);
}

const char *sv_onnx_version(const struct sv_onnx *o)
{
    return o->version;
}

uint32_t sv_onnx_fixed_rows(const struct sv_onnx *o)
{
    return o->fixed_rows;
}

/* ---- a batch ---- */

static struct ort_status *wrap(const struct sv_onnx *o, uint32_t i, struct sv_batch_tensor *t,
                               struct ort_value **out)
{
    const struct sv_tensor_spec *s = &o->sides[0].specs[i];
    return o->f.tensor_over(o->memory, t->bytes, t->len, t->dims, s->n_dims + 1, elements[s->type],
                            out);
}

static bool is_promised(const struct sv_tensor_spec *s, int64_t rows, const int64_t *dims, size_t n)
{
    if (n != s->n_dims + 1 || dims[0] != rows)
        return false;
    for (uint32_t i = 0; i < s->n_dims; i++)
        if (dims[i + 1] < 0 || dims[i + 1] > SV_VALUES_MAX ||
            (s->dims[i] != SV_DIM_DYNAMIC && s->dims[i] != dims[i + 1]))
            return false;
    return true;
}

/* Copies an output if it is what the model says. */
static struct ort_status *unwrap(const struct sv_onnx *o, uint32_t i, int64_t rows,
                                 struct ort_value *value, struct sv_batch_tensor *t, bool *is_good)
{
    const struct sv_tensor_spec *s = &o->sides[1].specs[i];
    struct ort_tensor_type *type = NULL;
    void *data = NULL;
    size_t n = 0;
    int element = 0;
    struct ort_status *status = o->f.type_of_value(value, &type);
    if (!status)
        status = o->f.element_type(type, &element);
    if (!status)
        status = o->f.count_dims(type, &n);
    if (!status && n >= 1 && n <= RANK_MAX)
        status = o->f.get_dims(type, t->dims, n);
    if (!status)
        status = o->f.tensor_data(value, &data);
    if (type)
        o->f.free_tensor_type(type);
    *is_good = !status && data && element == elements[s->type] && n <= RANK_MAX &&
               is_promised(s, rows, t->dims, n);
    if (!*is_good)
        return status;
    t->len = sv_tensor_values(t->dims, s->n_dims + 1) * sv_datatype_size(s->type);
    t->bytes = sv_alloc(t->len + 1);
    memcpy(t->bytes, data, t->len);
    return NULL;
}

static struct ort_status *run(const struct sv_onnx *o, struct sv_batch_tensor *in,
                              struct ort_value **values_in, struct ort_value **values_out)
{
    const char *names[2][SV_IO_MAX];
    const struct ort_value *inputs[SV_IO_MAX];
    struct ort_status *s = NULL;
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < o->sides[side].n; i++)
            names[side][i] = o->sides[side].specs[i].name;
    for (uint32_t i = 0; !s && i < o->sides[0].n; i++) {
        s = wrap(o, i, &in[i], &values_in[i]);
        inputs[i] = values_in[i];
    }
    if (s)
        return s;
    return o->f.run(o->session, NULL, names[0], inputs, o->sides[0].n, names[1], o->sides[1].n,
                    values_out);
}

bool sv_onnx_run(const struct sv_onnx *o, struct sv_batch_tensor *in, struct sv_batch_tensor *out,
                 char *why, size_t why_size)
{
    struct ort_value *values[2][SV_IO_MAX] = {{NULL}, {NULL}};
    bool is_good = true;
    struct ort_status *s = run(o, in, values[0], values[1]);
    for (uint32_t i = 0; !s && is_good && i < o->sides[1].n; i++) {
        s = unwrap(o, i, in[0].dims[0], values[1][i], &out[i], &is_good);
        if (!s && !is_good)
            snprintf(why, why_size,
                     "ONNX Runtime: the output '%s' has another shape than the model says",
                     o->sides[1].specs[i].name);
    }
    bool is_done = !s && is_good;
    if (s)
        take_message(&o->f, s, why, why_size);
    for (unsigned side = 0; side < 2; side++)
        for (uint32_t i = 0; i < SV_IO_MAX; i++)
            if (values[side][i])
                o->f.free_value(values[side][i]);
    return is_done;
}
