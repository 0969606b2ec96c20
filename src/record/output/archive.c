/* What is made of a finished recording: report and picture beside it (--out-dir), all of it in one
 * .tar.zst (--archive).
 *
 * Called by `stave record` when the trace has its name. Reports and pictures are made by stave's
 * own commands in processes of their own: what fails there costs that file, never the trace. The
 * archive is a tar of the POSIX kind (ustar, with pax records for long names and large files),
 * written here because five fields do not need a library; it grows under a temporary name and gets
 * its own when it is whole. */
#include "cli/console.h"
#include "core/base/buf.h"
#include "core/files/output.h"
#include "core/files/part_name.h"
#include "core/files/write_all.h"
#include "record/output/parts.h"
#include "record/session/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 512, CHUNK = 1 << 16, NAME_FITS = 100 };
#define SIZE_FITS ((uint64_t)1 << 33) /* eleven octal digits */

struct packed {
    char path[1200], name[300];
};

struct package {
    struct packed *files;
    size_t n, cap;
    char folder[1100]; /* where report and picture are made */
};

/* ---- tar ---- */

static void put_octal(char *to, size_t digits, uint64_t v)
{
    for (size_t i = digits; i-- > 0; v >>= 3)
        to[i] = (char)('0' + (v & 7));
}

static void put_header(struct sv_output *out, const char *name, char type, uint64_t size,
                       const struct stat *st)
{
    char h[BLOCK] = {0};
    size_t len = strlen(name);
    unsigned sum = 0;
    memcpy(h, name, len < NAME_FITS ? len : NAME_FITS);
    put_octal(h + 100, 7, type == 'x' ? 0644 : st->st_mode & 0777);
    put_octal(h + 108, 7, 0);
    put_octal(h + 116, 7, 0);
    put_octal(h + 124, 11, size < SIZE_FITS ? size : 0);
    put_octal(h + 136, 11, st->st_mtime > 0 ? (uint64_t)st->st_mtime : 0);
    memset(h + 148, ' ', 8);
    h[156] = type;
    memcpy(h + 257, "ustar", 6);
    memcpy(h + 263, "00", 2);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)h[i];
    put_octal(h + 148, 6, sum);
    h[154] = 0;
    sv_output_write(out, h, BLOCK);
}

static void put_padding(struct sv_output *out, uint64_t size)
{
    static const char zeros[BLOCK];
    size_t rest = (size_t)(size % BLOCK);
    sv_output_write(out, zeros, rest ? BLOCK - rest : 0);
}

/* "LEN key=value\n", where LEN counts itself. */
static void add_record(struct sv_buf *b, const char *key, const char *value)
{
    size_t body = strlen(key) + strlen(value) + 3, len = body;
    for (size_t before = 0; before != len;) {
        char digits[24];
        before = len;
        len = body + (size_t)snprintf(digits, sizeof digits, "%zu", before);
    }
    sv_buf_printf(b, "%zu %s=%s\n", len, key, value);
}

static void put_pax(struct sv_output *out, const char *name, const struct stat *st)
{
    struct sv_buf b;
    char size[24];
    sv_buf_init(&b, 1 << 16);
    snprintf(size, sizeof size, "%llu", (unsigned long long)st->st_size);
    if (strlen(name) > NAME_FITS)
        add_record(&b, "path", name);
    if ((uint64_t)st->st_size >= SIZE_FITS)
        add_record(&b, "size", size);
    if (b.len > 0) {
        put_header(out, "pax", 'x', b.len, st);
        sv_output_write(out, b.data, b.len);
        put_padding(out, b.len);
    }
    sv_buf_fini(&b);
}

/* As many bytes as the file has now: a log may grow meanwhile. */
static int put_content(struct sv_output *out, int fd, uint64_t size, const char *path,
                       struct sv_err *err)
{
    char chunk[CHUNK];
    for (uint64_t left = size; left > 0;) {
        ssize_t n = read(fd, chunk, left < sizeof chunk ? (size_t)left : sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return sv_err_sys(err, "--archive: %s", path);
        if (n == 0)
            return sv_err_set(err, SV_EIO, SV_NO_POS,
                              "--archive: %s became shorter while it was read", path);
        sv_output_write(out, chunk, (size_t)n);
        left -= (uint64_t)n;
        if (sv_output_failure(out, err) < 0)
            return err->code;
    }
    put_padding(out, size);
    return 0;
}

static int put_file(struct sv_output *out, const char *path, const char *name, struct sv_err *err)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        int code = fd < 0 ? sv_err_sys(err, "--archive: %s", path)
                          : sv_err_set(err, SV_EIO, SV_NO_POS,
                                       "--archive: %s is not a regular file", path);
        if (fd >= 0)
            close(fd);
        return code;
    }
    put_pax(out, name, &st);
    put_header(out, name, '0', (uint64_t)st.st_size, &st);
    int code = put_content(out, fd, (uint64_t)st.st_size, path, err);
    close(fd);
    return code;
}

static int write_archive(const struct package *p, const char *path, struct sv_err *err)
{
    static const char end[2 * BLOCK];
    struct sv_output *out;
    int code = sv_output_open(path, SV_OUTPUT_RENAME, SV_ZSTD, &out, err);
    for (size_t i = 0; code >= 0 && i < p->n; i++) {
        code = put_file(out, p->files[i].path, p->files[i].name, err);
        if (code < 0)
            sv_output_discard(out);
    }
    if (code < 0)
        return code;
    sv_output_write(out, end, sizeof end);
    return sv_output_close(out, err);
}

int sv_record_archive_check(struct sv_err *err)
{
    struct sv_buf b;
    struct sv_output *out;
    sv_buf_init(&b, 1 << 20);
    int code = sv_output_open_buf(&b, SV_ZSTD, &out, err);
    if (code >= 0)
        sv_output_discard(out);
    sv_buf_fini(&b);
    return code;
}

/* ---- report and picture ---- */

static void add_file(struct package *p, const char *top, const char *path, const char *name)
{
    p->files = sv_grow(p->files, &p->cap, p->n + 1, sizeof *p->files);
    snprintf(p->files[p->n].path, sizeof p->files[0].path, "%s", path);
    snprintf(p->files[p->n].name, sizeof p->files[0].name, "%.150s/%.140s", top, name);
    p->n++;
}

/* stave itself, with standard output in a file; 0: it did its work. */
static int run_self(const char *const *argv, const char *to)
{
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        unsetenv("STAVE_SESSION"); /* was for the command; the session has ended */
        int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
            _exit(SV_EXIT_OUTPUT);
        execv("/proc/self/exe", (char *const *)(const void *)argv);
        _exit(SV_EXIT_OUTPUT);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Makes one file of the package by `stave WORDS… TRACE`; it has its name only when it is whole. */
static void make_file(struct package *p, const struct sv_record_place *place, const char *name,
                      const char *const *words, bool by_option)
{
    char path[1200], part[1210];
    const char *argv[12] = {"stave"};
    size_t n = 1;
    snprintf(path, sizeof path, "%s/%s", p->folder, name);
    snprintf(part, sizeof part, "%s/part-%s", p->folder, name);
    for (; *words && n < 8; words++)
        argv[n++] = *words;
    argv[n++] = place->trace;
    if (by_option) {
        argv[n++] = "-o";
        argv[n++] = part;
    }
    bool is_made = run_self(argv, by_option ? "/dev/null" : part) == 0 && rename(part, path) == 0;
    if (is_made)
        add_file(p, place->name, path, name);
    else {
        unlink(part);
        sv_console_note("could not make %s", name);
    }
}

static void make_all(struct package *p, const struct sv_record_place *place)
{
    static const char *const text[] = {"report", "io", "-q", "--color", "never", NULL};
    static const char *const json[] = {"report", "io", "-q", "--json", NULL};
    static const char *const picture[] = {"plot", "timeline", "-q", NULL};
    make_file(p, place, "report.txt", text, false);
    make_file(p, place, "report.json", json, false);
    make_file(p, place, "timeline.png", picture, true);
}

/* ---- logs ---- */

static bool copy_file(const char *from, const char *to)
{
    char chunk[CHUNK];
    ssize_t n = 0;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool is_whole = out >= 0;
    while (is_whole && ((n = read(in, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)))
        is_whole = n < 0 || sv_write_all(out, chunk, (size_t)n);
    is_whole &= n == 0 && (out < 0 || close(out) == 0);
    if (in >= 0)
        close(in);
    if (out >= 0 && !is_whole)
        unlink(to);
    return is_whole;
}

static void add_logs(struct package *p, const struct sv_record_options *o,
                     const struct sv_record_place *place)
{
    for (size_t i = 0; i < o->use.logs.n; i++) {
        const char *path = o->use.logs.items[i], *slash = strrchr(path, '/');
        char name[160], copy[1200];
        snprintf(name, sizeof name, "log-%zu-%.120s", i + 1, slash ? slash + 1 : path);
        if (access(path, R_OK) != 0)
            continue; /* the recorder has reported it */
        if (!o->use.out_dir) {
            add_file(p, place->name, path, name);
            continue;
        }
        snprintf(copy, sizeof copy, "%.1000s/%s", place->folder, name);
        if (copy_file(path, copy))
            add_file(p, place->name, copy, name);
        else
            sv_console_note("could not copy %s", path);
    }
}

static void add_copies(struct package *p, const struct sv_record_options *o,
                       const struct sv_record_place *place)
{
    if (!o->use.copy_output)
        return;
    add_file(p, place->name, place->out_log, "stdout.log");
    add_file(p, place->name, place->err_log, "stderr.log");
}

/* Without --out-dir report and picture are made in a folder that goes away again. */
static int choose_folder(struct package *p, const struct sv_record_options *o,
                         const struct sv_record_place *place, struct sv_err *err)
{
    snprintf(p->folder, sizeof p->folder, "%s", place->folder);
    if (o->use.out_dir)
        return 0;
    snprintf(p->folder, sizeof p->folder, "%.1000s.XXXXXX", place->archive);
    return mkdtemp(p->folder) ? 0 : sv_err_sys(err, "--archive: cannot make a folder");
}

static void clear_folder(const struct package *p)
{
    size_t len = strlen(p->folder);
    for (size_t i = 0; i < p->n; i++)
        if (strncmp(p->files[i].path, p->folder, len) == 0 && p->files[i].path[len] == '/')
            unlink(p->files[i].path);
    rmdir(p->folder);
}

static const char *last_word(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* --rotate: the parts before the newest one, which are still there. */
static void add_parts(struct package *p, const struct sv_record_place *place, uint32_t first,
                      uint32_t newest)
{
    char path[1300];
    for (uint32_t i = first; i < newest; i++) {
        sv_parts_name(place->trace, i, path, sizeof path);
        if (access(path, R_OK) == 0)
            add_file(p, place->name, path, last_word(path));
    }
}

int sv_record_package(const struct sv_record_options *o, const struct sv_record_place *place,
                      uint32_t first, uint32_t newest, struct sv_err *err)
{
    struct stat st;
    if (!o->use.out_dir && !o->use.archive)
        return 0;
    struct package *p = sv_alloc(sizeof *p);
    int code = choose_folder(p, o, place, err);
    if (code >= 0) {
        add_file(p, place->name, place->trace, last_word(place->trace));
        add_parts(p, place, first, newest);
        add_copies(p, o, place);
        add_logs(p, o, place);
        make_all(p, place);
        if (o->use.archive)
            code = write_archive(p, place->archive, err);
        if (!o->use.out_dir)
            clear_folder(p);
    }
    if (code >= 0 && !sv_common.quiet) {
        char size[32];
        if (o->use.out_dir)
            sv_print(stderr, "  %s (%zu files)\n", place->folder, p->n);
        if (o->use.archive && stat(place->archive, &st) == 0)
            sv_print(stderr, "  %s (%s, %zu files)\n", place->archive,
                     sv_human_bytes(size, (uint64_t)st.st_size), p->n);
    }
    free(p->files);
    free(p);
    return code;
}
