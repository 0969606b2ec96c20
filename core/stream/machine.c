/* Which machine: see machine.h. Called by the SDK's writer and the recorder before they write their
 * first event. */
#include "core/stream/machine.h"

#include "core/files/process_id.h"
#include "core/stream/dict.h"

#include <string.h>
#include <sys/utsname.h>

static void set_text(struct sv_dict *dict, const char *key, const char *value)
{
    sv_dict_set_meta(dict, key, value, strlen(value), false);
}

void sv_machine_describe(struct sv_dict *dict)
{
    struct utsname u;
    uint8_t id[SV_BOOT_ID_BYTES];
    char text[SV_BOOT_TEXT], pids[SV_PIDS_TEXT], times[SV_TIMES_TEXT];
    if (uname(&u) == 0) {
        set_text(dict, SV_META_HOST, u.nodename);
        set_text(dict, SV_META_MACHINE, u.machine);
    }
    if (sv_boot_id(id)) {
        sv_boot_text(id, text);
        set_text(dict, SV_META_BOOT, text);
    }
    if (sv_pids_text(pids))
        set_text(dict, SV_META_PIDS, pids);
    if (sv_times_text(times))
        set_text(dict, SV_META_TIMES, times);
}
