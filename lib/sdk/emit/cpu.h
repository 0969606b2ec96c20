/* All that depends on the CPU: its counter, and a hint for waiting loops. x86-64 and aarch64;
 * elsewhere the system clock is used.
 *
 * The counter counts at a constant rate and alike on all cores (sv_cpu_counter_usable() asks), but
 * its unit is unknown until it has been compared with a clock: see ticks.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool sv_cpu_counter_usable(void);

static inline uint64_t sv_cpu_counter(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
#else
    return 0;
#endif
}

static inline void sv_cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
