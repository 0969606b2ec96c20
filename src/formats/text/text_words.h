/* Words that the text reader and the text writer share. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define SV_TEXT_HEAD      "# stave text 1"
#define SV_TEXT_DEPTH_MAX 128 /* of nested arguments and of parents */
#define SV_TEXT_FLAGS     3

/* By bit of enum sv_event_flag. */
static const char *const sv_text_flag_names[SV_TEXT_FLAGS] = {"bind_next", "process_scope",
                                                              "global_scope"};

static inline bool sv_text_is_word(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
}

/* Keys that need no quotes: letters, digits, '_' and '.', not beginning with a digit or '.'. */
static inline bool sv_text_is_bare(const char *s, size_t len)
{
    if (len == 0 || !(sv_text_is_word((unsigned char)s[0]) && s[0] != '.') ||
        (s[0] >= '0' && s[0] <= '9'))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!sv_text_is_word((unsigned char)s[i]))
            return false;
    return true;
}
