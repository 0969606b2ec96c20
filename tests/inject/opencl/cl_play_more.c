/* More modes of cl_play: images, shared virtual memory, rectangles, sub-devices, builds, and what
 * the program sees of its own objects. */
#include <string.h>

#include "cl_play.h"

int play_images(void)
{
    struct play p = {0};
    cl_int e;
    cl_bool has = CL_FALSE;
    play_open(&p, 0);
    OK(clGetDeviceInfo(p.device, CL_DEVICE_IMAGE_SUPPORT, sizeof has, &has, NULL));
    if (!has) {
        puts("no images");
        return 77;
    }
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {
        .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 32, .image_height = 16};
    cl_mem from = clCreateImage(p.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &e);
    OK(e);
    cl_mem to = clCreateImage(p.context, CL_MEM_READ_WRITE, &format, &desc, NULL, &e);
    OK(e);
    static unsigned char in[32 * 16 * 4], out[32 * 16 * 4];
    memset(in, 7, sizeof in);
    size_t at[3] = {0}, region[3] = {32, 16, 1}, row;
    OK(clEnqueueWriteImage(p.queue, from, CL_TRUE, at, region, 0, 0, in, 0, NULL, NULL));
    OK(clEnqueueCopyImage(p.queue, from, to, at, at, region, 0, NULL, NULL));
    OK(clEnqueueReadImage(p.queue, to, CL_TRUE, at, region, 0, 0, out, 0, NULL, NULL));
    CHECK(memcmp(in, out, sizeof in) == 0);
    OK(clEnqueueCopyImageToBuffer(p.queue, from, p.a, at, region, 0, 0, NULL, NULL));
    OK(clEnqueueCopyBufferToImage(p.queue, p.a, to, 0, at, region, 0, NULL, NULL));
    cl_uint colour[4] = {1, 2, 3, 4};
    OK(clEnqueueFillImage(p.queue, to, colour, at, region, 0, NULL, NULL));
    unsigned char *m = clEnqueueMapImage(p.queue, to, CL_TRUE, CL_MAP_READ, at, region, &row, NULL,
                                         0, NULL, NULL, &e);
    OK(e);
    CHECK(m[0] == 1 && m[3] == 4);
    OK(clEnqueueUnmapMemObject(p.queue, to, m, 0, NULL, NULL));
    OK(clFinish(p.queue));
    OK(clReleaseMemObject(from));
    OK(clReleaseMemObject(to));
    play_close(&p);
    return 0;
}

int play_svm(void)
{
    struct play p = {0};
    cl_device_svm_capabilities can = 0;
    play_open(&p, 0);
    clGetDeviceInfo(p.device, CL_DEVICE_SVM_CAPABILITIES, sizeof can, &can, NULL);
    if (!(can & CL_DEVICE_SVM_COARSE_GRAIN_BUFFER)) {
        puts("no shared virtual memory");
        return 77;
    }
    float *a = clSVMAlloc(p.context, CL_MEM_READ_WRITE, PLAY_BYTES, 0), one = 1, host[16];
    float *b = clSVMAlloc(p.context, CL_MEM_READ_WRITE, PLAY_BYTES, 0);
    CHECK(a && b);
    OK(clEnqueueSVMMemFill(p.queue, a, &one, sizeof one, PLAY_BYTES, 0, NULL, NULL));
    OK(clEnqueueSVMMemcpy(p.queue, CL_TRUE, b, a, PLAY_BYTES, 0, NULL, NULL));
    OK(clEnqueueSVMMemcpy(p.queue, CL_TRUE, host, b, sizeof host, 0, NULL, NULL));
    CHECK(host[15] == 1);
    OK(clSetKernelArgSVMPointer(p.add, 0, a));
    OK(clSetKernelArgSVMPointer(p.add, 1, b));
    play_add(&p, p.queue, 0, NULL, NULL);
    OK(clEnqueueSVMMap(p.queue, CL_TRUE, CL_MAP_READ, b, PLAY_BYTES, 0, NULL, NULL));
    OK(clEnqueueSVMUnmap(p.queue, b, 0, NULL, NULL));
    void *freed = b;
    OK(clEnqueueSVMFree(p.queue, 1, &freed, NULL, NULL, 0, NULL, NULL));
    OK(clFinish(p.queue));
    clSVMFree(p.context, a);
    play_close(&p);
    return 0;
}

int play_rect(void)
{
    struct play p = {0};
    static float host[64 * 64];
    size_t at[3] = {0}, region[3] = {64 * sizeof(float), 32, 1};
    play_open(&p, 0);
    size_t row = 64 * sizeof(float);
    OK(clEnqueueWriteBufferRect(p.queue, p.a, CL_TRUE, at, at, region, row, 0, row, 0, host, 0,
                                NULL, NULL));
    OK(clEnqueueCopyBufferRect(p.queue, p.a, p.b, at, at, region, row, 0, row, 0, 0, NULL, NULL));
    OK(clEnqueueReadBufferRect(p.queue, p.b, CL_TRUE, at, at, region, row, 0, row, 0, host, 0, NULL,
                               NULL));
    play_close(&p);
    return 0;
}

int play_sub_devices(void)
{
    struct play p = {0};
    cl_int e;
    cl_device_id parts[2];
    cl_uint n = 0;
    play_open(&p, 0);
    const cl_device_partition_property by[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
    if (clCreateSubDevices(p.device, by, 2, parts, &n) != CL_SUCCESS || n < 2) {
        puts("the device cannot be divided into two");
        return 77;
    }
    cl_context context = clCreateContext(NULL, 2, parts, NULL, NULL, &e);
    OK(e);
    cl_mem m = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &e);
    OK(e);
    for (int i = 0; i < 2; i++) {
        cl_command_queue q = clCreateCommandQueue(context, parts[i], 0, &e);
        OK(e);
        OK(clEnqueueFillBuffer(q, m, "x", 1, 0, 4096, 0, NULL, NULL));
        OK(clFinish(q));
        OK(clReleaseCommandQueue(q));
    }
    OK(clReleaseMemObject(m));
    OK(clReleaseContext(context));
    OK(clReleaseDevice(parts[0]));
    OK(clReleaseDevice(parts[1]));
    play_close(&p);
    return 0;
}

static int notified;
static void CL_CALLBACK on_built(cl_program program, void *user)
{
    (void)program;
    notified += *(int *)user;
}

/* A build that fails, and one that notifies. */
int play_fail_build(void)
{
    struct play p = {0};
    cl_int e;
    int weight = 5;
    play_open(&p, 0);
    const char *wrong = "__kernel void broken(__global float *a) { a[0] = no_such_thing; }";
    cl_program bad = clCreateProgramWithSource(p.context, 1, &wrong, NULL, &e);
    OK(e);
    CHECK(clBuildProgram(bad, 0, NULL, NULL, NULL, NULL) == CL_BUILD_PROGRAM_FAILURE);
    OK(clReleaseProgram(bad));
    const char *right = "__kernel void fine(__global float *a) { a[0] = 1; }";
    cl_program good = clCreateProgramWithSource(p.context, 1, &right, NULL, &e);
    OK(e);
    OK(clBuildProgram(good, 0, NULL, NULL, on_built, &weight));
    cl_build_status status = CL_BUILD_IN_PROGRESS;
    while (status == CL_BUILD_IN_PROGRESS)
        OK(clGetProgramBuildInfo(good, p.device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status,
                                 NULL));
    CHECK(status == CL_BUILD_SUCCESS && notified == weight);
    cl_kernel kernel;
    cl_uint n = 0;
    OK(clCreateKernelsInProgram(good, 1, &kernel, &n));
    CHECK(n == 1);
    OK(clSetKernelArg(kernel, 0, sizeof(cl_mem), &p.a));
    OK(clEnqueueTask(p.queue, kernel, 0, NULL, NULL));
    /* Calls that fail. */
    CHECK(clEnqueueReadBuffer(p.queue, p.a, CL_TRUE, PLAY_BYTES, PLAY_BYTES, &n, 0, NULL, NULL) ==
          CL_INVALID_VALUE);
    CHECK(clFinish(NULL) == CL_INVALID_COMMAND_QUEUE);
    CHECK(clCreateBuffer(p.context, 0, 0, NULL, &e) == NULL && e == CL_INVALID_BUFFER_SIZE);
    OK(clFinish(p.queue));
    OK(clReleaseKernel(kernel));
    OK(clReleaseProgram(good));
    play_close(&p);
    return 0;
}

static void see_queue(const struct play *p, cl_command_queue q, cl_command_queue_properties wanted)
{
    cl_command_queue_properties seen = 99;
    cl_event event;
    cl_ulong t = 0;
    cl_uint refs = 0;
    OK(clGetCommandQueueInfo(q, CL_QUEUE_PROPERTIES, sizeof seen, &seen, NULL));
    CHECK(seen == wanted);
    play_add(p, q, 0, NULL, &event);
    OK(clFinish(q));
    OK(clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof refs, &refs, NULL));
    CHECK(refs >= 1); /* the driver may hold one too */
    cl_int e = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof t, &t, NULL);
    if (wanted & CL_QUEUE_PROFILING_ENABLE)
        CHECK(e == CL_SUCCESS && t > 0);
    else
        CHECK(e == CL_PROFILING_INFO_NOT_AVAILABLE);
    OK(clReleaseEvent(event));
}

/* The program's own view: with profiling that it asked for, without, and the list that it gave. */
int play_view(void)
{
    struct play p = {0};
    cl_int e;
    size_t size = 99;
    play_open(&p, 0);
    see_queue(&p, p.queue, 0);
    cl_command_queue own = clCreateCommandQueue(p.context, p.device, CL_QUEUE_PROFILING_ENABLE, &e);
    OK(e);
    see_queue(&p, own, CL_QUEUE_PROFILING_ENABLE);
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                        0};
    cl_command_queue by_list = clCreateCommandQueueWithProperties(p.context, p.device, list, &e);
    OK(e);
    see_queue(&p, by_list, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    cl_queue_properties got[3] = {9, 9, 9};
    OK(clGetCommandQueueInfo(by_list, CL_QUEUE_PROPERTIES_ARRAY, sizeof got, got, &size));
    CHECK(size == sizeof list && memcmp(got, list, sizeof list) == 0);
    cl_command_queue bare = clCreateCommandQueueWithProperties(p.context, p.device, NULL, &e);
    OK(e);
    see_queue(&p, bare, 0);
    OK(clGetCommandQueueInfo(bare, CL_QUEUE_PROPERTIES_ARRAY, 0, NULL, &size));
    CHECK(size == 0);
    OK(clRetainCommandQueue(own));
    OK(clReleaseCommandQueue(own));
    play_add(&p, own, 0, NULL, NULL);
    OK(clReleaseCommandQueue(own));
    OK(clReleaseCommandQueue(by_list));
    OK(clReleaseCommandQueue(bare));
    cl_command_queue again = clCreateCommandQueue(p.context, p.device, 0, &e);
    OK(e);
    see_queue(&p, again, 0);
    OK(clReleaseCommandQueue(again));
    play_close(&p);
    return 0;
}
