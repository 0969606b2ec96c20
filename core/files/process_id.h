/* Process identity: a pid is reused, and means different processes in different pid namespaces and
 * after a reboot.
 *
 * Written into sessions and claims of output files by their holders, compared by processes that
 * find them later. No memory is allocated, so that a traced program can call it from anywhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { SV_BOOT_ID_BYTES = 16 };

struct sv_process_id {
    uint8_t boot[SV_BOOT_ID_BYTES];    /* /proc/sys/kernel/random/boot_id; zero: unknown */
    uint8_t machine[SV_BOOT_ID_BYTES]; /* /etc/machine-id; zero: unknown */
    uint64_t pid_namespace;            /* inode of /proc/PID/ns/pid; 0: unknown */
    uint64_t start_ticks;              /* field 22 of /proc/PID/stat; 0: unknown */
    uint32_t pid;                      /* as seen in that namespace */
    uint32_t reserved;                 /* zero */
};

enum sv_process_state {
    SV_PROCESS_GONE,
    SV_PROCESS_RUNS,
    SV_PROCESS_UNKNOWN /* on another machine, or in a pid namespace that cannot be seen from here */
};

struct sv_process_id sv_process_id_self(void);
enum sv_process_state sv_process_id_state(const struct sv_process_id *id);
bool sv_process_id_equal(const struct sv_process_id *a, const struct sv_process_id *b);

/* Of this machine since it was started; false: unknown, `id` is zero. */
bool sv_boot_id(uint8_t id[static SV_BOOT_ID_BYTES]);
enum { SV_BOOT_TEXT = 37 };
void sv_boot_text(const uint8_t id[static SV_BOOT_ID_BYTES], char to[static SV_BOOT_TEXT]);

/* Whose pids this process sees: its pid namespace's inode and, where that number can be used again
 * (not for the initial one), when its first process began. False: unknown, the text is empty. */
enum { SV_PIDS_TEXT = 48 };
bool sv_pids_text(char to[static SV_PIDS_TEXT]);

/* What this process's time namespace adds to the machine's clocks: "MONOTONIC BOOTTIME" in
 * nanoseconds. False: nothing, which is the rule; the text is empty. Where the offsets cannot be
 * seen, the text is the namespace's number. */
enum { SV_TIMES_TEXT = 64 };
bool sv_times_offsets(int64_t *mono_ns, int64_t *boot_ns); /* false: none, or not to be seen */
bool sv_times_text(char to[static SV_TIMES_TEXT]);

/* When the job of this process began, CLOCK_REALTIME: the leader of its process group, or where
 * that has ended its parent, or itself. */
int64_t sv_process_job_start_ns(void);

/* Of a process in this namespace; 0: no such process, or one that has ended and was not yet waited
 * for. */
uint64_t sv_process_start_ticks(uint32_t pid);
