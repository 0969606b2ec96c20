/*
 * Stave: a writer of complete events by name, category and elapsed milliseconds, for probes that
 * measure by themselves. The file is the one that ferrum's trace writer makes: a JSON array of
 *
 *     {"name":"attn","cat":"attention","ph":"X","ts":1234,"dur":56,"pid":0,"tid":3,"args":{…}}
 *
 * with times in whole microseconds since the writer was opened, tid = the layer, and `args` only
 * where there are some. Nothing else is in it, whatever the suffix of its name.
 *
 *     struct stave_trace_writer *w = stave_trace_writer_from_env();
 *     stave_trace_writer_push(w, "attn", "attention", 1.25, 3);
 *
 * The file is a whole JSON array at any time. A push puts its event into memory (0.1 µs); what
 * waits there is written when that memory is full (64 KiB), ten times a second while events come,
 * at a flush, and at the end of the program. After a signal, abort() or _exit() the rest is still
 * in that memory, which has a name: `stave recover trace.json` adds it to the file. Events of
 * forked children go to the same file. Two writers of one process that have the same file share
 * it. A file that another process is writing is left alone: the trace goes to a name with the
 * process id in it (trace.1234.json), and a line on stderr says so.
 *
 * A path that cannot be written is one line on stderr; the program goes on without a trace. NULL is
 * a writer that is off: every function accepts it and does nothing. All functions may be called
 * from any thread, but not from signal handlers. They are in libstave-file (pkg-config stave, or
 * -lstave-file alone) and in libstave.a. C++: trace_writer.hpp.
 */
#ifndef STAVE_TRACE_WRITER_H
#define STAVE_TRACE_WRITER_H

#include <stave/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stave_trace_writer;

/* Texts are UTF-8; what is not becomes U+FFFD. A length of 0 means that the text ends at its
 * NUL. */
struct stave_trace_event {
    const char *name, *cat;
    uint64_t ts;  /* microseconds since the writer was opened */
    uint64_t dur; /* microseconds */
    uint32_t pid, tid;
    const char *args; /* a JSON object as text; NULL: none */
    size_t name_len, cat_len, args_len;
};

/* Opens a writer to the variable STAVE_TRACE_OUT or, where that is unset or empty, to
 * FERRUM_TRACE_OUT. Both unset or empty: NULL. */
STAVE_API struct stave_trace_writer *stave_trace_writer_from_env(void);
/* The same with variables "NAME=VALUE", ended by NULL, instead of the environment. */
STAVE_API struct stave_trace_writer *stave_trace_writer_from_vars(const char *const *vars);
/* Opens a writer to a file, which is replaced: it holds an empty array from then on. A path that is
 * NULL or empty: NULL. Returns a writer also when the file cannot be opened: flush returns why. */
STAVE_API struct stave_trace_writer *stave_trace_writer_open(const char *path);
STAVE_API void stave_trace_writer_close(struct stave_trace_writer *w);

/* Returns true if events are wanted: to skip what is only done for them. */
STAVE_API bool stave_trace_writer_is_enabled(const struct stave_trace_writer *w);

/* Records an event that ends now and took dur_ms. `tid` is the layer, 0 for the engine. On failure
 * the event is lost. STAVE_EFORMAT: it is recorded without its arguments, which are not a JSON
 * object. */
STAVE_API int stave_trace_writer_push(struct stave_trace_writer *w, const char *name,
                                      const char *cat, double dur_ms, uint32_t tid);
STAVE_API int stave_trace_writer_push_with_args(struct stave_trace_writer *w, const char *name,
                                                const char *cat, double dur_ms, uint32_t tid,
                                                const char *args);
/* The same for names with lengths, and for other languages: `ts` and `dur` are not read. */
STAVE_API int stave_trace_writer_push_timed(struct stave_trace_writer *w,
                                            const struct stave_trace_event *event, double dur_ms);
/* Records an event with the times that it has. */
STAVE_API int stave_trace_writer_push_event(struct stave_trace_writer *w,
                                            const struct stave_trace_event *event);

/* Writes what is not in the file yet. Returns 0 if it holds everything that was pushed; else
 * `error` says why the first event is missing. May be called any number of times. */
STAVE_API int stave_trace_writer_flush(struct stave_trace_writer *w, struct stave_error *error);

/* A complete event: `dur` is dur_ms in microseconds, rounded; pid is 0. The texts are not
 * copied. */
STAVE_API struct stave_trace_event stave_trace_event_complete(const char *name, const char *cat,
                                                              uint64_t start_ts_us, double dur_ms,
                                                              uint32_t tid);
/* Writes the event as JSON, terminated. Returns its length. STAVE_ELIMIT: it does not fit;
 * STAVE_EFORMAT: its arguments are not a JSON object. */
STAVE_API int stave_trace_event_json(const struct stave_trace_event *event, char *to, size_t size);

/* The text as a JSON string with its quotes, for who makes `args`: as many bytes of it as fit, not
 * terminated. Returns how many there are in all. */
STAVE_API size_t stave_trace_json_text(const char *text, size_t len, char *to, size_t size);

/* The writer of the program, opened from the environment by the first call. It is never closed. */
STAVE_API struct stave_trace_writer *stave_global_trace(void);
STAVE_API void stave_flush_global_trace(void);

#ifdef __cplusplus
}
#endif

#endif
