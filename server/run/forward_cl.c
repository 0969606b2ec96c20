/* The networks as OpenCL kernels, for StarPU's OpenCL workers.
 *
 * One struct per worker and model: program, kernels, weights on the device, two buffers that layers
 * take turns in. StarPU brings input and output to the device; everything here runs on the worker's
 * own queue and is waited for, so that the codelet's time is the kernels'. A failure anywhere makes
 * the run false, and the batch fails. */
#include "server/run/engine.h"

#include "core/base/mem.h"

#include <starpu_opencl.h>

/* One work item per output element; softmax one per row. */
static const char source[] =
    "kernel void dense(global const float *in, global const float *w, global const float *b,\n"
    "                  global float *out, int k, int n, int relu) {\n"
    "    int r = get_global_id(1), o = get_global_id(0);\n"
    "    float s = b[o];\n"
    "    for (int i = 0; i < k; i++) s += in[r * k + i] * w[o * k + i];\n"
    "    out[r * n + o] = relu ? fmax(s, 0.0f) : s;\n"
    "}\n"
    "kernel void conv(global const float *in, global const float *w, global const float *b,\n"
    "                 global float *out, int c, int h, int wd, int k, int m, int relu) {\n"
    "    int i = get_global_id(0), r = get_global_id(1);\n"
    "    int x = i % wd, y = i / wd % h, o = i / (wd * h), pad = k / 2;\n"
    "    float s = b[o];\n"
    "    for (int ci = 0; ci < c; ci++)\n"
    "        for (int ky = 0; ky < k; ky++)\n"
    "            for (int kx = 0; kx < k; kx++) {\n"
    "                int sy = y + ky - pad, sx = x + kx - pad;\n"
    "                if (sy >= 0 && sy < h && sx >= 0 && sx < wd)\n"
    "                    s += in[((r * c + ci) * h + sy) * wd + sx] * w[((o * c + ci) * k + ky) * "
    "k + kx];\n"
    "            }\n"
    "    out[r * m * h * wd + i] = relu ? fmax(s, 0.0f) : s;\n"
    "}\n"
    "kernel void maxpool(global const float *in, global float *out, int c, int h, int wd, int k) "
    "{\n"
    "    int i = get_global_id(0), r = get_global_id(1), ow = wd / k, oh = h / k;\n"
    "    int x = i % ow, y = i / ow % oh, p = r * c + i / (ow * oh);\n"
    "    float top = in[(p * h + y * k) * wd + x * k];\n"
    "    for (int j = 0; j < k * k; j++) top = fmax(top, in[(p * h + y * k + j / k) * wd + x * k + "
    "j % k]);\n"
    "    out[r * c * oh * ow + i] = top;\n"
    "}\n"
    "kernel void avgpool(global const float *in, global float *out, int c, int h, int wd) {\n"
    "    int p = get_global_id(1) * c + get_global_id(0);\n"
    "    float s = 0;\n"
    "    for (int j = 0; j < h * wd; j++) s += in[p * h * wd + j];\n"
    "    out[p] = s / (h * wd);\n"
    "}\n"
    "kernel void softmax(global float *out, int n) {\n"
    "    global float *row = out + get_global_id(0) * n;\n"
    "    float top = row[0], s = 0;\n"
    "    for (int j = 1; j < n; j++) top = fmax(top, row[j]);\n"
    "    for (int j = 0; j < n; j++) s += row[j] = exp(row[j] - top);\n"
    "    for (int j = 0; j < n; j++) row[j] /= s;\n"
    "}\n";

enum { DENSE, CONV, MAXPOOL, AVGPOOL, SOFTMAX, KERNELS };
static const char *const kernel_names[KERNELS] = {"dense", "conv", "maxpool", "avgpool", "softmax"};

struct sv_forward_cl {
    const struct sv_network *net;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernels[KERNELS];
    cl_mem weights[SV_LAYERS_MAX], biases[SV_LAYERS_MAX], halves[2];
    bool is_failed;
};

static cl_mem upload(struct sv_forward_cl *f, const float *data, size_t n)
{
    cl_int code;
    cl_mem m = clCreateBuffer(f->context, CL_MEM_READ_ONLY, n * sizeof *data, NULL, &code);
    if (code == CL_SUCCESS)
        code = clEnqueueWriteBuffer(f->queue, m, CL_TRUE, 0, n * sizeof *data, data, 0, NULL, NULL);
    f->is_failed = f->is_failed || code != CL_SUCCESS;
    return m;
}

static void make_program(struct sv_forward_cl *f, cl_device_id device)
{
    const char *text = source;
    cl_int code;
    f->program = clCreateProgramWithSource(f->context, 1, &text, NULL, &code);
    if (code == CL_SUCCESS)
        code = clBuildProgram(f->program, 1, &device, "", NULL, NULL);
    f->is_failed = code != CL_SUCCESS;
    for (int i = 0; i < KERNELS && !f->is_failed; i++) {
        f->kernels[i] = clCreateKernel(f->program, kernel_names[i], &code);
        f->is_failed = code != CL_SUCCESS;
    }
}

struct sv_forward_cl *sv_forward_cl_new(const struct sv_network *net, uint32_t rows_max, int worker)
{
    struct sv_forward_cl *f = sv_alloc(sizeof *f);
    cl_device_id device;
    int devid = starpu_worker_get_devid(worker);
    f->net = net;
    starpu_opencl_get_context(devid, &f->context);
    starpu_opencl_get_device(devid, &device);
    starpu_opencl_get_queue(devid, &f->queue);
    make_program(f, device);
    for (int i = 0; i < 2 && !f->is_failed; i++) {
        cl_int code;
        f->halves[i] = clCreateBuffer(f->context, CL_MEM_READ_WRITE,
                                      net->widest * rows_max * sizeof(float), NULL, &code);
        f->is_failed = code != CL_SUCCESS;
    }
    for (uint32_t i = 0; i < net->n && !f->is_failed; i++) {
        const struct sv_layer *l = &net->layers[i];
        size_t taps = l->kind == SV_LAYER_DENSE ? sv_volume_size(l->in)
                                                : (size_t)l->in.c * l->kernel * l->kernel;
        if (!l->weight)
            continue;
        f->weights[i] = upload(f, l->weight, taps * l->out.c);
        f->biases[i] = upload(f, l->bias, l->out.c);
    }
    return f;
}

void sv_forward_cl_free(struct sv_forward_cl *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->net->n; i++) {
        if (f->weights[i])
            clReleaseMemObject(f->weights[i]);
        if (f->biases[i])
            clReleaseMemObject(f->biases[i]);
    }
    for (int i = 0; i < 2; i++)
        if (f->halves[i])
            clReleaseMemObject(f->halves[i]);
    for (int i = 0; i < KERNELS; i++)
        if (f->kernels[i])
            clReleaseKernel(f->kernels[i]);
    if (f->program)
        clReleaseProgram(f->program);
    free(f);
}

/* Groups of a size that depends on the layer only: some drivers compile a kernel anew for every
 * size of group. */
static size_t group_size(size_t n)
{
    size_t group = n & (~n + 1);
    return group > 256 ? 256 : group;
}

/* A kernel with its buffers, then its whole numbers. */
static void launch(struct sv_forward_cl *f, int kernel, const cl_mem *mems, cl_uint n_mems,
                   const int *ints, cl_uint n_ints, const size_t *size)
{
    cl_kernel k = f->kernels[kernel];
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < n_mems; i++)
        code |= clSetKernelArg(k, i, sizeof *mems, &mems[i]);
    for (cl_uint i = 0; i < n_ints; i++)
        code |= clSetKernelArg(k, n_mems + i, sizeof *ints, &ints[i]);
    size_t group[2] = {size[1] ? group_size(size[0]) : 1, 1};
    if (code == CL_SUCCESS)
        code =
            clEnqueueNDRangeKernel(f->queue, k, size[1] ? 2 : 1, NULL, size, group, 0, NULL, NULL);
    f->is_failed = f->is_failed || code != CL_SUCCESS;
}

static void run_layer(struct sv_forward_cl *f, uint32_t i, cl_mem in, cl_mem out, uint32_t rows)
{
    const struct sv_layer *l = &f->net->layers[i];
    int relu = l->act == SV_ACT_RELU, c = (int)l->in.c, h = (int)l->in.h, w = (int)l->in.w;
    int k = (int)l->kernel, m = (int)l->out.c;
    size_t size[2] = {sv_volume_size(l->out), rows};
    const cl_mem weighted[] = {in, f->weights[i], f->biases[i], out}, plain[] = {in, out};
    switch (l->kind) {
    case SV_LAYER_DENSE:
        launch(f, DENSE, weighted, 4, (int[]){(int)sv_volume_size(l->in), m, relu}, 3, size);
        break;
    case SV_LAYER_CONV: launch(f, CONV, weighted, 4, (int[]){c, h, w, k, m, relu}, 6, size); break;
    case SV_LAYER_MAXPOOL: launch(f, MAXPOOL, plain, 2, (int[]){c, h, w, k}, 4, size); break;
    case SV_LAYER_AVGPOOL: launch(f, AVGPOOL, plain, 2, (int[]){c, h, w}, 3, size); break;
    }
    if (l->act == SV_ACT_SOFTMAX)
        launch(f, SOFTMAX, &out, 1, (int[]){(int)sv_volume_size(l->out)}, 1, (size_t[]){rows, 0});
}

bool sv_forward_cl_run(struct sv_forward_cl *f, void *in, void *out, uint32_t rows)
{
    cl_mem from = in;
    for (uint32_t i = 0; i < f->net->n && !f->is_failed; i++) {
        cl_mem to = i + 1 == f->net->n ? out : f->halves[i % 2];
        run_layer(f, i, from, to, rows);
        from = to;
    }
    return clFinish(f->queue) == CL_SUCCESS && !f->is_failed;
}
