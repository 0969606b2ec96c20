/* The mode of recordings: see recording_mode.h. Called whenever such a file is created. */
#include "core/files/recording_mode.h"

#include "core/files/trusted.h"

#include <stdlib.h>
#include <sys/stat.h>

bool sv_recording_mode_parse(const char *text, mode_t *mode)
{
    char *end;
    unsigned long value = *text >= '0' && *text <= '7' ? strtoul(text, &end, 8) : 0;
    if ((value & ~0644ul) != 0 || (value & 0600) != 0600 || *end != '\0')
        return false; /* what others can write is not believed by recovery */
    *mode = (mode_t)value;
    return true;
}

mode_t sv_recording_mode(void)
{
    const char *text = sv_trusted_getenv("STAVE_MODE");
    mode_t mode = 0600;
    if (text)
        sv_recording_mode_parse(text, &mode);
    return mode;
}

mode_t sv_recording_umask(void)
{
    return umask(0777 & ~(sv_recording_mode() | 0100));
}
