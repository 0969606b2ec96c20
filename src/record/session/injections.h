/* The injected interfaces, one line each: INJECTION(NAME, VARIABLE, IS_LIST).
 *
 * NAME is the folder lib/inject/NAME, which makes libstave-NAME.so (its build.cmake says how), and
 * a word of --inject. VARIABLE is the environment variable by which the loader of the interface
 * finds the library (PYTHONPATH: Python, and instead of a library the folder stave-NAME). IS_LIST:
 * it holds several paths with ':' between them. */
#ifndef SV_RECORD_SESSION_INJECTIONS_H
#define SV_RECORD_SESSION_INJECTIONS_H

/* clang-format off: the build reads these lines, too. */
#define SV_INJECTIONS(INJECTION)                    \
    INJECTION(opencl, "OPENCL_LAYERS", true)        \
    INJECTION(nvtx, "NVTX_INJECTION64_PATH", false) \
    INJECTION(itt, "INTEL_LIBITTNOTIFY64", false)   \
    INJECTION(cuda, "CUDA_INJECTION64_PATH", false) \
    INJECTION(mpi, "LD_PRELOAD", true)              \
    INJECTION(io, "LD_PRELOAD", true)               \
    INJECTION(locks, "LD_PRELOAD", true)            \
    INJECTION(torch, "PYTHONPATH", true)
/* clang-format on */

/* Their names, with a comma or a blank after each. */
#define SV_INJECTION_COMMA(name, ...) #name ", "
#define SV_INJECTION_BLANK(name, ...) #name " "

#endif
