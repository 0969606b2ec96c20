/* Clock pairs and the lines between them.
 *
 * The writer reads a pair before each round, so that every record of the round lies between two
 * pairs; what is older than the kept pairs, or newer than the last, is continued along the nearest
 * line. Runs in the writer and in readers of abandoned sessions, never on the hot path. */
#include "sdk/emit/ticks.h"
#include "core/base/now.h"

#include "sdk/emit/cpu.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* The CPU reports it as invariant, and the kernel uses it as its clock source: then it is the same
 * on all cores. */
bool sv_cpu_counter_usable(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000007u, &a, &b, &c, &d) || !(d & 1u << 8))
        return false;
    char text[16] = {0};
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                  O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n >= 3 && memcmp(text, "tsc", 3) == 0;
}
#elif defined(__aarch64__)
bool sv_cpu_counter_usable(void)
{
    return true; /* the architecture says so */
}
#else
bool sv_cpu_counter_usable(void)
{
    return false;
}
#endif

enum sv_counter sv_ticks_counter(void)
{
    static _Atomic int known = -1;
    int counter = atomic_load_explicit(&known, memory_order_relaxed);
    if (counter < 0) {
        counter = sv_cpu_counter_usable() ? SV_COUNTER_CPU : SV_COUNTER_MONOTONIC;
        atomic_store_explicit(&known, counter, memory_order_relaxed);
    }
    return (enum sv_counter)counter;
}

uint64_t sv_ticks_raw(enum sv_counter counter)
{
    return counter == SV_COUNTER_CPU ? sv_cpu_counter() : (uint64_t)sv_now_ns(CLOCK_MONOTONIC);
}

/* Perfetto's number for a CPU's counter means x86's. */
#if defined(__x86_64__)
enum { SV_HAS_TSC = 1 };
#else
enum { SV_HAS_TSC = 0 };
#endif

/* Counter, clock, counter; the narrowest of several tries. The clock's own bracket gives the width
 * in ns. */
struct sv_tick sv_ticks_read(enum sv_counter counter)
{
    struct sv_tick best = {0};
    uint64_t best_width = UINT64_MAX;
    for (int i = 0; i < 8; i++) {
        int64_t m0 = sv_now_ns(CLOCK_MONOTONIC);
        uint64_t a = sv_ticks_raw(counter);
        int64_t boot = sv_now_ns(CLOCK_BOOTTIME);
        uint64_t b = sv_ticks_raw(counter);
        int64_t m1 = sv_now_ns(CLOCK_MONOTONIC);
        if (b - a >= best_width)
            continue;
        best_width = b - a;
        best = (struct sv_tick){.raw = a + (b - a) / 2,
                                .boot_ns = boot,
                                .mono_ns = m0 + (m1 - m0) / 2,
                                .uncertainty_ns = (m1 - m0) / 2};
    }
    return best;
}

void sv_ticks_snapshot(struct sv_snapshot *s, const struct sv_tick *t)
{
    *s = (struct sv_snapshot){.uncertainty_ns = -1};
    int64_t width = INT64_MAX;
    bool has_tsc = SV_HAS_TSC && sv_ticks_counter() == SV_COUNTER_CPU;
    for (int i = 0; i < 4; i++) {
        int64_t boot = sv_now_ns(CLOCK_BOOTTIME), mono = sv_now_ns(CLOCK_MONOTONIC);
        uint64_t tsc = has_tsc ? sv_ticks_raw(SV_COUNTER_CPU) : 0;
        int64_t real = sv_now_ns(CLOCK_REALTIME), rawm = sv_now_ns(CLOCK_MONOTONIC_RAW);
        int64_t again = sv_now_ns(CLOCK_BOOTTIME);
        if (again - boot >= width)
            continue;
        width = again - boot;
        s->n = 0;
        s->readings[s->n++] = (struct sv_reading){SV_CLOCK_BOOTTIME, boot + width / 2};
        s->readings[s->n++] = (struct sv_reading){SV_CLOCK_MONOTONIC, mono};
        s->readings[s->n++] = (struct sv_reading){SV_CLOCK_REALTIME, real};
        s->readings[s->n++] = (struct sv_reading){SV_CLOCK_MONOTONIC_RAW, rawm};
        if (has_tsc)
            s->readings[s->n++] = (struct sv_reading){SV_CLOCK_TSC, (int64_t)tsc};
        s->uncertainty_ns = (width + 1) / 2;
    }
    if (t && t->uncertainty_ns > s->uncertainty_ns)
        s->uncertainty_ns = t->uncertainty_ns;
    sv_snapshot_read_wall(s);
}

/* A pair may be another process's: readings of a clock that has just begun to count, or of one that
 * has counted for a century, are none. */
static bool is_reading(const struct sv_tick *tick)
{
    const int64_t most = (int64_t)1 << 62;
    return tick->boot_ns >= 0 && tick->boot_ns < most && tick->mono_ns >= 0 && tick->mono_ns < most;
}

/* A pair that is too close to the one before replaces it: a line needs some distance. */
bool sv_ticks_add(struct sv_ticks *t, const struct sv_tick *tick)
{
    t->span = 0;
    if (!is_reading(tick))
        return false;
    if (t->n == 0) {
        t->first = *tick;
        t->at[t->n++] = *tick;
        return true;
    }
    if (tick->raw <= t->at[t->n - 1].raw || tick->boot_ns < t->at[t->n - 1].boot_ns)
        return true;
    if (t->n == SV_TICKS_MAX) {
        memmove(&t->at[0], &t->at[1], (SV_TICKS_MAX - 1) * sizeof t->at[0]);
        t->n--;
    }
    t->at[t->n++] = *tick;
    return true;
}

static void use_line(struct sv_ticks *t, const struct sv_tick *a, const struct sv_tick *b)
{
    uint64_t raws = b->raw - a->raw;
    uint64_t ns = (uint64_t)(b->boot_ns - a->boot_ns);
    t->base_raw = a->raw;
    t->base_ns = a->boot_ns;
    t->span = raws;
    t->mult = raws ? (uint64_t)(((sv_u128)ns << 32) / raws) : 0;
}

static int64_t sum(int64_t ns, sv_i128 more)
{
    sv_i128 v = ns + more; /* raw times of other processes may be anything */
    return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

int64_t sv_ticks_find(struct sv_ticks *t, uint64_t raw)
{
    if (t->n < 2) /* one pair: the counter is not known yet; only nanoseconds can be continued */
        return t->n ? sum(t->at[0].boot_ns, (int64_t)(raw - t->at[0].raw)) : (int64_t)raw;
    size_t i = t->n - 1;
    while (i > 1 && raw < t->at[i - 1].raw)
        i--;
    const struct sv_tick *a = &t->at[i - 1], *b = &t->at[i];
    bool inside = raw >= a->raw && raw < b->raw;
    if (inside) {
        use_line(t, a, b);
        return sv_ticks_ns(t, raw);
    }
    /* Outside: along the slope of all pairs, from the nearer end. */
    const struct sv_tick *end = raw < a->raw ? &t->at[0] : b;
    uint64_t raws = b->raw - t->first.raw;
    int64_t ns = b->boot_ns - t->first.boot_ns;
    sv_i128 d = (sv_i128)(int64_t)(raw - end->raw) * ns;
    return sum(end->boot_ns, raws ? d / (sv_i128)raws : 0);
}
