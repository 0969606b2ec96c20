/* cl_late: an OpenCL program that is not linked with the loader: it finds the library and its
 * functions at run time, as language bindings do. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static void *library;

#define CALL(name) name##_ = (__typeof__(&name))(uintptr_t)dlsym(library, #name)

int main(void)
{
    cl_platform_id platform;
    cl_device_id device;
    cl_int e = 0;
    library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        return 77;
    }
    __typeof__(&clGetPlatformIDs) CALL(clGetPlatformIDs);
    __typeof__(&clGetDeviceIDs) CALL(clGetDeviceIDs);
    __typeof__(&clCreateContext) CALL(clCreateContext);
    __typeof__(&clCreateCommandQueue) CALL(clCreateCommandQueue);
    __typeof__(&clCreateBuffer) CALL(clCreateBuffer);
    __typeof__(&clEnqueueFillBuffer) CALL(clEnqueueFillBuffer);
    __typeof__(&clFinish) CALL(clFinish);
    if (clGetPlatformIDs_(1, &platform, NULL) ||
        clGetDeviceIDs_(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 77;
    cl_context context = clCreateContext_(NULL, 1, &device, NULL, NULL, &e);
    cl_command_queue queue = clCreateCommandQueue_(context, device, 0, &e);
    cl_mem m = clCreateBuffer_(context, CL_MEM_READ_WRITE, 4096, NULL, &e);
    if (e || clEnqueueFillBuffer_(queue, m, "x", 1, 0, 4096, 0, NULL, NULL) || clFinish_(queue))
        return 3;
    dlclose(library); /* with everything still there */
    return 0;
}
