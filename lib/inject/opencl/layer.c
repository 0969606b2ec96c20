/* The entry point: the OpenCL loader asks for the layer's version, hands over the driver's
 * functions and takes ours in their place.
 *
 * The loader calls this once, before the program's first OpenCL call. Whatever the table of calls
 * does not name stays the driver's own function; so does everything that a newer loader has beyond
 * the table that we were compiled with. */
#include <stdlib.h>
#include <string.h>

#include "cl_calls.h"

cl_icd_dispatch cl_real;
static cl_icd_dispatch ours;

__attribute__((visibility("default"))) cl_int CL_API_CALL
clGetLayerInfo(cl_layer_info param_name, size_t param_value_size, void *param_value,
               size_t *param_value_size_ret)
{
    static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
    static const char name[] = "Stave";
    bool is_version = param_name == CL_LAYER_API_VERSION;
    size_t n = is_version ? sizeof version : sizeof name;
    if ((!is_version && param_name != CL_LAYER_NAME) || (param_value && param_value_size < n))
        return CL_INVALID_VALUE;
    if (param_value)
        memcpy(param_value, is_version ? (const void *)&version : name, n);
    if (param_value_size_ret)
        *param_value_size_ret = n;
    return CL_SUCCESS;
}

/* The driver's own function stays where it has none. */
#define REPLACE(name, ...) \
    if (cl_real.name)      \
        ours.name = cl_on_##name;
#define REPLACE_1(name) REPLACE(name, )

static void replace_calls(void)
{
    CL_PLAIN(REPLACE)
    CL_ENQUEUE(REPLACE)
    CL_SPECIAL(REPLACE_1)
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clInitLayer(cl_uint num_entries, const cl_icd_dispatch *target_dispatch, cl_uint *num_entries_ret,
            const cl_icd_dispatch **layer_dispatch_ret)
{
    const cl_uint known = sizeof ours / sizeof(void *);
    const cl_uint n = num_entries < known ? num_entries : known;
    if (!target_dispatch || !num_entries_ret || !layer_dispatch_ret)
        return CL_INVALID_VALUE;
    memcpy(&cl_real, target_dispatch, n * sizeof(void *));
    memcpy(&ours, target_dispatch, n * sizeof(void *));
    replace_calls();
    *num_entries_ret = n;
    *layer_dispatch_ret = &ours;
    atexit(cl_drain_at_exit);
    return CL_SUCCESS;
}

/* After the last atexit handler, which may have released something. */
__attribute__((destructor)) static void program_ends(void)
{
    if (ours.clGetPlatformIDs)
        cl_memory_report_live();
}

/* ---- slices of the calling thread ---- */

bool cl_call_begin(const char *call)
{
    if (!stave_enabled(NULL))
        return false;
    stave_gpu_call_begin(STAVE_GPU_OPENCL, call, 0, 0);
    return true;
}

void cl_call_end_with(bool begun, cl_int status, struct stave_args *more)
{
    if (!begun)
        return;
    if (status != CL_SUCCESS)
        stave_args_int(more, "error", status);
    stave_gpu_call_end_with(more);
}

void cl_call_end(bool begun, cl_int status)
{
    struct stave_args more;
    if (status == CL_SUCCESS) {
        if (begun)
            stave_gpu_call_end();
        return;
    }
    stave_args_init(&more);
    cl_call_end_with(begun, status, &more);
}

#define DEFINE(name, params, args)         \
    cl_int CL_API_CALL cl_on_##name params \
    {                                      \
        bool begun = cl_call_begin(#name); \
        cl_int status = cl_real.name args; \
        cl_call_end(begun, status);        \
        return status;                     \
    }
CL_PLAIN(DEFINE)
