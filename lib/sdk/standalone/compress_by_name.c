/* zlib and zstd for the shared library, by name: found at run time when a compressed output is
 * asked for.
 *
 * Part of libstave.so only. The foundation calls the compressors as usual; here their names are
 * small functions that pass on to the libraries that the machine has, so that a traced program does
 * not load them for nothing. All of it is hidden: a program's own zlib is not touched. Called by
 * the writer thread alone. A library that is absent fails the opening call. */
#include <dlfcn.h>
#include <zlib.h>
#ifdef SV_HAVE_ZSTD
#include <zstd.h>
#endif

/* Looked up once; NULL where there is none. */
static void *symbol(const char *library, void **handle, const char *name)
{
    if (!*handle)
        *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return *handle ? dlsym(*handle, name) : 0;
}

static void *zlib_handle;

#define NO_LIBRARY \
    ((size_t)-1) /* ZSTD_error_GENERIC; there is a context, so the library is there */

/* A pointer to a function from dlsym(), which gives a pointer to an object. */
#define BY_NAME(library, handle, result, name, params) \
    static result(*real) params;                       \
    if (!real)                                         \
    *(void **)(void *)&real = symbol(library, &handle, name)

int deflateInit_(z_streamp z, int level, const char *version, int size)
{
    BY_NAME("libz.so.1", zlib_handle, int, "deflateInit_", (z_streamp, int, const char *, int));
    return real ? real(z, level, version, size) : Z_VERSION_ERROR;
}

int deflateInit2_(z_streamp z, int level, int method, int bits, int memory, int strategy,
                  const char *version, int size)
{
    BY_NAME("libz.so.1", zlib_handle, int, "deflateInit2_",
            (z_streamp, int, int, int, int, int, const char *, int));
    return real ? real(z, level, method, bits, memory, strategy, version, size) : Z_VERSION_ERROR;
}

int deflate(z_streamp z, int flush)
{
    BY_NAME("libz.so.1", zlib_handle, int, "deflate", (z_streamp, int));
    return real ? real(z, flush) : Z_STREAM_ERROR;
}

int deflateReset(z_streamp z)
{
    BY_NAME("libz.so.1", zlib_handle, int, "deflateReset", (z_streamp));
    return real ? real(z) : Z_STREAM_ERROR;
}

int deflateEnd(z_streamp z)
{
    BY_NAME("libz.so.1", zlib_handle, int, "deflateEnd", (z_streamp));
    return real ? real(z) : Z_OK;
}

uLong deflateBound(z_streamp z, uLong n)
{
    BY_NAME("libz.so.1", zlib_handle, uLong, "deflateBound", (z_streamp, uLong));
    return real ? real(z, n) : n;
}

int inflateInit_(z_streamp z, const char *version, int size)
{
    BY_NAME("libz.so.1", zlib_handle, int, "inflateInit_", (z_streamp, const char *, int));
    return real ? real(z, version, size) : Z_VERSION_ERROR;
}

int inflate(z_streamp z, int flush)
{
    BY_NAME("libz.so.1", zlib_handle, int, "inflate", (z_streamp, int));
    return real ? real(z, flush) : Z_STREAM_ERROR;
}

int inflateEnd(z_streamp z)
{
    BY_NAME("libz.so.1", zlib_handle, int, "inflateEnd", (z_streamp));
    return real ? real(z) : Z_OK;
}

#ifdef SV_HAVE_ZSTD
static void *zstd_handle;

ZSTD_CCtx *ZSTD_createCCtx(void)
{
    BY_NAME("libzstd.so.1", zstd_handle, ZSTD_CCtx *, "ZSTD_createCCtx", (void));
    return real ? real() : 0;
}

size_t ZSTD_freeCCtx(ZSTD_CCtx *c)
{
    if (!c)
        return 0; /* most sessions never had one: do not look for the library */
    BY_NAME("libzstd.so.1", zstd_handle, size_t, "ZSTD_freeCCtx", (ZSTD_CCtx *));
    return real ? real(c) : 0;
}

size_t ZSTD_CCtx_setParameter(ZSTD_CCtx *c, ZSTD_cParameter p, int v)
{
    BY_NAME("libzstd.so.1", zstd_handle, size_t, "ZSTD_CCtx_setParameter",
            (ZSTD_CCtx *, ZSTD_cParameter, int));
    return real ? real(c, p, v) : 0;
}

size_t ZSTD_compressStream2(ZSTD_CCtx *c, ZSTD_outBuffer *out, ZSTD_inBuffer *in,
                            ZSTD_EndDirective end)
{
    BY_NAME("libzstd.so.1", zstd_handle, size_t, "ZSTD_compressStream2",
            (ZSTD_CCtx *, ZSTD_outBuffer *, ZSTD_inBuffer *, ZSTD_EndDirective));
    return real ? real(c, out, in, end) : NO_LIBRARY;
}

size_t ZSTD_compress2(ZSTD_CCtx *c, void *to, size_t cap, const void *from, size_t n)
{
    BY_NAME("libzstd.so.1", zstd_handle, size_t, "ZSTD_compress2",
            (ZSTD_CCtx *, void *, size_t, const void *, size_t));
    return real ? real(c, to, cap, from, n) : NO_LIBRARY;
}

size_t ZSTD_decompress(void *to, size_t cap, const void *from, size_t n)
{
    BY_NAME("libzstd.so.1", zstd_handle, size_t, "ZSTD_decompress",
            (void *, size_t, const void *, size_t));
    return real ? real(to, cap, from, n) : NO_LIBRARY;
}

size_t ZSTD_compressBound(size_t n)
{
    BY_NAME("libzstd.so.1", zstd_handle, size_t, "ZSTD_compressBound", (size_t));
    return real ? real(n) : n;
}

unsigned ZSTD_isError(size_t code)
{
    BY_NAME("libzstd.so.1", zstd_handle, unsigned, "ZSTD_isError", (size_t));
    return real ? real(code) : 1;
}

const char *ZSTD_getErrorName(size_t code)
{
    BY_NAME("libzstd.so.1", zstd_handle, const char *, "ZSTD_getErrorName", (size_t));
    return real ? real(code) : "no zstd";
}
#endif
