/* What the plays for the OpenCL layer share: a context, a queue, a program, and a check that ends
 * the program. */
#ifndef CL_PLAY_H
#define CL_PLAY_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct play {
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel add, spin;
    cl_mem a, b, c;
};

enum { PLAY_N = 4096, PLAY_BYTES = PLAY_N * (int)sizeof(float) };

static inline void check_at(bool ok, const char *what, int line)
{
    if (ok)
        return;
    fprintf(stderr, "line %d: not so: %s\n", line, what);
    exit(3);
}
#define CHECK(x) check_at(x, #x, __LINE__)
#define OK(x)    check_at((x) == CL_SUCCESS, #x, __LINE__)

void play_open(struct play *p, cl_command_queue_properties properties);
void play_close(struct play *p);
void play_add(const struct play *p, cl_command_queue q, cl_uint n_waits, const cl_event *waits,
              cl_event *event);

/* The second file. */
int play_images(void);
int play_svm(void);
int play_sub_devices(void);
int play_fail_build(void);
int play_rect(void);
int play_view(void);

#endif
