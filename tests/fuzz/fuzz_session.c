/* Arbitrary bytes as a session directory: sections for the files session and names and for head and
 * records of ring.0, then the same of a client. Looked at and read as `stave recover` does. The
 * session's own numbers are as given, so that most inputs are no session at all; the magic number
 * and the version are put right, and the process is one that is gone.
 *
 * Files are larger than what is interesting in them: of a session the words, TICKS ticks and the
 * begins of its texts are given, of a ring its words and SLICES slices of each mark. */
#include "core/base/report.h"
#include "sdk/recover/abandoned.h"
#include "tests/fuzz/mutate_sections.h"
#include "tests/fuzz/session_fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TICKS = 4, SLICES = 4, TEXT = 48 };

/* The files stay from input to input, and those of fixed sizes mapped: making them would be most of
 * the work. */
struct folder {
    char path[80];
    int names;
    uint8_t *session, *ring;
};

static struct folder dir, client;
static char aside[80]; /* where the client's folder is while there is no client */
static bool has_client = true;

static void remove_files(const char *folder)
{
    static const char *const files[] = {"session", "names", "ring.0"};
    for (size_t i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void remove_dirs(void)
{
    remove_files(has_client ? client.path : aside);
    remove_files(dir.path);
}

static int make_file(const struct folder *f, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert(fd >= 0);
    return fd;
}

static uint8_t *map_file(const struct folder *f, const char *name, size_t size)
{
    int fd = make_file(f, name);
    assert(ftruncate(fd, (off_t)size) == 0);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert(at != MAP_FAILED);
    close(fd);
    return at;
}

static void make_folder(struct folder *f)
{
    f->session = map_file(f, "session", SV_SESSION_BYTES);
    f->names = make_file(f, "names");
    f->ring = map_file(f, "ring.0", SV_PAGE + SV_RING_BYTES_MIN);
}

static void make_dirs(void)
{
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(dir.path, sizeof dir.path, "%s/stave-fuzz-XXXXXX", base);
    assert(mkdtemp(dir.path));
    snprintf(client.path, sizeof client.path, "%.60s/1-a", dir.path);
    snprintf(aside, sizeof aside, "%.60s-aside", dir.path);
    assert(mkdir(client.path, 0700) == 0);
    atexit(remove_dirs);
    make_folder(&dir);
    make_folder(&client);
}

static void set_client(bool is_there)
{
    if (is_there != has_client)
        assert(rename(has_client ? client.path : aside, is_there ? client.path : aside) == 0);
    has_client = is_there;
}

static void take(struct section *s, void *to, size_t n)
{
    size_t have = s->len < n ? s->len : n;
    memcpy(to, s->bytes, have);
    *s = (struct section){s->bytes + have, s->len - have};
}

/* A text that fills its place when its first bytes have no end. */
static void take_text(struct section *s, char *to, size_t n)
{
    char begin[TEXT] = {0};
    take(s, begin, n < TEXT ? n : TEXT);
    memset(to, begin[0], n);
    memcpy(to, begin, n < TEXT ? n : TEXT);
}

static void put_session(struct folder *to, struct section s)
{
    struct sv_session_file f = {0};
    take(&s, &f, offsetof(struct sv_session_file, ticks) + TICKS * sizeof f.ticks[0]);
    take_text(&s, f.out, sizeof f.out);
    take_text(&s, f.part, sizeof f.part);
    take_text(&s, f.command, sizeof f.command);
    take_text(&s, f.name, sizeof f.name);
    take_text(&s, f.more, sizeof f.more);
    f.magic = SV_SESSION_MAGIC;
    f.version = SV_LAYOUT_VERSION;
    f.process.start_ticks = 0;
    f.process.pid_namespace = 0;
    f.n_rings &= 3; /* thousands that are missing take time and show nothing */
    memcpy(to->session, &f, sizeof f);
    struct sv_ringless page = {0};
    take(&s, &page, sizeof page);
    memcpy(to->session + SV_RINGLESS_AT, &page, sizeof page);
}

static void put_ring(struct folder *to, struct section head, struct section records)
{
    struct sv_ring *r = (struct sv_ring *)(void *)to->ring;
    memset(to->ring, 0, SV_PAGE + SV_RING_BYTES_MIN);
    take(&head, r, offsetof(struct sv_ring, mark));
    for (int i = 0; i < 2; i++)
        take(&head, &r->mark[i],
             offsetof(struct sv_mark, slices) + SLICES * sizeof r->mark[i].slices[0]);
    take(&records, to->ring + SV_PAGE, SV_RING_BYTES_MIN);
    r->magic = SV_RING_MAGIC;
    r->version = SV_LAYOUT_VERSION;
    r->size = SV_RING_BYTES_MIN;
}

static void put_all(struct folder *to, struct section *rest)
{
    put_session(to, take_section(rest));
    struct section names = take_section(rest);
    assert(pwrite(to->names, names.bytes, names.len, 0) == (ssize_t)names.len);
    assert(ftruncate(to->names, (off_t)names.len) == 0);
    struct section head = take_section(rest);
    put_ring(to, head, take_section(rest));
}

static void recover(void)
{
    struct sv_abandoned d;
    struct sv_err err = {0};
    struct sv_source *source;
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    struct sv_trace *trace = sv_trace_new(dict, &report, (size_t)256 << 20);
    assert(sv_abandoned_look(dir.path, &d, &err) == 0);
    assert(strlen(d.session.out) < sizeof d.session.out);
    assert(sv_abandoned_source(&d, dict, &report, &source, &err) == 0);
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
    if (!dir.path[0])
        make_dirs();
    put_all(&dir, &rest);
    set_client(rest.len > 0);
    if (has_client)
        put_all(&client, &rest);
    recover();
    return 0;
}

static const struct mutate_shape shapes[] = {{.first = sizeof(struct sv_session_file)},
                                             MUTATE_NAMES_SHAPE(0),
                                             {.first = sizeof(struct sv_ring)},
                                             MUTATE_RING_SHAPE(0)};
MUTATE_BY_SECTIONS(shapes, 4, 4)
