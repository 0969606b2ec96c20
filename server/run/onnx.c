/* ONNX Runtime through its C interface, found by dlopen.
 *
 * Called when a model is loaded and by CPU workers for a batch. The library offers one table of functions that only ever grows at its end, so a
 * function is known by its place: OrtApi in microsoft/onnxruntime, include/onnxruntime/core/session/onnxruntime_c_api.h, whose own
 * assertions fix the places of each version. All places used here belong to version 1. Prints nothing; what the library complains about becomes
 * our error. The library stays loaded: it has threads and exit handlers of its own. */
#include "server/run/onnx.h"

#include "core/base/mem.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API_VERSION      11 /* libraries from 2022 on have it */
#define RANK_MAX         8
#define ROW_LIMIT        (1 << 22) /* floats of a row, as for our own networks */
#define ROWS_LIMIT       4096
#define ELEMENT_FLOAT    1 /* ONNXTensorElementDataType */
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
    struct ort_status *(*as_tensor_type)(const struct ort_type *type,
                                         const struct ort_tensor_type **out);
    struct ort_status *(*element_type)(const struct ort_tensor_type *type, int *out);
    struct ort_status *(*count_dims)(const struct ort_tensor_type *type, size_t *out);
    struct ort_status *(*get_dims)(const struct ort_tensor_type *type, int64_t *dims, size_t n);
    struct ort_status *(*cpu_memory)(int allocator, int type, struct ort_memory **out);
    struct ort_status *(*allocator_free)(struct ort_allocator *allocator, void *p);
    struct ort_status *(*default_allocator)(struct ort_allocator **out);
    void (*free_env)(struct ort_env *p);
    void (*free_status)(struct ort_status *p);
    void (*free_memory)(struct ort_memory *p);
    void (*free_session)(struct ort_session *p);
    void (*free_value)(struct ort_value *p);
    void (*free_type)(struct ort_type *p);
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
    PLACE(as_tensor_type, 55),    PLACE(element_type, 60),
    PLACE(count_dims, 61),        PLACE(get_dims, 62),
    PLACE(cpu_memory, 69),        PLACE(allocator_free, 76),
    PLACE(default_allocator, 78), PLACE(free_env, 92),
    PLACE(free_status, 93),       PLACE(free_memory, 94),
    PLACE(free_session, 95),      PLACE(free_value, 96),
    PLACE(free_type, 98),         PLACE(free_options, 100),
};
_Static_assert(sizeof places / sizeof *places == sizeof(struct ort) / sizeof(any_function),
               "each function has its place");

struct shape {
    int64_t dims[RANK_MAX];
    size_t n;
    size_t row; /* floats of a row */
};

struct sv_onnx {
    struct ort f;
    const char *version;
    struct ort_env *env;
    struct ort_session *session;
    struct ort_memory *memory;
    char *names[2]; /* of the input, of the output */
    struct shape shapes[2];
    uint32_t fixed_rows;
};

static const char *const sides[2] = {"input", "output"};

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
    return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "%s: %s", path, message);
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
        return sv_err_set(
            err, SV_EIO, SV_NO_POS,
            "%s needs ONNX Runtime (%s): install libonnxruntime.so.1 (a Linux archive "
            "of github.com/microsoft/onnxruntime/releases has it) or set "
            "STAVE_ONNXRUNTIME=/path/to/libonnxruntime.so.1",
            path, dlerror());
    void *symbol = dlsym(library, "OrtGetApiBase");
    memcpy(&get_base, &symbol, sizeof get_base);
    const struct ort_base *base = get_base ? get_base() : NULL;
    const any_function *api = base ? base->get_api(API_VERSION) : NULL;
    if (!api)
        return sv_err_set(
            err, SV_EIO, SV_NO_POS,
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

static int read_counts(const struct sv_onnx *o, const char *path, struct sv_err *err)
{
    size_t n[2] = {0, 0};
    int code = check(o, o->f.count_inputs(o->session, &n[0]), path, err);
    if (code == 0)
        code = check(o, o->f.count_outputs(o->session, &n[1]), path, err);
    if (code == 0 && (n[0] != 1 || n[1] != 1))
        code = sv_err_set(err, SV_EFORMAT, SV_NO_POS,
                          "%s has %zu inputs and %zu outputs: one of each can be served", path,
                          n[0], n[1]);
    return code;
}

static int read_name(struct sv_onnx *o, unsigned side, const char *path, struct sv_err *err)
{
    struct ort_allocator *allocator = NULL;
    char *name = NULL;
    int code = check(o, o->f.default_allocator(&allocator), path, err);
    if (code == 0)
        code = check(o,
                     side == 0 ? o->f.input_name(o->session, 0, allocator, &name)
                               : o->f.output_name(o->session, 0, allocator, &name),
                     path, err);
    if (code < 0)
        return code;
    if (!name)
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "%s: an input or output has no name", path);
    o->names[side] = sv_strndup(name, strlen(name));
    return check(o, o->f.allocator_free(allocator, name), path, err);
}

/* FP32, rows first, everything after them known. */
static int check_shape(struct shape *s, unsigned side, const char *name, const char *path,
                       struct sv_err *err)
{
    s->row = 1;
    for (size_t i = 1; i < s->n; i++) {
        if (s->dims[i] < 1)
            return sv_err_set(err, SV_EFORMAT, SV_NO_POS,
                              "%s: dimension %zu of the %s '%s' is dynamic: only the first "
                              "dimension (rows) may be; export the model with a fixed size",
                              path, i + 1, sides[side], name);
        if (s->dims[i] > ROW_LIMIT || s->row * (size_t)s->dims[i] > ROW_LIMIT)
            return sv_err_set(err, SV_ELIMIT, SV_NO_POS,
                              "%s: a row of the %s '%s' has more than %d numbers", path,
                              sides[side], name, ROW_LIMIT);
        s->row *= (size_t)s->dims[i];
    }
    return 0;
}

static int read_tensor_type(struct sv_onnx *o, unsigned side, const struct ort_type *type,
                            const char *path, struct sv_err *err)
{
    const struct ort_tensor_type *tensor = NULL;
    struct shape *s = &o->shapes[side];
    int element = 0;
    int code = check(o, o->f.as_tensor_type(type, &tensor), path, err);
    if (code == 0 && tensor)
        code = check(o, o->f.element_type(tensor, &element), path, err);
    if (code == 0 && element != ELEMENT_FLOAT)
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "%s: the %s '%s' is not an FP32 tensor", path,
                          sides[side], o->names[side]);
    if (code == 0)
        code = check(o, o->f.count_dims(tensor, &s->n), path, err);
    /* The protocol's side holds three dimensions after the rows. */
    if (code == 0 && (s->n < 1 || s->n > (side == 0 ? 4 : RANK_MAX) || (side == 0 && s->n < 2)))
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS,
                          "%s: the %s '%s' has %zu dimensions: rows and one to three more can be "
                          "served",
                          path, sides[side], o->names[side], s->n);
    if (code == 0)
        code = check(o, o->f.get_dims(tensor, s->dims, s->n), path, err);
    return code == 0 ? check_shape(s, side, o->names[side], path, err) : code;
}

static int read_side(struct sv_onnx *o, unsigned side, const char *path, struct sv_err *err)
{
    struct ort_type *type = NULL;
    int code = read_name(o, side, path, err);
    if (code == 0)
        code = check(o,
                     side == 0 ? o->f.input_type(o->session, 0, &type)
                               : o->f.output_type(o->session, 0, &type),
                     path, err);
    if (code == 0)
        code = read_tensor_type(o, side, type, path, err);
    if (type)
        o->f.free_type(type);
    return code;
}

/* Rows that come in must come out. */
static int check_rows(struct sv_onnx *o, const char *path, struct sv_err *err)
{
    int64_t in = o->shapes[0].dims[0], out = o->shapes[1].dims[0];
    if (in == 0 || in > ROWS_LIMIT || (out >= 0 && out != in))
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS,
                          "%s: %lld rows in and %lld out (-1: any number): they must be the same, "
                          "at most %d",
                          path, (long long)in, (long long)out, ROWS_LIMIT);
    o->fixed_rows = in > 0 ? (uint32_t)in : 0;
    return 0;
}

static struct sv_network *shape_of(const struct sv_onnx *o)
{
    struct sv_network *net = sv_alloc(sizeof *net);
    net->n_in_dims = (uint32_t)o->shapes[0].n - 1;
    for (uint32_t i = 0; i < net->n_in_dims; i++)
        net->in_dims[i] = (uint32_t)o->shapes[0].dims[i + 1];
    net->in_size = o->shapes[0].row;
    net->out_size = o->shapes[1].row;
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
        code = read_side(o, side, path, err);
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
    free(o->names[0]);
    free(o->names[1]);
    free(o);
}

const char *sv_onnx_version(const struct sv_onnx *o)
{
    return o->version;
}

const char *sv_onnx_input(const struct sv_onnx *o)
{
    return o->names[0];
}

const char *sv_onnx_output(const struct sv_onnx *o)
{
    return o->names[1];
}

uint32_t sv_onnx_fixed_rows(const struct sv_onnx *o)
{
    return o->fixed_rows;
}

/* ---- a batch ---- */

static struct ort_status *wrap(const struct sv_onnx *o, unsigned side, float *data, uint32_t rows,
                               struct ort_value **out)
{
    const struct shape *s = &o->shapes[side];
    int64_t dims[RANK_MAX];
    memcpy(dims, s->dims, sizeof dims);
    dims[0] = rows;
    return o->f.tensor_over(o->memory, data, rows * s->row * sizeof *data, dims, s->n,
                            ELEMENT_FLOAT, out);
}

bool sv_onnx_run(const struct sv_onnx *o, const float *in, float *out, uint32_t rows, char *why,
                 size_t why_size)
{
    struct ort_value *values[2] = {NULL, NULL};
    if (o->fixed_rows)
        rows = o->fixed_rows;
    /* The input is only read: the function takes a plain pointer because tensors of outputs are made by it, too. */
    struct ort_status *s = wrap(o, 0, (float *)(uintptr_t)in, rows, &values[0]);
    if (!s)
        s = wrap(o, 1, out, rows, &values[1]);
    if (!s) {
        const char *in_name = o->names[0], *out_name = o->names[1];
        const struct ort_value *input = values[0];
        s = o->f.run(o->session, NULL, &in_name, &input, 1, &out_name, 1, &values[1]);
    }
    bool is_done = s == NULL;
    if (s)
        take_message(&o->f, s, why, why_size);
    for (unsigned i = 0; i < 2; i++)
        if (values[i])
            o->f.free_value(values[i]);
    return is_done;
}
