/* The entry point: a program's ITT part calls __itt_api_init() once, and gets our functions into
 * its list. Also what is not bound to a task: pausing, names of threads, the time.
 *
 * Functions that we do not have become what they are without a collector. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "itt.h"

static atomic_bool is_paused;

#define ROW(type, name, params) {"__itt_" #name, (uintptr_t)itt_##name},
static const struct {
    const char *name;
    uintptr_t function;
} functions[] = {ITT_FUNCTIONS(ROW)};

static uintptr_t function_of(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].function;
    return 0;
}

__attribute__((visibility("default"))) void __itt_api_init(struct itt_part *part, int groups);

/* A list of interface version 3; earlier ones have shorter rows. */
static bool is_known(const struct itt_part *part)
{
    static const unsigned char magic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
    return part && memcmp(part->magic, magic, sizeof magic) == 0 && part->major == 3 && part->list;
}

void __itt_api_init(struct itt_part *part, int groups)
{
    static atomic_flag has_exit = ATOMIC_FLAG_INIT;
    (void)groups;
    if (!is_known(part))
        return;
    for (struct itt_api *a = part->list; a->name; a++) {
        uintptr_t ours = function_of(a->name);
        *a->function = ours ? (void *)ours : a->without;
    }
    if (!atomic_flag_test_and_set(&has_exit))
        atexit(itt_spans_at_exit);
}

bool itt_is_on(const struct itt_domain *d)
{
    return !atomic_load_explicit(&is_paused, memory_order_relaxed) && (!d || d->flags) &&
           stave_enabled(NULL);
}

const char *itt_api_version(void)
{
    return "Stave";
}

unsigned long long itt_get_timestamp(void)
{
    return (unsigned long long)stave_now_ns();
}

/* ---- control: what ITT itself records; the rest of the session continues ---- */

void itt_pause(void)
{
    if (!atomic_exchange(&is_paused, true))
        STAVE_INSTANT(ITT_CATEGORY, "ITT paused");
}

void itt_resume(void)
{
    if (atomic_exchange(&is_paused, false))
        STAVE_INSTANT(ITT_CATEGORY, "ITT resumed");
}

enum { SCOPE_HOST = 1 };

void itt_pause_scoped(int scope)
{
    if (scope & SCOPE_HOST)
        itt_pause();
}

void itt_resume_scoped(int scope)
{
    if (scope & SCOPE_HOST)
        itt_resume();
}

void itt_detach(void)
{
    itt_pause();
}

void itt_thread_set_name(const char *name)
{
    if (name && stave_enabled(NULL))
        stave_set_thread_name(name);
}

int itt_thr_name_set(const char *name, int len)
{
    char text[64];
    if (!name || len < 0)
        return -1;
    size_t n = strnlen(name, (size_t)len < sizeof text - 1 ? (size_t)len : sizeof text - 1);
    memcpy(text, name, n);
    text[n] = 0;
    itt_thread_set_name(text);
    return 0;
}
