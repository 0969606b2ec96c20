/* A session directory from nowhere: sections for the files session, names and ring.0 of the process, then the same of a client. Looked at and
 * read as `stave recover` does. The session's own numbers are as given, so that most inputs are no session at all; the magic number and the
 * version are put right, and the process is one that is gone. */
#include "core/base/report.h"
#include "sdk/dead.h"
#include "tests/fuzz/mutate_sections.h"
#include "tests/fuzz/session_fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], client[80];

static void remove_dirs(void)
{
    rmdir(client);
    rmdir(dir);
}

static void make_dirs(void)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir, sizeof dir, "%s/stave-fuzz-XXXXXX", base);
    assert(mkdtemp(dir));
    snprintf(client, sizeof client, "%s/1-a", dir);
    assert(mkdir(client, 0700) == 0);
    atexit(remove_dirs);
}

static void put_file(const char *folder, const char *name, const void *bytes, size_t n, off_t size)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && ftruncate(fd, size) == 0);
    close(fd);
}

static void put_session(const char *folder, struct section s)
{
    struct sv_session_file f = {0};
    memcpy(&f, s.bytes, s.len < sizeof f ? s.len : sizeof f);
    f.magic = SV_SESSION_MAGIC;
    f.version = SV_LAYOUT_VERSION;
    f.process.start_ticks = 0;
    f.process.pid_namespace = 0;
    f.n_rings &= 3; /* thousands that are missing take time and show nothing */
    put_file(folder, "session", &f, sizeof f, SV_SESSION_BYTES);
}

static void put_ring(const char *folder, struct section s)
{
    static uint8_t bytes[SV_PAGE + SV_RING_BYTES_MIN];
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, s.bytes, s.len < sizeof bytes ? s.len : sizeof bytes);
    struct sv_ring *r = (struct sv_ring *)(void *)bytes;
    r->magic = SV_RING_MAGIC;
    r->size = SV_RING_BYTES_MIN;
    put_file(folder, "ring.0", bytes, sizeof bytes, sizeof bytes);
}

static void put_all(const char *folder, struct section *rest)
{
    put_session(folder, take_section(rest));
    struct section names = take_section(rest);
    put_file(folder, "names", names.bytes, names.len, (off_t)names.len);
    put_ring(folder, take_section(rest));
}

static void recover(void)
{
    struct sv_dead d;
    struct sv_err err = {0};
    struct sv_source *source;
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    struct sv_trace *trace = sv_trace_new(dict, &report, (size_t)256 << 20);
    assert(sv_dead_look(dir, &d, &err) == 0);
    assert(strlen(d.session.out) < sizeof d.session.out);
    assert(sv_dead_source(&d, dict, &report, &source, &err) == 0);
    read_all(source, trace, NULL);
    source->close(source);
    (void)sv_trace_finish(trace, &err);
    sv_trace_free(trace);
    sv_report_fini(&report);
    sv_dict_free(dict);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct section rest = {data, size};
    if (!dir[0])
        make_dirs();
    put_all(dir, &rest);
    if (rest.len > 0)
        put_all(client, &rest);
    recover();
    static const char *const files[] = {"session", "names", "ring.0"};
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
        snprintf(path, sizeof path, "%s/%s", client, files[i]);
        unlink(path);
    }
    return 0;
}

static const struct mutate_shape shapes[] = {
    {.first = sizeof(struct sv_session_file)}, MUTATE_NAMES_SHAPE(0), MUTATE_RING_SHAPE(SV_PAGE)};
MUTATE_BY_SECTIONS(shapes, 3, 3)
