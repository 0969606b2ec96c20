/* Taken apart so that putting the parts together gives the same text: what is not certainly a place
 * belongs to the function's name, which in C++ may have brackets of its own. */
#include "core/stream/frame_text.h"

#include <string.h>

/* The line at the end of the text in brackets, and where its colon is; 0: it has none. */
static uint32_t line_of(const char *text, size_t from, size_t end, size_t *colon)
{
    uint64_t line = 0;
    size_t at = end;
    while (at > from && text[at - 1] >= '0' && text[at - 1] <= '9')
        at--;
    if (at == end || end - at > 9 || text[at] == '0' || at == from || text[at - 1] != ':')
        return 0;
    for (size_t i = at; i < end; i++)
        line = line * 10 + (uint64_t)(text[i] - '0');
    *colon = at - 1;
    return (uint32_t)line;
}

struct sv_frame_parts sv_frame_parts(const char *text, size_t len)
{
    struct sv_frame_parts none = {.function_len = len}, p = none;
    if (len < 5 || text[len - 1] != ')')
        return none;
    size_t open = len - 1, end = len - 1;
    while (open > 0 && text[open - 1] != '(' && text[open - 1] != ')')
        open--;
    if (open < 3 || text[open - 1] != '(' || text[open - 2] != ' ')
        return none;
    p.line = line_of(text, open, end, &end);
    if (end == open || (!p.line && !memchr(text + open, '.', end - open)))
        return none;
    p.function_len = open - 2;
    p.file_at = open;
    p.file_len = end - open;
    return p;
}

const char *sv_frame_without_line(const char *text, size_t *len, char *room, size_t size)
{
    struct sv_frame_parts p = sv_frame_parts(text, *len);
    size_t end = p.file_at + p.file_len;
    if (p.line == 0 || end + 1 > size)
        return text;
    memcpy(room, text, end);
    room[end] = ')';
    *len = end + 1;
    return room;
}
