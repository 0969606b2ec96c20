/* Programs that trace with libstave: they find the session by STAVE_SESSION in their environment,
 * the recorder empties their rings. Called by the recorder only. */
#include "cli/console.h"
#include "record/session/recorder.h"
#include "sdk/collect/collect.h"
#include "sdk/ring/session_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Calls come faster than events that people place: where there is much room for rings, they are
 * larger. */
static void enlarge_rings(const struct sv_recorder *r)
{
    struct statvfs room;
    if (statvfs(sv_collect_dir(r->collect), &room) == 0 &&
        (uint64_t)room.f_bavail * room.f_frsize >= (uint64_t)1 << 30)
        setenv("STAVE_BUFFER", "4M", 0);
}

/* For the library of --inject io: memory in which all processes note who wrote last to which pipe
 * (lib/inject/io/ends.c), and that nobody else sees forks and waits. It is ours, by our descriptor:
 * nothing is left of it. */
static void help_injected(const struct sv_recorder *r)
{
    enum { ENDS_BYTES = 2048 * 24 };
    char path[64];
    int fd = memfd_create("stave-ends", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, ENDS_BYTES) == 0) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), fd);
        setenv("STAVE_IO_ENDS", path, 1);
    } else if (fd >= 0) {
        close(fd);
    }
    if (r->system.kernel)
        return;
    setenv("STAVE_IO_ALONE", "1", 1);
    enlarge_rings(r);
}

static int open_session(struct sv_recorder *r, const char *dir, struct sv_err *err)
{
    return sv_collect_open(dir, r->options->out.path, r->output.part, r->dict, &r->report,
                           &r->collect, err);
}

/* Where no usual folder takes it (a full /dev/shm, Landlock), beside the trace: on a disk, but it
 * is there. */
static int open_session_beside(struct sv_recorder *r, const char *why)
{
    char dir[SV_PATH_MAX], here[SV_PATH_MAX] = "";
    struct sv_err err = {0};
    const char *out = r->options->out.path;
    bool is_relative = out[0] != '/';
    int n = is_relative && !getcwd(here, sizeof here)
                ? -1
                : snprintf(dir, sizeof dir, "%s%s%s.rings-%d", here, is_relative ? "/" : "", out,
                           (int)getpid());
    if (n < 0 || (size_t)n >= sizeof dir || open_session(r, dir, &err) < 0)
        return SV_EIO;
    sv_console_note("%s: programs' events wait in %s instead", why, dir);
    return 0;
}

void sv_record_sdk_open(struct sv_recorder *r)
{
    struct sv_err why = {0};
    if (r->options->live)
        return;
    if (open_session(r, NULL, &why) < 0 && open_session_beside(r, why.msg) < 0) {
        sv_console_note("without libstave's events: %s", why.msg);
        r->is_partial = true;
        sv_record_ladder_without_libraries(r);
        return;
    }
    sv_record_output_session(r, sv_collect_dir(r->collect));
    setenv("STAVE_SESSION", sv_collect_dir(r->collect), 1);
    unsetenv("STAVE_OUT");
    help_injected(r);
}

int sv_record_sdk_round(struct sv_recorder *r, bool is_last, struct sv_err *err)
{
    if (!r->collect)
        return 0;
    if (sv_inject_has("io") || sv_inject_has("locks")) /* their frames are addresses */
        sv_symbols_keep_ended(sv_decode_symbols(r->system.decode));
    r->meter.uncommitted += sv_collect_round(r->collect, is_last);
    if (!r->system.kernel) /* nobody says what is mapped later */
        sv_symbols_follow(sv_decode_symbols(r->system.decode), false);
    int code = sv_recorder_pull(
        r, sv_named_source(&r->collected, sv_collect_source(r->collect), r->system.decode), err);
    sv_symbols_forget_ended(sv_decode_symbols(r->system.decode));
    return code;
}

/* Unless the growing file is kept, nothing is left to recover. */
void sv_record_sdk_close(struct sv_recorder *r)
{
    if (r->collect)
        sv_collect_close(r->collect, r->output.is_kept);
    r->collect = NULL;
}
