/* The networks computed with BLAS, on the calling thread.
 *
 * Called by a CPU worker for a batch. dense is one matrix product for all rows; conv unfolds each
 * row (im2col) and is a product, too. Takes no memory: the worker brings the scratch. */
#include "server/run/engine.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

/* Two halves that layers take turns in, and the unfolded row. */
size_t sv_forward_scratch(const struct sv_network *net, uint32_t rows)
{
    return 2 * net->widest * rows + net->columns;
}

static void softmax(float *row, size_t n)
{
    float top = row[0], sum = 0;
    for (size_t i = 1; i < n; i++)
        top = row[i] > top ? row[i] : top;
    for (size_t i = 0; i < n; i++)
        sum += row[i] = expf(row[i] - top);
    for (size_t i = 0; i < n; i++)
        row[i] /= sum;
}

static void activate(const struct sv_layer *l, float *out, uint32_t rows)
{
    size_t n = sv_volume_size(l->out);
    if (l->act == SV_ACT_RELU)
        for (size_t i = 0; i < n * rows; i++)
            out[i] = out[i] > 0 ? out[i] : 0;
    if (l->act == SV_ACT_SOFTMAX)
        for (uint32_t r = 0; r < rows; r++)
            softmax(out + r * n, n);
}

static void dense(const struct sv_layer *l, const float *in, float *out, uint32_t rows)
{
    int k = (int)sv_volume_size(l->in), n = (int)l->out.c;
    for (uint32_t r = 0; r < rows; r++)
        memcpy(out + (size_t)r * l->out.c, l->bias, l->out.c * sizeof *out);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, n, k, 1, in, k, l->weight, k, 1,
                out, n);
}

/* Each position's neighbourhood as a column: [c·k·k][h·w], zeros outside. */
static void unfold(const struct sv_layer *l, const float *in, float *columns)
{
    int h = (int)l->in.h, w = (int)l->in.w, k = (int)l->kernel, pad = k / 2;
    for (int c = 0; c < (int)l->in.c; c++)
        for (int ky = 0; ky < k; ky++)
            for (int kx = 0; kx < k; kx++)
                for (int y = 0; y < h; y++)
                    for (int x = 0; x < w; x++) {
                        int sy = y + ky - pad, sx = x + kx - pad;
                        bool inside = sy >= 0 && sy < h && sx >= 0 && sx < w;
                        *columns++ = inside ? in[(c * h + sy) * w + sx] : 0;
                    }
}

static void conv(const struct sv_layer *l, const float *in, float *out, uint32_t rows,
                 float *columns)
{
    int n = (int)(l->in.h * l->in.w), k = (int)(l->in.c * l->kernel * l->kernel), m = (int)l->out.c;
    for (uint32_t r = 0; r < rows; r++) {
        float *row = out + (size_t)r * sv_volume_size(l->out);
        unfold(l, in + (size_t)r * sv_volume_size(l->in), columns);
        for (int c = 0; c < m; c++)
            for (int i = 0; i < n; i++)
                row[c * n + i] = l->bias[c];
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, l->weight, k, columns, n,
                    1, row, n);
    }
}

static float window_max(const struct sv_layer *l, const float *plane, uint32_t y, uint32_t x)
{
    uint32_t k = l->kernel;
    float top = plane[(y * k) * l->in.w + x * k];
    for (uint32_t i = 0; i < k * k; i++) {
        float v = plane[(y * k + i / k) * l->in.w + x * k + i % k];
        top = v > top ? v : top;
    }
    return top;
}

static void maxpool(const struct sv_layer *l, const float *in, float *out, uint32_t rows)
{
    for (size_t p = 0; p < (size_t)rows * l->in.c; p++) {
        const float *plane = in + p * l->in.h * l->in.w;
        for (uint32_t y = 0; y < l->out.h; y++)
            for (uint32_t x = 0; x < l->out.w; x++)
                *out++ = window_max(l, plane, y, x);
    }
}

static void avgpool(const struct sv_layer *l, const float *in, float *out, uint32_t rows)
{
    size_t n = (size_t)l->in.h * l->in.w;
    for (size_t p = 0; p < (size_t)rows * l->in.c; p++) {
        float sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += in[p * n + i];
        out[p] = sum / (float)n;
    }
}

void sv_forward(const struct sv_network *net, const float *in, float *out, uint32_t rows,
                float *scratch, struct sv_layer_times *times)
{
    float *halves[2] = {scratch, scratch + net->widest * rows};
    float *columns = scratch + 2 * net->widest * rows;
    for (uint32_t i = 0; i < net->n; i++) {
        const struct sv_layer *l = &net->layers[i];
        float *to = i + 1 == net->n ? out : halves[i % 2];
        switch (l->kind) {
        case SV_LAYER_DENSE: dense(l, in, to, rows); break;
        case SV_LAYER_CONV: conv(l, in, to, rows, columns); break;
        case SV_LAYER_MAXPOOL: maxpool(l, in, to, rows); break;
        case SV_LAYER_AVGPOOL: avgpool(l, in, to, rows); break;
        }
        activate(l, to, rows);
        if (times)
            times->ends_ns[times->n++] = stave_now_ns();
        in = to;
    }
}
