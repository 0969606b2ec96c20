/* Lists of globs as in STAVE_CATEGORIES: "nn.*,io,-noise*". In a header, without memory or calls:
 * libraries that are loaded into other programs use it and link nothing of core/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* One glob of a list, [glob, end): * is any run, ? one byte; all else is itself. */
static inline bool sv_globs_plain(const char *glob, const char *end, const char *text)
{
    const char *star = NULL, *retry = NULL;
    while (*text) {
        if (glob < end && (*glob == '?' || *glob == *text) && *glob != '*') {
            glob++, text++;
        } else if (glob < end && *glob == '*') {
            star = ++glob;
            retry = text;
        } else if (star) {
            glob = star;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (glob < end && *glob == '*')
        glob++;
    return glob == end;
}

/* Some glob of the list matches (or it has only exclusions, -GLOB), and no exclusion does. */
static inline bool sv_globs_match(const char *globs, const char *text,
                                  bool (*matches)(const char *glob, const char *end,
                                                  const char *text))
{
    bool on = false, any_positive = false;
    while (*globs) {
        const char *end = globs + strcspn(globs, ",");
        bool exclude = *globs == '-';
        any_positive |= !exclude;
        if (matches(globs + exclude, end, text)) {
            if (exclude)
                return false;
            on = true;
        }
        globs = *end ? end + 1 : end;
    }
    return on || !any_positive;
}
