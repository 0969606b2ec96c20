/* What a session's file says of its process. Apart from destination.c, whose other users have no
 * session. */
#include "core/stream/launched.h"
#include "core/stream/machine.h"
#include "sdk/session/destination.h"
#include "sdk/session/sdk.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void sv_destination_describe(struct sv_dict *dict, uint32_t pid)
{
    char text[512];
    sv_machine_describe(dict);
    sv_dict_describe_launcher(dict);
    const char *command = sv_process && sv_process->session ? sv_process->session->command : "";
    sv_dict_set_meta(dict, "command", command, strlen(command), false);
    snprintf(text, sizeof text, "libstave %s", stave_version());
    sv_dict_set_meta(dict, "writer", text, strlen(text), false);
    if (!sv_given_name(text)) {
        int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
        if (fd >= 0)
            close(fd);
        text[n > 1 ? n - 1 : 0] = '\0'; /* its newline */
    }
    sv_track t = sv_dict_process(dict, 0, pid);
    dict->tracks[t].name = sv_dict_cstr(dict, text);
    dict->tracks[t].desc = sv_dict_cstr(dict, command);
    dict->tracks[t].is_described = true;
    sv_dict_touch(dict, t);
}
