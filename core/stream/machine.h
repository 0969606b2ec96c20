/* Which machine wrote a trace, as metadata: "hostname", "boot_id", "pid_namespace", "time_offsets"
 * (where a time namespace moved its clocks) and "machine" (the kind of processor, as uname says
 * it).
 *
 * Host names repeat: cloned machines, containers, "localhost". The boot id does not, and is new
 * after each start of the machine, so that files with the same one share clocks, and processes if
 * their pids are of the same namespace: in each container the first process is number 1. Merge
 * compares both (clocks/hosts.h). */
#pragma once

#define SV_META_HOST    "hostname"
#define SV_META_BOOT    "boot_id"
#define SV_META_PIDS    "pid_namespace"
#define SV_META_TIMES   "time_offsets"
#define SV_META_MACHINE "machine"
/* A part of a recording (files/rotation.h): the recording, the number of the part from 1 on, and
 * when it began, as "ID NUMBER NS". */
#define SV_META_ROTATION "stave.rotation"
#define SV_META_BUILD_ID "build_id."  /* its file follows; the value is its build id */
#define SV_ARG_PART      "stave.part" /* of what goes on in another part: its number */

struct sv_dict;

/* Of this machine, now. For those who record here; what was only converted here happened
 * elsewhere. */
void sv_machine_describe(struct sv_dict *dict);
