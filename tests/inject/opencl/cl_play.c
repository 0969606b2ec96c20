/* cl_play MODE [N [BATCH]]: an ordinary OpenCL program that knows nothing of Stave, in several
 * modes. It checks its own results and what OpenCL returns, so that it must end the same way with
 * and without the layer. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cl_play.h"

static const char *text =
    "__kernel void vector_add(__global const float *a, __global const float *b, __global float *c)"
    "{ size_t i = get_global_id(0); c[i] = a[i] + b[i]; }"
    "__kernel void spin(__global float *c, int n, __local float *scratch)"
    "{ float x = c[get_global_id(0)]; for (int i = 0; i < n; i++) x = x * 1.0000001f + 1e-9f;"
    "  scratch[get_local_id(0)] = x; c[get_global_id(0)] = scratch[get_local_id(0)]; }";

void play_open(struct play *p, cl_command_queue_properties properties)
{
    cl_int e;
    OK(clGetPlatformIDs(1, &p->platform, NULL));
    OK(clGetDeviceIDs(p->platform, CL_DEVICE_TYPE_ALL, 1, &p->device, NULL));
    p->context = clCreateContext(NULL, 1, &p->device, NULL, NULL, &e);
    OK(e);
    p->queue = clCreateCommandQueue(p->context, p->device, properties, &e);
    OK(e);
    p->program = clCreateProgramWithSource(p->context, 1, &text, NULL, &e);
    OK(e);
    OK(clBuildProgram(p->program, 0, NULL, "-cl-fast-relaxed-math", NULL, NULL));
    p->add = clCreateKernel(p->program, "vector_add", &e);
    OK(e);
    p->spin = clCreateKernel(p->program, "spin", &e);
    OK(e);
    cl_mem *all[] = {&p->a, &p->b, &p->c};
    for (cl_uint i = 0; i < 3; i++) {
        *all[i] = clCreateBuffer(p->context, CL_MEM_READ_WRITE, PLAY_BYTES, NULL, &e);
        OK(e);
        OK(clSetKernelArg(p->add, i, sizeof(cl_mem), all[i]));
    }
    cl_int turns = 5000;
    OK(clSetKernelArg(p->spin, 0, sizeof(cl_mem), &p->c));
    OK(clSetKernelArg(p->spin, 1, sizeof turns, &turns));
    OK(clSetKernelArg(p->spin, 2, 64 * sizeof(float), NULL));
}

void play_close(struct play *p)
{
    OK(clReleaseMemObject(p->a));
    OK(clReleaseMemObject(p->b));
    OK(clReleaseMemObject(p->c));
    OK(clReleaseKernel(p->add));
    OK(clReleaseKernel(p->spin));
    OK(clReleaseProgram(p->program));
    OK(clReleaseCommandQueue(p->queue));
    OK(clReleaseContext(p->context));
}

void play_add(const struct play *p, cl_command_queue q, cl_uint n_waits, const cl_event *waits,
              cl_event *event)
{
    size_t global = PLAY_N, local = 64;
    OK(clEnqueueNDRangeKernel(q, p->add, 1, NULL, &global, &local, n_waits, waits, event));
}

static void play_spin(const struct play *p, cl_command_queue q, cl_event *event)
{
    size_t global = 256, local = 64;
    OK(clEnqueueNDRangeKernel(q, p->spin, 1, NULL, &global, &local, 0, NULL, event));
}

/* Write, add, read; the event of the last only. */
static int vector(void)
{
    struct play p = {0};
    static float a[PLAY_N], b[PLAY_N], c[PLAY_N];
    play_open(&p, 0);
    for (int i = 0; i < PLAY_N; i++) {
        a[i] = (float)i;
        b[i] = (float)(2 * i);
    }
    OK(clEnqueueWriteBuffer(p.queue, p.a, CL_FALSE, 0, PLAY_BYTES, a, 0, NULL, NULL));
    OK(clEnqueueWriteBuffer(p.queue, p.b, CL_FALSE, 0, PLAY_BYTES, b, 0, NULL, NULL));
    play_add(&p, p.queue, 0, NULL, NULL);
    cl_event read;
    OK(clEnqueueReadBuffer(p.queue, p.c, CL_TRUE, 0, PLAY_BYTES, c, 0, NULL, &read));
    for (int i = 0; i < PLAY_N; i++)
        CHECK(c[i] == (float)(3 * i));
    OK(clReleaseEvent(read));
    play_close(&p);
    return 0;
}

/* Copies, fills, maps, markers and barriers. */
static int copies(void)
{
    struct play p = {0};
    cl_int e;
    float one = 1;
    play_open(&p, 0);
    OK(clEnqueueFillBuffer(p.queue, p.a, &one, sizeof one, 0, PLAY_BYTES, 0, NULL, NULL));
    OK(clEnqueueCopyBuffer(p.queue, p.a, p.b, 0, 0, PLAY_BYTES / 2, 0, NULL, NULL));
    OK(clEnqueueMarkerWithWaitList(p.queue, 0, NULL, NULL));
    OK(clEnqueueBarrierWithWaitList(p.queue, 0, NULL, NULL));
    OK(clEnqueueMigrateMemObjects(p.queue, 1, &p.a, 0, 0, NULL, NULL));
    float *m = clEnqueueMapBuffer(p.queue, p.b, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, PLAY_BYTES,
                                  0, NULL, NULL, &e);
    OK(e);
    CHECK(m[0] == 1 && m[PLAY_N / 2 - 1] == 1);
    OK(clEnqueueUnmapMemObject(p.queue, p.b, m, 0, NULL, NULL));
    OK(clFlush(p.queue));
    OK(clFinish(p.queue));
    cl_buffer_region region = {0, 1024};
    cl_mem part =
        clCreateSubBuffer(p.a, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region, &e);
    OK(e);
    OK(clReleaseMemObject(part));
    play_close(&p);
    return 0;
}

/* A queue out of order: the second kernel waits for the first, two others do not. */
static int unordered(void)
{
    struct play p = {0};
    cl_event first, second;
    play_open(&p, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    play_spin(&p, p.queue, &first);
    play_add(&p, p.queue, 1, &first, &second);
    for (int i = 0; i < 20; i++)
        play_add(&p, p.queue, 0, NULL, NULL);
    OK(clEnqueueBarrierWithWaitList(p.queue, 1, &second, NULL));
    OK(clWaitForEvents(1, &second));
    OK(clReleaseEvent(first));
    OK(clReleaseEvent(second));
    OK(clFinish(p.queue));
    play_close(&p);
    return 0;
}

static atomic_int called;
static struct play *called_with;

/* Calls OpenCL from where the driver calls it. */
static void CL_CALLBACK on_complete(cl_event event, cl_int status, void *user)
{
    cl_uint refs = 0;
    (void)user;
    CHECK(status == CL_COMPLETE);
    OK(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof refs, &refs, NULL));
    OK(clFlush(called_with->queue));
    OK(clReleaseEvent(event));
    atomic_fetch_add(&called, 1);
}

static void CL_CALLBACK on_destroyed(cl_mem m, void *user)
{
    (void)m;
    (void)user;
    OK(clFlush(called_with->queue));
    atomic_fetch_add(&called, 100);
}

static int callbacks(void)
{
    struct play p = {0};
    cl_int e;
    play_open(&p, 0);
    called_with = &p;
    for (int i = 0; i < 50; i++) {
        cl_event event;
        play_add(&p, p.queue, 0, NULL, &event);
        OK(clSetEventCallback(event, CL_COMPLETE, on_complete, NULL));
    }
    cl_mem m = clCreateBuffer(p.context, CL_MEM_READ_WRITE, 4096, NULL, &e);
    OK(e);
    OK(clSetMemObjectDestructorCallback(m, on_destroyed, NULL));
    OK(clEnqueueFillBuffer(p.queue, m, "x", 1, 0, 4096, 0, NULL, NULL));
    OK(clReleaseMemObject(m));
    OK(clFinish(p.queue));
    for (int i = 0; i < 20000 && atomic_load(&called) < 150; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK(atomic_load(&called) == 150);
    play_close(&p);
    return 0;
}

static int n_each = 250;

static void *enqueue_many(void *arg)
{
    struct play p = *(struct play *)arg;
    cl_int e;
    p.add = clCreateKernel(p.program, "vector_add", &e); /* setting arguments is per thread */
    OK(e);
    OK(clSetKernelArg(p.add, 0, sizeof(cl_mem), &p.a));
    OK(clSetKernelArg(p.add, 1, sizeof(cl_mem), &p.b));
    OK(clSetKernelArg(p.add, 2, sizeof(cl_mem), &p.c));
    for (int i = 0; i < n_each; i++)
        play_add(&p, p.queue, 0, NULL, NULL);
    OK(clFinish(p.queue));
    OK(clReleaseKernel(p.add));
    return NULL;
}

static int threads(void)
{
    struct play p = {0};
    pthread_t ids[4];
    play_open(&p, 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&ids[i], NULL, enqueue_many, &p) == 0);
    for (int i = 0; i < 4; i++)
        pthread_join(ids[i], NULL);
    play_close(&p);
    return 0;
}

/* Work that waits for the host, more of it than a list looks ahead. */
static int user_event(void)
{
    struct play p = {0};
    cl_int e, status;
    play_open(&p, 0);
    cl_event gate = clCreateUserEvent(p.context, &e), last;
    OK(e);
    play_add(&p, p.queue, 1, &gate, NULL);
    for (int i = 0; i < 200; i++)
        play_add(&p, p.queue, 0, NULL, NULL);
    play_add(&p, p.queue, 0, NULL, &last);
    OK(clFlush(p.queue));
    OK(clGetEventInfo(last, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    CHECK(status > CL_COMPLETE);
    OK(clSetUserEventStatus(gate, CL_COMPLETE));
    OK(clWaitForEvents(1, &last));
    OK(clReleaseEvent(last));
    OK(clReleaseEvent(gate));
    play_close(&p);
    return 0;
}

/* Releases nothing of three buffers, and the rest. */
static int leak(void)
{
    struct play p = {0};
    cl_int e;
    play_open(&p, 0);
    for (int i = 0; i < 3; i++) {
        CHECK(clCreateBuffer(p.context, CL_MEM_READ_WRITE, 1 << 20, NULL, &e) != NULL);
        OK(e);
    }
    play_close(&p);
    return 0;
}

/* Ends in the middle of its work without a single release. */
static int leave(void)
{
    struct play p = {0};
    play_open(&p, 0);
    for (int i = 0; i < 100; i++)
        play_spin(&p, p.queue, NULL);
    OK(clFlush(p.queue));
    exit(0);
}

/* Ends while work waits for a gate that nobody opens. */
static int stuck(void)
{
    struct play p = {0};
    cl_int e;
    play_open(&p, 0);
    cl_event gate = clCreateUserEvent(p.context, &e);
    OK(e);
    play_add(&p, p.queue, 0, NULL, NULL);
    OK(clFinish(p.queue));
    play_add(&p, p.queue, 1, &gate, NULL);
    exit(0);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* As many empty kernels as asked, `batch` at a time. For each of them, to stdout: ns of the
 * enqueueing calls by the clock on the wall and by the thread's own, and of the whole. */
static int many(int n, int batch)
{
    struct play p = {0};
    size_t one = 1;
    cl_int turns = 0;
    double wall = 0, cpu = 0;
    play_open(&p, 0);
    OK(clSetKernelArg(p.spin, 1, sizeof turns, &turns));
    double begin = seconds(CLOCK_MONOTONIC);
    for (int done = 0; done < n; done += batch) {
        double w = seconds(CLOCK_MONOTONIC), c = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < batch && done + i < n; i++)
            OK(clEnqueueNDRangeKernel(p.queue, p.spin, 1, NULL, &one, &one, 0, NULL, NULL));
        wall += seconds(CLOCK_MONOTONIC) - w;
        cpu += seconds(CLOCK_THREAD_CPUTIME_ID) - c;
        OK(clFinish(p.queue));
    }
    printf("wall %.0f cpu %.0f all %.0f\n", wall * 1e9 / n, cpu * 1e9 / n,
           (seconds(CLOCK_MONOTONIC) - begin) * 1e9 / n);
    play_close(&p);
    return 0;
}

static const struct {
    const char *name;
    int (*run)(void);
} modes[] = {{"vector", vector},
             {"copies", copies},
             {"unordered", unordered},
             {"callbacks", callbacks},
             {"threads", threads},
             {"user", user_event},
             {"leak", leak},
             {"leave", leave},
             {"stuck", stuck},
             {"images", play_images},
             {"svm", play_svm},
             {"rect", play_rect},
             {"sub", play_sub_devices},
             {"build", play_fail_build},
             {"view", play_view}};

static int number(int argc, char **argv, int i, int otherwise)
{
    return argc > i ? (int)strtol(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "many") == 0)
        return many(number(argc, argv, 2, 1000), number(argc, argv, 3, 1 << 30));
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i].name) == 0)
            return modes[i].run();
    fprintf(stderr, "cl_play: no mode %s\n", mode);
    return 2;
}
