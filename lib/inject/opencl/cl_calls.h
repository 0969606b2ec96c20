/* The one table of the calls that the layer looks at; all others go to the driver untouched.
 *
 *   CL_PLAIN    a slice of the calling thread and nothing else: X(name, parameters, arguments)
 *   CL_ENQUEUE  commands that return a status and end in (…, n_waits, waits, event): X(name,
 *               parameters, arguments, description),
 *               where the description fills `w`, the command's struct cl_work
 *   CL_SPECIAL  written by hand: X(name)
 */
#pragma once

#include "pending.h"

/* clang-format off */
#define CL_WAITS cl_uint n_waits, const cl_event *waits, cl_event *event
#define CL_WAITS_GIVEN n_waits, waits, event

#define CL_PLAIN(X) \
    X(clCreateSubDevices, (cl_device_id device, const cl_device_partition_property *p, cl_uint n, cl_device_id *out, cl_uint *n_out), (device, p, n, out, n_out)) \
    X(clEnqueueWaitForEvents, (cl_command_queue queue, cl_uint n, const cl_event *events), (queue, n, events)) \
    X(clEnqueueBarrier, (cl_command_queue queue), (queue)) \
    X(clUnloadPlatformCompiler, (cl_platform_id platform), (platform)) \
    X(clCreateKernelsInProgram, (cl_program program, cl_uint n, cl_kernel *kernels, cl_uint *n_out), (program, n, kernels, n_out)) \
    X(clSetKernelExecInfo, (cl_kernel kernel, cl_kernel_exec_info name, size_t size, const void *value), (kernel, name, size, value))

#define CL_ENQUEUE(X) \
    X(clEnqueueReadBuffer, (cl_command_queue queue, cl_mem m, cl_bool blocking, size_t offset, size_t size, void *p, CL_WAITS), \
      (queue, m, blocking, offset, size, p, CL_WAITS_GIVEN), w.is_blocking = blocking; cl_is_copy(&w, STAVE_GPU_D2H, size)) \
    X(clEnqueueWriteBuffer, (cl_command_queue queue, cl_mem m, cl_bool blocking, size_t offset, size_t size, const void *p, CL_WAITS), \
      (queue, m, blocking, offset, size, p, CL_WAITS_GIVEN), w.is_blocking = blocking; cl_is_copy(&w, STAVE_GPU_H2D, size)) \
    X(clEnqueueCopyBuffer, (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_at, size_t to_at, size_t size, CL_WAITS), \
      (queue, from, to, from_at, to_at, size, CL_WAITS_GIVEN), cl_is_copy(&w, STAVE_GPU_D2D, size)) \
    X(clEnqueueReadBufferRect, (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *at, const size_t *host_at, const size_t *region, \
       size_t row, size_t slice, size_t host_row, size_t host_slice, void *p, CL_WAITS), \
      (queue, m, blocking, at, host_at, region, row, slice, host_row, host_slice, p, CL_WAITS_GIVEN), w.is_blocking = blocking; cl_is_copy(&w, STAVE_GPU_D2H, cl_region(region, 1))) \
    X(clEnqueueWriteBufferRect, (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *at, const size_t *host_at, const size_t *region, \
       size_t row, size_t slice, size_t host_row, size_t host_slice, const void *p, CL_WAITS), \
      (queue, m, blocking, at, host_at, region, row, slice, host_row, host_slice, p, CL_WAITS_GIVEN), w.is_blocking = blocking; cl_is_copy(&w, STAVE_GPU_H2D, cl_region(region, 1))) \
    X(clEnqueueCopyBufferRect, (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_at, const size_t *to_at, const size_t *region, \
       size_t from_row, size_t from_slice, size_t to_row, size_t to_slice, CL_WAITS), \
      (queue, from, to, from_at, to_at, region, from_row, from_slice, to_row, to_slice, CL_WAITS_GIVEN), cl_is_copy(&w, STAVE_GPU_D2D, cl_region(region, 1))) \
    X(clEnqueueReadImage, (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *at, const size_t *region, size_t row, size_t slice, void *p, CL_WAITS), \
      (queue, m, blocking, at, region, row, slice, p, CL_WAITS_GIVEN), w.is_blocking = blocking; cl_is_copy(&w, STAVE_GPU_D2H, cl_region(region, cl_pixel(m)))) \
    X(clEnqueueWriteImage, (cl_command_queue queue, cl_mem m, cl_bool blocking, const size_t *at, const size_t *region, size_t row, size_t slice, const void *p, CL_WAITS), \
      (queue, m, blocking, at, region, row, slice, p, CL_WAITS_GIVEN), w.is_blocking = blocking; cl_is_copy(&w, STAVE_GPU_H2D, cl_region(region, cl_pixel(m)))) \
    X(clEnqueueCopyImage, (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_at, const size_t *to_at, const size_t *region, CL_WAITS), \
      (queue, from, to, from_at, to_at, region, CL_WAITS_GIVEN), cl_is_copy(&w, STAVE_GPU_D2D, cl_region(region, cl_pixel(from)))) \
    X(clEnqueueCopyImageToBuffer, (cl_command_queue queue, cl_mem from, cl_mem to, const size_t *from_at, const size_t *region, size_t to_at, CL_WAITS), \
      (queue, from, to, from_at, region, to_at, CL_WAITS_GIVEN), cl_is_copy(&w, STAVE_GPU_D2D, cl_region(region, cl_pixel(from)))) \
    X(clEnqueueCopyBufferToImage, (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_at, const size_t *to_at, const size_t *region, CL_WAITS), \
      (queue, from, to, from_at, to_at, region, CL_WAITS_GIVEN), cl_is_copy(&w, STAVE_GPU_D2D, cl_region(region, cl_pixel(to)))) \
    X(clEnqueueFillBuffer, (cl_command_queue queue, cl_mem m, const void *pattern, size_t pattern_size, size_t offset, size_t size, CL_WAITS), \
      (queue, m, pattern, pattern_size, offset, size, CL_WAITS_GIVEN), cl_is_fill(&w, size)) \
    X(clEnqueueFillImage, (cl_command_queue queue, cl_mem m, const void *colour, const size_t *at, const size_t *region, CL_WAITS), \
      (queue, m, colour, at, region, CL_WAITS_GIVEN), cl_is_fill(&w, cl_region(region, cl_pixel(m)))) \
    X(clEnqueueUnmapMemObject, (cl_command_queue queue, cl_mem m, void *p, CL_WAITS), \
      (queue, m, p, CL_WAITS_GIVEN), cl_is_map(&w, "Unmap", STAVE_GPU_H2D, cl_size_of(m))) \
    X(clEnqueueNDRangeKernel, (cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset, const size_t *global, const size_t *local, CL_WAITS), \
      (queue, kernel, dims, offset, global, local, CL_WAITS_GIVEN), cl_is_kernel(&w, kernel, dims, global, local)) \
    X(clEnqueueTask, (cl_command_queue queue, cl_kernel kernel, CL_WAITS), \
      (queue, kernel, CL_WAITS_GIVEN), cl_is_kernel(&w, kernel, 0, NULL, NULL)) \
    X(clEnqueueNativeKernel, (cl_command_queue queue, void (CL_CALLBACK *f)(void *), void *args, size_t size, cl_uint n, const cl_mem *m, const void **at, CL_WAITS), \
      (queue, f, args, size, n, m, at, CL_WAITS_GIVEN), cl_is_native(&w)) \
    X(clEnqueueMigrateMemObjects, (cl_command_queue queue, cl_uint n, const cl_mem *m, cl_mem_migration_flags flags, CL_WAITS), \
      (queue, n, m, flags, CL_WAITS_GIVEN), cl_is_map(&w, "Migrate", flags & CL_MIGRATE_MEM_OBJECT_HOST ? STAVE_GPU_D2H : STAVE_GPU_H2D, cl_size_of_all(n, m))) \
    X(clEnqueueMarkerWithWaitList, (cl_command_queue queue, CL_WAITS), (queue, CL_WAITS_GIVEN), cl_is_mark(&w, "Marker")) \
    X(clEnqueueBarrierWithWaitList, (cl_command_queue queue, CL_WAITS), (queue, CL_WAITS_GIVEN), cl_is_wait(&w, "Barrier", n_waits)) \
    X(clEnqueueSVMMemcpy, (cl_command_queue queue, cl_bool blocking, void *to, const void *from, size_t size, CL_WAITS), \
      (queue, blocking, to, from, size, CL_WAITS_GIVEN), w.is_blocking = blocking; cl_is_copy(&w, cl_svm_direction(to, from), size)) \
    X(clEnqueueSVMMemFill, (cl_command_queue queue, void *p, const void *pattern, size_t pattern_size, size_t size, CL_WAITS), \
      (queue, p, pattern, pattern_size, size, CL_WAITS_GIVEN), cl_is_fill(&w, size)) \
    X(clEnqueueSVMMap, (cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void *p, size_t size, CL_WAITS), \
      (queue, blocking, flags, p, size, CL_WAITS_GIVEN), w.is_blocking = blocking; cl_is_map(&w, "Map SVM", STAVE_GPU_D2H, size)) \
    X(clEnqueueSVMUnmap, (cl_command_queue queue, void *p, CL_WAITS), \
      (queue, p, CL_WAITS_GIVEN), cl_is_map(&w, "Unmap SVM", STAVE_GPU_H2D, cl_size_of(p))) \
    X(clEnqueueSVMMigrateMem, (cl_command_queue queue, cl_uint n, const void **p, const size_t *sizes, cl_mem_migration_flags flags, CL_WAITS), \
      (queue, n, p, sizes, flags, CL_WAITS_GIVEN), cl_is_map(&w, "Migrate SVM", flags & CL_MIGRATE_MEM_OBJECT_HOST ? STAVE_GPU_D2H : STAVE_GPU_H2D, 0)) \
    X(clEnqueueSVMFree, (cl_command_queue queue, cl_uint n, void **p, void (CL_CALLBACK *f)(cl_command_queue, cl_uint, void **, void *), void *user, CL_WAITS), \
      (queue, n, p, f, user, CL_WAITS_GIVEN), cl_is_svm_free(&w, n, p, f != NULL)) \
    X(clEnqueueAcquireGLObjects, (cl_command_queue queue, cl_uint n, const cl_mem *m, CL_WAITS), \
      (queue, n, m, CL_WAITS_GIVEN), cl_is_wait(&w, "Acquire GL objects", n_waits)) \
    X(clEnqueueReleaseGLObjects, (cl_command_queue queue, cl_uint n, const cl_mem *m, CL_WAITS), \
      (queue, n, m, CL_WAITS_GIVEN), cl_is_wait(&w, "Release GL objects", n_waits))

#define CL_SPECIAL(X) \
    X(clCreateContext) X(clCreateContextFromType) X(clRetainContext) X(clReleaseContext) \
    X(clCreateCommandQueue) X(clCreateCommandQueueWithProperties) X(clRetainCommandQueue) X(clReleaseCommandQueue) \
    X(clGetCommandQueueInfo) X(clSetCommandQueueProperty) \
    X(clCreateBuffer) X(clCreateBufferWithProperties) X(clCreateSubBuffer) X(clCreatePipe) \
    X(clCreateImage) X(clCreateImageWithProperties) X(clCreateImage2D) X(clCreateImage3D) \
    X(clRetainMemObject) X(clReleaseMemObject) X(clSVMAlloc) X(clSVMFree) \
    X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clCreateProgramWithIL) X(clCreateProgramWithBuiltInKernels) \
    X(clBuildProgram) X(clCompileProgram) X(clLinkProgram) \
    X(clCreateKernel) X(clCloneKernel) X(clRetainKernel) X(clReleaseKernel) X(clSetKernelArg) X(clSetKernelArgSVMPointer) \
    X(clFlush) X(clFinish) X(clWaitForEvents) X(clGetEventInfo) X(clGetEventProfilingInfo) \
    X(clCreateUserEvent) X(clSetUserEventStatus) X(clEnqueueMapBuffer) X(clEnqueueMapImage) X(clEnqueueMarker)
/* clang-format on */

/* The wrappers, with the types that the driver's table has: a wrong one does not compile. */
#define CL_DECLARE(name, ...) extern __typeof__(*((cl_icd_dispatch *)0)->name) cl_on_##name;
CL_PLAIN(CL_DECLARE)
CL_ENQUEUE(CL_DECLARE)
#define CL_DECLARE_1(name) CL_DECLARE(name, )
CL_SPECIAL(CL_DECLARE_1)

/* A slice of the calling thread around something that is no command of a queue. */
bool cl_call_begin(const char *call); /* false: nothing is recorded */
void cl_call_end(bool begun, cl_int status);
void cl_call_end_with(bool begun, cl_int status, struct stave_args *more);

/* The program's own pointer or one of ours, so that the status is known either way. */
#define CL_STATUS_OF(status)        \
    cl_int own_status = CL_SUCCESS; \
    if (!(status))                  \
    (status) = &own_status

/* The wrappers that count an object's users, so that it is known when the last has gone. */
#define CL_RETAIN(call, type, retained)          \
    cl_int CL_API_CALL cl_on_##call(type object) \
    {                                            \
        cl_int status = cl_real.call(object);    \
        if (status == CL_SUCCESS)                \
            retained(object);                    \
        return status;                           \
    }
#define CL_RELEASE(call, type, released)         \
    cl_int CL_API_CALL cl_on_##call(type object) \
    {                                            \
        bool begun = cl_call_begin(#call);       \
        released(object);                        \
        cl_int status = cl_real.call(object);    \
        cl_call_end(begun, status);              \
        return status;                           \
    }
