/* One event as ferrum's trace writer prints it:
 * {"name":…,"cat":…,"ph":"X","ts":µs,"dur":µs,"pid":N,"tid":N,"args":{…}}, in this order. Its
 * readers are strict: times are whole and not negative, pid and tid fit 32 bits, and there is no
 * other member. For the writer in libstave and for `--dialect ferrum`. */
#pragma once

#include "core/base/json.h"

struct sv_ferrum_event {
    const char *name, *cat;
    size_t name_len, cat_len;
    uint64_t ts_us, dur_us;
    uint32_t pid, tid;
};

/* The object up to its tid. It stays open: the caller adds `args` if there are any, and ends it. */
void sv_ferrum_begin(struct sv_json *j, const struct sv_ferrum_event *e);
