/* gen_kineto SIZE[k|m|g] [FILE]: writes a Chrome trace as PyTorch's profiler does, of about SIZE
 * bytes.
 *
 * For benches and for trying commands on large files. Deterministic: equal sizes give equal bytes.
 * One iteration of the loop is a training step of a small network: Python functions around
 * operators with shapes and types, operators around launches, kernels and copies on two streams,
 * the two kinds of flows between them, and now and then an overlap or an annotation. The last bytes
 * are those that the profiler writes after the events, the base of the clock included. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PID 30142

struct gen {
    FILE *out;
    uint64_t bytes, target;
    uint64_t seed;
    int64_t cpu_ns, gpu_ns[2]; /* where the time line has come to */
    uint32_t external_id, correlation, python_id, sequence, index;
    unsigned n_events;
};

static uint32_t random32(struct gen *g)
{
    g->seed = g->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->seed >> 33);
}

static uint32_t between(struct gen *g, uint32_t low, uint32_t high)
{
    return low + random32(g) % (high - low + 1);
}

__attribute__((format(printf, 2, 3))) static void say(struct gen *g, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vfprintf(g->out, format, ap);
    va_end(ap);
    if (n > 0)
        g->bytes += (uint64_t)n;
}

/* Opening lines of a whole slice, up to its arguments. */
static void slice(struct gen *g, const char *cat, const char *name, int pid, int tid, int64_t ts_ns,
                  int64_t dur_ns)
{
    say(g,
        "%s  {\n    \"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d,\n"
        "    \"ts\": %" PRId64 ".%03d, \"dur\": %" PRId64 ".%03d,\n    \"args\": {\n      ",
        g->n_events++ ? ",\n" : "", cat, name, pid, tid, ts_ns / 1000, (int)(ts_ns % 1000),
        dur_ns / 1000, (int)(dur_ns % 1000));
}

static void slice_end(struct gen *g)
{
    say(g, "\n    }\n  }");
}

static void flow(struct gen *g, char phase, const char *name, uint32_t id, int pid, int tid,
                 int64_t ts_ns)
{
    say(g,
        ",\n  {\n    \"ph\": \"%c\", \"id\": %u, \"pid\": %d, \"tid\": %d, \"ts\": %" PRId64
        ".%03d,\n"
        "    \"cat\": \"%s\", \"name\": \"%s\"%s\n  }",
        phase, id, pid, tid, ts_ns / 1000, (int)(ts_ns % 1000), name, name,
        phase == 'f' ? ", \"bp\": \"e\"" : "");
    g->n_events++;
}

struct op {
    const char *name, *kernel, *dims, *types, *concrete;
};

static const struct op ops[] = {
    {"aten::linear", NULL, "[[64, 1024], [4096, 1024], [4096]]",
     "[\"float\", \"float\", \"float\"]", "[\"\", \"\", \"\"]"},
    {"aten::addmm", "ampere_sgemm_128x64_tn", "[[4096], [64, 1024], [1024, 4096], [], []]",
     "[\"float\", \"float\", \"float\", \"Scalar\", \"Scalar\"]",
     "[\"\", \"\", \"\", \"1\", \"1\"]"},
    {"aten::native_layer_norm",
     "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, "
     "float, float const*, float "
     "const*, float const*, float*, float*, float*)",
     "[[64, 128, 1024], [], [1024], [1024], []]",
     "[\"float\", \"ScalarList\", \"float\", \"float\", \"Scalar\"]",
     "[\"\", \"[1024]\", \"\", \"\", \"1.0000000000000001e-05\"]"},
    {"aten::gelu",
     "void at::native::vectorized_elementwise_kernel<4, "
     "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
     "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() "
     "const::{lambda(float)#1}, "
     "at::detail::Array<char*, 2> >(int, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
     "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() "
     "const::{lambda(float)#1}, "
     "at::detail::Array<char*, 2>)",
     "[[64, 128, 4096], []]", "[\"float\", \"\"]", "[\"\", \"\"]"},
    {"aten::add_",
     "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
     "at::detail::Array<char*, 3> "
     ">(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
     "[[64, 128, 1024], [64, 128, 1024], []]", "[\"float\", \"float\", \"Scalar\"]",
     "[\"\", \"\", \"1\"]"},
    {"aten::_softmax",
     "void (anonymous namespace)::softmax_warp_forward<float, float, float, 7, false, "
     "false>(float*, float const*, int, "
     "int, int, bool const*, int, bool)",
     "[[64, 16, 128, 128], [], []]", "[\"float\", \"Scalar\", \"Scalar\"]",
     "[\"\", \"-1\", \"False\"]"},
    {"aten::empty", NULL, "[[], [], [], [], [], []]",
     "[\"ScalarList\", \"Scalar\", \"\", \"Device\", \"\", \"\"]",
     "[\"[64, 128, 1024]\", \"6\", \"0\", \"\", \"False\", \"\"]"},
    {"aten::copy_", "Memcpy", "[[64, 128], [64, 128], []]",
     "[\"long int\", \"long int\", \"Scalar\"]", "[\"\", \"\", \"False\"]"},
};

static void memcpy_event(struct gen *g, int64_t launch_ns)
{
    int64_t dur = between(g, 900, 40000),
            ts = g->gpu_ns[1] > launch_ns ? g->gpu_ns[1] : launch_ns + 4000;
    uint32_t bytes = between(g, 256, 1u << 22);
    slice(g, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 0, 20, ts, dur);
    say(g,
        "\"External id\": %u,      \"device\": 0, \"context\": 1,      \"stream\": 20, "
        "\"correlation\": %u,      "
        "\"bytes\": %u, \"memory bandwidth (GB/s)\": %.17g",
        g->external_id, g->correlation, bytes, (double)bytes / (double)dur);
    slice_end(g);
    flow(g, 'f', "ac2g", g->correlation, 0, 20, ts);
    g->gpu_ns[1] = ts + dur + between(g, 200, 2000);
}

static void kernel_event(struct gen *g, const char *name, int64_t launch_ns)
{
    int64_t dur = between(g, 1200, 90000),
            ts = g->gpu_ns[0] > launch_ns ? g->gpu_ns[0] : launch_ns + 3000;
    uint32_t grid = between(g, 1, 8192);
    slice(g, "kernel", name, 0, 7, ts, dur);
    say(g,
        "\"External id\": %u,      \"queued\": 0, \"device\": 0, \"context\": 1,      \"stream\": "
        "7, \"correlation\": %u,      "
        "\"registers per thread\": %u,      \"shared memory\": %u,      \"blocks per SM\": %.6f,   "
        "   \"warps per SM\": "
        "%.6f,      \"grid\": [%u, %u, 1],      \"block\": [128, 1, 1],      \"est. achieved "
        "occupancy %%\": %u",
        g->external_id, g->correlation, between(g, 16, 128), between(g, 0, 4) * 8192, grid / 108.0,
        grid / 27.0, grid, between(g, 1, 16), between(g, 1, 100));
    slice_end(g);
    flow(g, 'f', "ac2g", g->correlation, 0, 7, ts);
    /* Now and then the next kernel starts before this one ends, as dependent launches do. */
    g->gpu_ns[0] = ts + dur - (random32(g) % 64 == 0 ? dur / 4 : -(int64_t)between(g, 100, 3000));
}

static void launch(struct gen *g, const struct op *op, int tid)
{
    bool is_copy = strcmp(op->kernel, "Memcpy") == 0;
    int64_t ts = g->cpu_ns, dur = between(g, 2500, 12000);
    g->correlation++;
    slice(g, "cuda_runtime", is_copy ? "cudaMemcpyAsync" : "cudaLaunchKernel", PID, tid, ts, dur);
    say(g, "\"External id\": %u,      \"cbid\": %d, \"correlation\": %u", g->external_id,
        is_copy ? 41 : 211, g->correlation);
    slice_end(g);
    flow(g, 's', "ac2g", g->correlation, PID, tid, ts);
    if (is_copy)
        memcpy_event(g, ts);
    else
        kernel_event(g, op->kernel, ts);
    g->cpu_ns += dur + between(g, 100, 900);
}

static void operator_event(struct gen *g, const struct op *op, int tid, bool is_backward,
                           uint32_t sequence)
{
    char name[128];
    int64_t start = g->cpu_ns;
    g->external_id++;
    snprintf(name, sizeof name, is_backward ? "autograd::engine::evaluate_function: %s" : "%s",
             op->name);
    slice(g, "cpu_op", name, PID, tid, start, between(g, 14000, 60000));
    say(g,
        "\"External id\": %u,\"Record function id\": 0, \"Concrete Inputs\": %s, \"Input type\": "
        "%s, \"Input Strides\": %s, "
        "\"Input Dims\": %s, \"Sequence number\": %u, \"Fwd thread id\": %d, \"Ev Idx\": %u",
        g->external_id, op->concrete, op->types, op->dims, op->dims, sequence, is_backward ? 1 : 0,
        g->index++);
    slice_end(g);
    if (op->kernel && random32(g) % 4 != 0)
        flow(g, is_backward ? 'f' : 's', "fwdbwd", sequence, PID, tid, start);
    g->cpu_ns += between(g, 500, 3000);
    if (op->kernel)
        launch(g, op, tid);
    g->cpu_ns += between(g, 500, 2000);
}

static void python_event(struct gen *g, const char *name, int tid, int64_t dur)
{
    slice(g, "python_function", name, PID, tid, g->cpu_ns, dur);
    say(g, "\"Python parent id\": %u, \"Python id\": %u, \"Python module id\": %u, \"Ev Idx\": %u",
        g->python_id, g->python_id + 1, g->python_id % 97, g->index++);
    slice_end(g);
    g->python_id++;
    g->cpu_ns += between(g, 200, 1500);
}

static void step(struct gen *g, uint32_t number)
{
    static const char *const functions[] = {
        "torch/nn/modules/module.py(1518): _call_impl", "nn.Module: TransformerEncoderLayer_0",
        "torch/nn/modules/linear.py(114): forward",
        "<built-in method linear of type object at 0x7f2a3c5d8a40>"};
    char name[64];
    snprintf(name, sizeof name, "ProfilerStep#%u", number);
    slice(g, "user_annotation", name, PID, PID, g->cpu_ns, 3000000);
    say(g, "\"External id\": %u,\"Record function id\": 0, \"Ev Idx\": %u", ++g->external_id,
        g->index++);
    slice_end(g);
    uint32_t first = g->sequence;
    for (unsigned layer = 0; layer < 12; layer++) {
        for (unsigned i = 0; i < 4; i++)
            python_event(g, functions[i], PID, between(g, 30000, 400000));
        for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
            operator_event(g, &ops[i], PID, false, g->sequence++);
    }
    for (uint32_t s = g->sequence; s > first; s--)
        operator_event(g, &ops[(s - 1 - first) % (sizeof ops / sizeof ops[0])], PID + 77, true,
                       s - 1);
    g->cpu_ns += 500000;
}

static void head(struct gen *g)
{
    say(g, "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n");
    for (int i = 0; i < 8; i++)
        say(g,
            "    {\n      \"id\": %d, \"name\": \"NVIDIA A100-SXM4-80GB\", \"totalGlobalMem\": "
            "84990623744,\n"
            "      \"computeMajor\": 8, \"computeMinor\": 0,\n      \"maxThreadsPerBlock\": 1024, "
            "\"maxThreadsPerMultiprocessor\": 2048,\n      \"regsPerBlock\": 65536, \"warpSize\": "
            "32,\n      "
            "\"sharedMemPerBlock\": 49152, \"numSms\": 108\n    }%s\n",
            i, i < 7 ? "," : "");
    say(g, "  ],\n  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 3, \"world_size\": 8},\n"
           "  \"record_shapes\": 1,\n  \"with_stack\": 1,\n  \"traceEvents\": [\n");
}

static void metadata(struct gen *g, const char *what, const char *pid, int tid, const char *args)
{
    say(g,
        ",\n  {\n    \"name\": \"%s\", \"ph\": \"M\", \"ts\": %" PRId64
        ".%03d, \"pid\": %s, \"tid\": %d,\n    \"args\": "
        "{\n      %s\n    }\n  }",
        what, g->cpu_ns / 1000, (int)(g->cpu_ns % 1000), pid, tid, args);
    g->n_events++;
}

static void tail(struct gen *g)
{
    metadata(g, "process_name", "30142", 0, "\"name\": \"python\"");
    metadata(g, "process_labels", "30142", 0, "\"labels\": \"CPU\"");
    metadata(g, "process_sort_index", "30142", 0, "\"sort_index\": 30142");
    metadata(g, "process_name", "0", 0, "\"name\": \"python\"");
    metadata(g, "process_labels", "0", 0, "\"labels\": \"GPU 0\"");
    metadata(g, "process_sort_index", "0", 0, "\"sort_index\": 5000000");
    metadata(g, "thread_name", "0", 7, "\"name\": \"stream 7 \"");
    metadata(g, "thread_sort_index", "0", 7, "\"sort_index\": 7");
    metadata(g, "thread_name", "0", 20, "\"name\": \"stream 20 \"");
    metadata(g, "thread_name", "30142", PID, "\"name\": \"thread 30142 (python)\"");
    metadata(g, "thread_name", "30142", PID + 77, "\"name\": \"thread 30219 (pt_autograd_0)\"");
    metadata(g, "process_sort_index", "\"Spans\"", 0, "\"sort_index\": 536870912");
    say(g,
        ",\n  {\n    \"name\": \"Iteration Start: PyTorch Profiler\", \"ph\": \"i\", \"s\": "
        "\"g\",\n    \"pid\": "
        "\"Traces\", \"tid\": \"Trace PyTorch Profiler\", \"ts\": 1000000000.000\n  },\n  {\n    "
        "\"name\": \"Record Window "
        "End\", \"ph\": \"i\", \"s\": \"g\",\n    \"pid\": \"\", \"tid\": \"\", \"ts\": %" PRId64
        ".%03d\n  }\n  ],\n  "
        "\"traceName\": \"/tmp/kineto.json\",\n  \"displayTimeUnit\": \"ms\",\n  "
        "\"baseTimeNanoseconds\": "
        "1711964646000000000\n}\n",
        g->cpu_ns / 1000, (int)(g->cpu_ns % 1000));
}

static uint64_t parse_size(const char *text)
{
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    switch (*end) {
    case 'k': return n << 10;
    case 'm': return n << 20;
    case 'g': return n << 30;
    case 0: return n;
    default: return 0;
    }
}

int main(int argc, char **argv)
{
    struct gen g = {
        .out = stdout, .seed = 42, .cpu_ns = 1000000000000, .external_id = 1, .sequence = 1};
    g.target = argc > 1 ? parse_size(argv[1]) : 0;
    if (argc > 3 || g.target == 0) {
        fprintf(stderr, "usage: gen_kineto SIZE[k|m|g] [FILE]\n");
        return 2;
    }
    if (argc == 3 && !(g.out = fopen(argv[2], "w"))) {
        perror(argv[2]);
        return 3;
    }
    head(&g);
    for (uint32_t i = 1; i == 1 || g.bytes < g.target; i++)
        step(&g, i);
    tail(&g);
    if (fclose(g.out) != 0) {
        perror("gen_kineto");
        return 3;
    }
    return 0;
}
