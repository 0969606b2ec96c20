/* Outputs of a session: patterns to names, names to sinks.
 *
 * Called by the session (names) and the writer (sinks). The SDK has its own short table of formats, since it needs the writers only and
 * must stay small. The growing file has the final name and ".part"; beside it a marker, ".session", leads `stave recover` to
 * the rings. */
#include "sdk/outputs.h"

#include "base/trusted.h"
#include "formats/formats.h"
#include "sdk/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef int sink_door(struct sv_output *, const struct sv_write_options *, struct sv_dict *,
                      struct sv_report *, struct sv_sink **, struct sv_err *);

static const struct {
    const char *suffix;
    sink_door *door;
    enum sv_compression whole; /* of the file */
    bool inside;               /* STAVE_COMPRESS compresses packets */
} outputs[] = {
    {".pftrace", sv_perfetto_sink, SV_PLAIN, true},
    {".perfetto-trace", sv_perfetto_sink, SV_PLAIN, true},
    {".perfetto", sv_perfetto_sink, SV_PLAIN, true},
    {".json", sv_chrome_sink, SV_PLAIN, false},
    {".json.gz", sv_chrome_sink, SV_GZIP, false},
    {".json.zst", sv_chrome_sink, SV_ZSTD, false},
};
enum { N_OUTPUTS = sizeof outputs / sizeof *outputs };

static int output_of(const char *path)
{
    size_t len = strlen(path);
    for (int i = 0; i < N_OUTPUTS; i++) {
        size_t n = strlen(outputs[i].suffix);
        if (len > n && strcmp(path + len - n, outputs[i].suffix) == 0)
            return i;
    }
    return -1;
}

static int compression_of(const char *name, enum sv_compression *out)
{
    static const char *const names[] = {
        [SV_PLAIN] = "none", [SV_GZIP] = "gzip", [SV_ZSTD] = "zstd"};
    if (!*name)
        name = "none";
    for (int i = SV_PLAIN; i <= SV_ZSTD; i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = (enum sv_compression)i;
            return 0;
        }
    }
    return -1;
}

const char *sv_output_check(const char *pattern, const char *compress)
{
    enum sv_compression c;
    if (compression_of(compress, &c) < 0)
        return "STAVE_COMPRESS is none, gzip or zstd";
    if (sv_stream_is(pattern))
        return sv_stream_check(pattern);
    int i = output_of(pattern);
    if (i < 0)
        return "expected a name that ends in .pftrace, .json or .json.gz";
    if (c != SV_PLAIN && !outputs[i].inside && outputs[i].whole != c)
        return "STAVE_COMPRESS needs the suffix of the compressed file, .json.gz";
    char name[SV_OUT_MAX];
    return sv_output_expand(pattern, 1, false, name, sizeof name);
}

static const char *rank(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = sv_trusted_getenv(names[i]);
        if (v && *v)
            return v;
    }
    return NULL;
}

static void host_name(char *to, size_t size)
{
    if (gethostname(to, size) != 0)
        snprintf(to, size, "localhost");
    to[size - 1] = '\0';
    for (char *c = to; *c; c++)
        if (*c == '/')
            *c = '_';
}

/* Before the suffix: t.pftrace → t.123.pftrace */
bool sv_output_number(char *path, size_t size, uint32_t value)
{
    char number[16];
    size_t len = strlen(path), n = (size_t)snprintf(number, sizeof number, ".%u", value);
    size_t suffix = strlen(outputs[output_of(path)].suffix);
    if (len + n >= size)
        return false;
    memmove(path + len - suffix + n, path + len - suffix, suffix + 1);
    memcpy(path + len - suffix, number, n);
    return true;
}

const char *sv_output_expand(const char *pattern, uint32_t pid, bool is_child, char *to,
                             size_t size)
{
    size_t at = 0;
    bool has_pid = false;
    if (sv_stream_is(pattern)) {
        is_child = false;           /* a stream of its own to the same place */
    } else if (pattern[0] != '/') { /* the program may change its directory */
        if (!getcwd(to, size - 1))
            return "the current directory is unknown";
        at = strlen(to);
        to[at++] = '/';
    }
    for (const char *p = pattern; *p; p++) {
        char piece[256] = {*p, '\0'};
        if (*p == '%') {
            p++;
            if (*p == 'p') {
                snprintf(piece, sizeof piece, "%u", pid);
                has_pid = true;
            } else if (*p == 'h') {
                host_name(piece, sizeof piece);
            } else if (*p == 'r') {
                snprintf(piece, sizeof piece, "%.64s", rank() ? rank() : "0");
            } else if (*p != '%') {
                return "after % comes p (process), h (host), r (rank) or %";
            }
        }
        size_t n = strlen(piece);
        if (at + n + 1 >= size)
            return "too long";
        memcpy(to + at, piece, n);
        at += n;
    }
    to[at] = '\0';
    if (is_child && !has_pid && !sv_output_number(to, size, pid))
        return "too long";
    return NULL;
}

/* ---- the growing name ---- */

static bool marker_name(const char *out, char *to, size_t size)
{
    return snprintf(to, size, "%s.session", out) < (int)size;
}

/* Does a living process write to it? */
static bool is_alive(const char *marker, char *dir, size_t size)
{
    dir[0] = '\0';
    int fd = open(marker, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, dir, size - 1);
    close(fd);
    dir[n > 0 ? n : 0] = '\0';
    dir[strcspn(dir, "\n")] = '\0';
    char path[SV_PATH_MAX + 16];
    struct sv_session_file s;
    snprintf(path, sizeof path, "%s/session", dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, &s, sizeof s);
    close(fd);
    return n == (ssize_t)sizeof s && s.magic == SV_SESSION_MAGIC &&
           sv_process_start_ticks(s.pid) == s.start_ticks;
}

/* What a dead process left keeps its data under another name, which its session learns. */
static void move_aside(const char *part, const char *marker, const char *dir)
{
    char to[SV_PATH_MAX], path[SV_PATH_MAX + 16];
    for (unsigned i = 1; i < 1000; i++) {
        if (snprintf(to, sizeof to, "%s.%u", part, i) >= (int)sizeof to)
            return;
        if (access(to, F_OK) == 0)
            continue;
        if (rename(part, to) != 0)
            return;
        snprintf(path, sizeof path, "%s/session", dir);
        int fd = *dir ? open(path, O_RDWR | O_CLOEXEC) : -1;
        if (fd >= 0) {
            sv_file_write(fd, to, strlen(to) + 1, offsetof(struct sv_session_file, part));
            close(fd);
        }
        if (*marker)
            unlink(marker);
        return;
    }
}

/* The marker appears whole or not at all, and only one process can make it: it is the claim. False: errno says why. */
static bool make_marker(const char *marker, const char *dir, uint32_t pid)
{
    char line[SV_PATH_MAX + 2], draft[SV_PATH_MAX + 16];
    int n = snprintf(line, sizeof line, "%s\n", dir);
    snprintf(draft, sizeof draft, "%s.%u", marker, pid);
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = sv_file_write(fd, line, (size_t)n, 0);
    int error = errno;
    close(fd);
    if (ok) {
        ok = link(draft, marker) == 0;
        error = errno;
        if (!ok && error != EEXIST) { /* a file system without links */
            ok = access(marker, F_OK) != 0 && rename(draft, marker) == 0;
            error = ok ? 0 : EEXIST;
        }
    }
    unlink(draft);
    errno = error;
    return ok;
}

static bool make_part(const char *part, const char *marker, struct sv_err *err)
{
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0) {
        close(fd);
        return true;
    }
    sv_err_sys(err, "cannot create");
    unlink(marker);
    return false;
}

bool sv_output_claim(char *out, size_t size, uint32_t pid, const char *dir, char *part,
                     size_t part_size, struct sv_err *err)
{
    char marker[SV_PATH_MAX], other[SV_PATH_MAX];
    struct stat st;
    for (int attempt = 0; attempt < 4; attempt++) {
        if (!marker_name(out, marker, sizeof marker) ||
            snprintf(part, part_size, "%s.part", out) >= (int)part_size) {
            sv_err_set(err, SV_EUSAGE, SV_NO_POS, "the name is too long");
            return false;
        }
        if (stat(out, &st) == 0 && S_ISDIR(st.st_mode)) {
            sv_err_set(err, SV_EIO, SV_NO_POS, "is a directory");
            return false;
        }
        if (make_marker(marker, dir, pid)) {
            if (stat(part, &st) == 0 && st.st_size > 0)
                move_aside(part, "", ""); /* its marker is gone, but it may be all that is left */
            return make_part(part, marker, err);
        }
        if (errno != EEXIST) {
            sv_err_sys(err, "cannot create");
            return false;
        }
        bool has_owner = is_alive(marker, other, sizeof other);
        if (has_owner && strcmp(other, dir) == 0)
            return make_part(part, marker,
                             err); /* claimed for us by the host whose guest we were */
        if (has_owner) {
            if (!sv_output_number(out, size, pid))
                break;
        } else if (access(part, F_OK) == 0) {
            move_aside(part, marker, other);
        } else {
            unlink(marker);
        }
    }
    sv_err_set(err, SV_EIO, SV_NO_POS, "others keep writing to it");
    return false;
}

void sv_output_release(const char *out)
{
    char marker[SV_PATH_MAX];
    if (marker_name(out, marker, sizeof marker))
        unlink(marker);
}

/* ---- sinks ---- */

int sv_output_sink(const char *out, const char *part, const char *compress, struct sv_dict *dict,
                   struct sv_report *report, struct sv_sink **sink, struct sv_err *err)
{
    int i = output_of(out);
    struct sv_write_options options = {0};
    struct sv_output *o;
    compression_of(compress, &options.compression);
    enum sv_compression whole = outputs[i].whole;
    if (!outputs[i].inside)
        options.compression = SV_PLAIN;
    int status = sv_output_open(part, SV_OUTPUT_DIRECT, whole, &o, err);
    if (status < 0)
        return status;
    status = outputs[i].door(o, &options, dict, report, sink, err);
    if (status < 0)
        sv_output_discard(o);
    return status;
}

bool sv_output_can_go_on(const char *out)
{
    return !sv_stream_is(out) && outputs[output_of(out)].whole == SV_PLAIN;
}

/* Packets of Perfetto follow each other whoever wrote them; JSON goes on with a comma. A file that is compressed as a whole cannot go on. */
int sv_output_rest_sink(const char *out, bool is_rest, struct sv_dict *dict,
                        struct sv_report *report, struct sv_buf *to, struct sv_sink **sink,
                        struct sv_err *err)
{
    const int i = output_of(out);
    struct sv_write_options options = {.dialect = is_rest && !outputs[i].inside ? "array" : NULL};
    struct sv_output *o;
    if (!sv_output_can_go_on(out))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "the file is compressed");
    int status = sv_output_open_buf(to, SV_PLAIN, &o, err);
    if (status < 0)
        return status;
    status = outputs[i].door(o, &options, dict, report, sink, err);
    if (status < 0)
        sv_output_discard(o);
    return status;
}

void sv_output_rest_join(const char *out, struct sv_buf *rest)
{
    if (outputs[output_of(out)].inside)
        return;
    if (rest->len == 0)
        sv_buf_str(rest, "\n]");
    else
        rest->data[0] = ','; /* it was the bracket of an array */
    while (rest->len > 0 && rest->data[rest->len - 1] != ']')
        rest->len--;
    sv_buf_str(rest, "}\n");
}

void sv_output_describe(struct sv_dict *dict, uint32_t pid)
{
    char text[512];
    host_name(text, 256);
    sv_dict_set_meta(dict, "hostname", text, strlen(text), false);
    if (rank())
        sv_dict_set_meta(dict, "rank", rank(), strlen(rank()), false);
    const char *command = sv_process && sv_process->session ? sv_process->session->command : "";
    sv_dict_set_meta(dict, "command", command, strlen(command), false);
    snprintf(text, sizeof text, "libstave %s", stave_version());
    sv_dict_set_meta(dict, "writer", text, strlen(text), false);
    int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : 0;
    if (fd >= 0)
        close(fd);
    sv_track t = sv_dict_process(dict, 0, pid);
    dict->tracks[t].name = sv_dict_str(dict, text, n > 1 ? (size_t)n - 1 : 0);
    dict->tracks[t].desc = sv_dict_cstr(dict, command);
    dict->tracks[t].is_described = true;
    sv_dict_touch(dict, t);
}
