/* See record/output/saved_name.h. */
#include "record/output/saved_name.h"

#include "core/files/out_name.h"
#include "core/files/part_name.h"
#include "record/session/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

bool sv_saved_protect(const char *pattern, char *to, size_t size)
{
    size_t at = 0;
    for (const char *p = pattern; *p; p++) {
        if (at + 3 >= size)
            return false;
        if (*p != '%' || !p[1]) {
            to[at++] = *p;
        } else if (*++p == 't') {
            to[at++] = SV_SAVED_MARK;
        } else {
            to[at++] = '%';
            to[at++] = *p;
        }
    }
    to[at] = '\0';
    return true;
}

static bool put_time(const char *pattern, const char *utc, char *to, size_t size)
{
    size_t at = 0, n = strlen(utc);
    for (const char *p = pattern; *p; p++) {
        if (at + n + 1 >= size)
            return false;
        if (*p == SV_SAVED_MARK) {
            memcpy(to + at, utc, n);
            at += n;
        } else {
            to[at++] = *p;
        }
    }
    to[at] = '\0';
    return true;
}

static void utc_text(int64_t ns, char utc[static 32])
{
    struct tm tm;
    time_t s = (time_t)(ns / 1000000000);
    gmtime_r(&s, &tm);
    size_t n = strftime(utc, 32, "%Y%m%dT%H%M%S", &tm);
    snprintf(utc + n, 32 - n, ".%03dZ", (int)(ns % 1000000000 / 1000000));
}

bool sv_saved_split(char *path, size_t size, char *pattern, size_t pattern_size)
{
    char utc[32];
    pattern[0] = '\0';
    if (!strchr(path, SV_SAVED_MARK))
        return true;
    if (strlen(path) >= pattern_size)
        return false;
    memcpy(pattern, path, strlen(path) + 1);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    utc_text((int64_t)t.tv_sec * 1000000000 + t.tv_nsec, utc);
    return put_time(pattern, utc, path, size);
}

/* By the clocks as they were then: the wall clock may have been set since. */
void sv_saved_time(const struct sv_recorder *r, int64_t ts_ns, char utc[static 32])
{
    struct sv_clocks all;
    int64_t ns = 0;
    sv_parts_clocks(r, &all);
    (void)sv_clocks_convert(&all, SV_CLOCK_BOOTTIME, SV_CLOCK_REALTIME, ts_ns, &ns);
    sv_clocks_fini(&all);
    utc_text(ns, utc);
}

void sv_saved_name(const struct sv_record_options *o, const char *utc, uint32_t *number, char *path,
                   size_t size)
{
    char text[16];
    if (!o->saved_pattern[0]) {
        uint32_t next = sv_parts_free_number(o->out.path);
        *number = next > *number ? next : *number + 1;
        sv_parts_name(o->out.path, *number, path, size);
        return;
    }
    for (unsigned n = 1; n < 10000; n++) {
        put_time(o->saved_pattern, utc, path, size);
        snprintf(text, sizeof text, "-%u", n);
        if (n > 1)
            sv_name_insert(path, size, text);
        if (access(path, F_OK) != 0)
            return;
    }
}

static void set(struct sv_dict *d, const char *key, const char *value)
{
    sv_dict_set_meta(d, key, value, strlen(value), false);
}

/* A condition may name a file, a cause may have a line of a log. */
static void set_redacted(const struct sv_recorder *r, struct sv_dict *d, const char *key,
                         const char *value)
{
    size_t len = 0;
    char *new = r->options->redact
                    ? sv_redact_text(&r->system.redact, "", value, strlen(value), &len)
                    : NULL;
    sv_dict_set_meta(d, key, new ? new : value, new ? len : strlen(value), false);
    free(new);
}

int sv_saved_head(struct sv_recorder *r, const char *path, const struct sv_saved_cause *cause,
                  struct sv_err *err)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_sink *sink;
    char text[32];
    d->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    if (r->dict->clocks.n > 0)
        sv_clocks_add(&d->clocks, &r->dict->clocks.snapshots[r->dict->clocks.n - 1]);
    for (uint32_t i = 0; i < r->dict->n_meta; i++) {
        const struct sv_meta *m = &r->dict->meta[i];
        struct sv_text value = sv_dict_text(r->dict, m->value);
        sv_dict_set_meta(d, sv_dict_text(r->dict, m->key).bytes, value.bytes, value.len,
                         m->is_json);
    }
    set_redacted(r, d, SV_META_TRIGGER, cause->condition);
    set_redacted(r, d, SV_META_TRIGGER_CAUSE, cause->cause);
    set(d, SV_META_TRIGGER_TIME, cause->utc);
    snprintf(text, sizeof text, "%lld", (long long)cause->ts_ns);
    set(d, SV_META_TRIGGER_TS, text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)cause->skipped);
    if (cause->skipped)
        set(d, SV_META_TRIGGER_SKIPPED, text);
    int code = sv_open_growing(&r->options->out, path, d, &r->report, &sink, err);
    if (code >= 0)
        code = sink->close(sink, false, err);
    sv_dict_free(d);
    return code;
}
