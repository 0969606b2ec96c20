/* itt_dnnl: five times the simplest thing that oneDNN can do. Debian's oneDNN has the public ITT
 * part inside: a real user of it. */
#include <dnnl.h>
#include <stdio.h>

#if DNNL_VERSION_MAJOR == 2
static int run(void)
{
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_desc_t shape;
    dnnl_eltwise_desc_t relu;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory;
    dnnl_dims_t dims = {16, 16};
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) ||
        dnnl_stream_create(&stream, engine, dnnl_stream_default_flags) ||
        dnnl_memory_desc_init_by_tag(&shape, 2, dims, dnnl_f32, dnnl_ab) ||
        dnnl_eltwise_forward_desc_init(&relu, dnnl_forward_inference, dnnl_eltwise_relu, &shape, 0,
                                       0) ||
        dnnl_primitive_desc_create(&description, &relu, NULL, engine, NULL) ||
        dnnl_primitive_create(&primitive, description) ||
        dnnl_memory_create(&memory, &shape, engine, DNNL_MEMORY_ALLOCATE))
        return 3;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, memory}, {DNNL_ARG_DST, memory}};
    for (int i = 0; i < 5; i++)
        if (dnnl_primitive_execute(primitive, stream, 2, args))
            return 3;
    return dnnl_stream_wait(stream) ? 3 : 0;
}
#else
static int run(void)
{
    puts("written for oneDNN 2");
    return 77;
}
#endif

int main(void)
{
    return run();
}
