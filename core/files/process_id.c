/* Which process: see process_id.h. Reads /proc only, into buffers on the stack. */
#include "core/files/process_id.h"
#include "core/base/hex.h"
#include "core/base/now.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool read_text(const char *path, char *to, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, to, size - 1);
    close(fd);
    to[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* ---- the machine ---- */

/* 32 hexadecimal digits, with or without hyphens. */
static bool read_id(const char *path, uint8_t id[static SV_BOOT_ID_BYTES])
{
    char text[64];
    unsigned n = 0;
    memset(id, 0, SV_BOOT_ID_BYTES);
    if (!read_text(path, text, sizeof text))
        return false;
    for (const char *c = text; *c && n < 2 * SV_BOOT_ID_BYTES; c++) {
        int value = sv_hex_lower(*c);
        if (value < 0)
            continue;
        id[n / 2] = (uint8_t)(id[n / 2] << 4 | value);
        n++;
    }
    if (n == 2 * SV_BOOT_ID_BYTES)
        return true;
    memset(id, 0, SV_BOOT_ID_BYTES);
    return false;
}

bool sv_boot_id(uint8_t id[static SV_BOOT_ID_BYTES])
{
    return read_id("/proc/sys/kernel/random/boot_id", id);
}

void sv_boot_text(const uint8_t id[static SV_BOOT_ID_BYTES], char to[static SV_BOOT_TEXT])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < SV_BOOT_ID_BYTES; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = digits[id[i] >> 4];
        *to++ = digits[id[i] & 15];
    }
    *to = '\0';
}

/* ---- the process ---- */

uint64_t sv_process_start_ticks(uint32_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (!read_text(path, text, sizeof text))
        return 0;
    char *at = strrchr(text, ')'); /* the name may hold blanks and parentheses */
    if (at && (at[2] == 'Z' || at[2] == 'X'))
        return 0;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

int64_t sv_process_job_start_ns(void)
{
    const pid_t candidates[] = {getpgrp(), getppid(), getpid()};
    int64_t tick_ns = 1000000000 / sysconf(_SC_CLK_TCK);
    uint64_t ticks = 0;
    for (int i = 0; i < 3 && ticks == 0; i++)
        if (candidates[i] > 1 || i == 2) /* whose parent has ended, the first process has adopted */
            ticks = sv_process_start_ticks((uint32_t)candidates[i]);
    if (ticks == 0) /* no /proc */
        return sv_now_ns(CLOCK_REALTIME);
    return sv_now_ns(CLOCK_REALTIME) - (sv_now_ns(CLOCK_BOOTTIME) - (int64_t)ticks * tick_ns);
}

static const char machine_id[] = "/etc/machine-id";

static uint64_t own_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* Is /proc that of this process's namespace? */
static bool is_own_proc(void)
{
    char text[32];
    return read_text("/proc/self/stat", text, sizeof text) && strtol(text, NULL, 10) == getpid();
}

bool sv_pids_text(char to[static SV_PIDS_TEXT])
{
    const uint64_t initial = 0xEFFFFFFC; /* the kernel's PROC_PID_INIT_INO */
    uint64_t id = own_namespace();
    bool is_reused = id != initial && is_own_proc();
    to[0] = '\0';
    if (id != 0)
        snprintf(to, SV_PIDS_TEXT, is_reused ? "%" PRIu64 ":%" PRIu64 : "%" PRIu64, id,
                 is_reused ? sv_process_start_ticks(1) : 0);
    return id != 0;
}

/* Its number; 0: the initial one, where clocks are the machine's, or a kernel without such
 * namespaces. */
static uint64_t time_namespace(void)
{
    const uint64_t initial = 0xEFFFFFFA; /* the kernel's PROC_TIME_INIT_INO */
    struct stat st;
    return stat("/proc/self/ns/time", &st) == 0 && st.st_ino != initial ? st.st_ino : 0;
}

/* The kernel shows the offsets of the namespace that children get, which mostly is the process's
 * own. */
static bool read_offsets(uint64_t own, int64_t *mono_ns, int64_t *boot_ns)
{
    char text[256];
    struct stat below;
    long long mono[2], boot[2]; /* seconds and nanoseconds */
    bool is_seen = stat("/proc/self/ns/time_for_children", &below) == 0 && below.st_ino == own &&
                   read_text("/proc/self/timens_offsets", text, sizeof text) &&
                   sscanf(text, "monotonic %lld %lld boottime %lld %lld", &mono[0], &mono[1],
                          &boot[0], &boot[1]) == 4;
    *mono_ns = is_seen ? (int64_t)mono[0] * 1000000000 + mono[1] : 0;
    *boot_ns = is_seen ? (int64_t)boot[0] * 1000000000 + boot[1] : 0;
    return is_seen;
}

bool sv_times_offsets(int64_t *mono_ns, int64_t *boot_ns)
{
    uint64_t own = time_namespace();
    return own != 0 && read_offsets(own, mono_ns, boot_ns);
}

bool sv_times_text(char to[static SV_TIMES_TEXT])
{
    uint64_t own = time_namespace();
    int64_t mono, boot;
    to[0] = '\0';
    if (own == 0)
        return false;
    if (!read_offsets(own, &mono, &boot))
        snprintf(to, SV_TIMES_TEXT, "namespace %" PRIu64, own);
    else if (mono != 0 || boot != 0)
        snprintf(to, SV_TIMES_TEXT, "%" PRId64 " %" PRId64, mono, boot);
    return to[0] != '\0';
}

struct sv_process_id sv_process_id_self(void)
{
    struct sv_process_id id = {.pid = (uint32_t)getpid(), .pid_namespace = own_namespace()};
    sv_boot_id(id.boot);
    read_id(machine_id, id.machine);
    id.start_ticks = sv_process_start_ticks(id.pid);
    return id;
}

bool sv_process_id_equal(const struct sv_process_id *a, const struct sv_process_id *b)
{
    return a->pid == b->pid && a->start_ticks == b->start_ticks &&
           a->pid_namespace == b->pid_namespace && memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

/* Unknown ids (zero) differ from nothing and equal nothing. */
static bool is_known(const uint8_t id[static SV_BOOT_ID_BYTES])
{
    static const uint8_t unknown[SV_BOOT_ID_BYTES];
    return memcmp(id, unknown, sizeof unknown) != 0;
}

/* Another boot of this machine has ended with everything in it; another machine may still run. */
static enum sv_process_state state_of_boot(const struct sv_process_id *id)
{
    uint8_t boot[SV_BOOT_ID_BYTES], machine[SV_BOOT_ID_BYTES];
    if (!is_known(id->boot) || !sv_boot_id(boot) || memcmp(boot, id->boot, sizeof boot) == 0)
        return SV_PROCESS_RUNS;
    bool is_here = is_known(id->machine) && read_id(machine_id, machine) &&
                   memcmp(machine, id->machine, sizeof machine) == 0;
    return is_here ? SV_PROCESS_GONE : SV_PROCESS_UNKNOWN;
}

enum sv_process_state sv_process_id_state(const struct sv_process_id *id)
{
    enum sv_process_state of_boot = state_of_boot(id);
    if (of_boot != SV_PROCESS_RUNS)
        return of_boot;
    if (id->pid_namespace != 0 && id->pid_namespace != own_namespace())
        return SV_PROCESS_UNKNOWN;
    if (id->start_ticks == 0)
        return SV_PROCESS_GONE;
    return sv_process_start_ticks(id->pid) == id->start_ticks ? SV_PROCESS_RUNS : SV_PROCESS_GONE;
}
