/*
 * Stave: how functions of its libraries fail. Included by the other headers.
 *
 *     struct stave_error error;
 *     struct stave_file *f = stave_file_open("run.pftrace", NULL, &error);
 *     if (!f)
 *         fprintf(stderr, "%s\n", error.text);
 *
 * A function that can fail returns 0, or a number that its comment explains, and a negative enum
 * stave_code on failure. One that makes an object returns it, and NULL on failure. Where there is
 * more to say than the code, the last parameter is a struct stave_error *. It may be NULL. It is
 * filled in any case: after a success it has the code STAVE_OK and an empty text. Functions that
 * return bool answer a question (is it recorded? is it valid?).
 */
#ifndef STAVE_ERROR_H
#define STAVE_ERROR_H

/* Marks what the library exports; everything else in it is hidden. In libstave.a nothing is
 * exported: each program or plugin that it is linked into has a copy of its own, which no other can
 * replace. */
#ifdef STAVE_I_COPY
#define STAVE_API __attribute__((visibility("hidden")))
#else
#define STAVE_API __attribute__((visibility("default")))
#endif

enum stave_code {
    STAVE_OK = 0,
    STAVE_EUSAGE = -1,       /* the request is not valid, or not at this time */
    STAVE_EOUTPUT = -2,      /* the output cannot be opened or written */
    STAVE_EFORMAT = -3,      /* the input is no trace, or it is damaged */
    STAVE_EMEMORY = -4,      /* out of memory, or past a stated limit of it */
    STAVE_EINPUT = -5,       /* the input cannot be opened or read */
    STAVE_ELIMIT = -6,       /* another limit: it does not fit, or too much is waiting */
    STAVE_EINTERRUPTED = -7, /* another thread has asked for the end */
    STAVE_ENOTHING = -8,     /* there is nothing to draw or to report */
    STAVE_EOTHER = -9
};

struct stave_error {
    int code;       /* enum stave_code */
    int os_error;   /* errno of the operating system, or 0 */
    char text[600]; /* one line: which file, where in it, and why */
};

#endif
