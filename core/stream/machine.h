/* Which machine wrote a trace, as metadata: "hostname", "boot_id" and "machine" (the kind of processor, as uname says it).
 *
 * Host names repeat: cloned machines, containers, "localhost". The boot id does not, and is new after each start of the machine, so that files
 * with the same one share processes and clocks. Merge compares it first (model/merge.h). */
#ifndef SV_CORE_STREAM_MACHINE_H
#define SV_CORE_STREAM_MACHINE_H

#define SV_META_HOST    "hostname"
#define SV_META_BOOT    "boot_id"
#define SV_META_MACHINE "machine"

struct sv_dict;

/* Of this machine, now. For those who record here; what was only converted here happened elsewhere. */
void sv_machine_describe(struct sv_dict *dict);

#endif
