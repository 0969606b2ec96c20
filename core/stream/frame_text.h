/* Texts of the frames of a stack (SV_ARG_STACK): "function", "function (file)" or "function
 * (file:line)". */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct sv_frame_parts {
    size_t function_len;      /* of the text, from its beginning */
    size_t file_at, file_len; /* 0 and 0: no file */
    uint32_t line;            /* 0: none */
};

struct sv_frame_parts sv_frame_parts(const char *text, size_t len);

/* "step (train.py:41)" is "step (train.py)": one function, whichever of its lines it was in. The
 * text is in `room`, unless there is nothing to leave out or it does not fit. */
const char *sv_frame_without_line(const char *text, size_t *len, char *room, size_t size);
