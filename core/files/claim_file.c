/* The marker of a claim as text, and finding markers: see claim.h.
 *
 * Called by claim.c, which makes and removes markers, and by code that looks for claims of others
 * (`stave recover`, the SDK). What is read here was written by this user, perhaps by another
 * version or by hand: every line is checked, nothing is believed past SV_CLAIM_BYTES_MAX. */
#include "core/files/claim_file.h"
#include "core/files/out_name.h"

#include "core/base/utf8.h"
#include "core/files/trusted.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_LINE "stave-claim 1\n"
#define WHOLE_KEY  "whole "
enum { WHOLE_DIGITS = 20 };

static const char *const kinds[] = {
    [SV_CLAIM_PROGRAM] = "program",
    [SV_CLAIM_RECORDER] = "recorder",
    [SV_CLAIM_LISTENER] = "listener",
};

/* ---- names ---- */

bool sv_claim_names(struct sv_claim *c, const char *out, unsigned number)
{
    char tail[16] = "";
    *c = (struct sv_claim){.number = number, .fd = -1, .whole_bytes = SV_CLAIM_UNKNOWN};
    if (number)
        snprintf(tail, sizeof tail, ".%u", number);
    return snprintf(c->out, sizeof c->out, "%s", out) < (int)sizeof c->out &&
           snprintf(c->part, sizeof c->part, "%s" SV_PART_SUFFIX "%s", out, tail) <
               (int)sizeof c->part &&
           snprintf(c->marker, sizeof c->marker, "%s" SV_CLAIM_SUFFIX "%s", out, tail) <
               (int)sizeof c->marker;
}

struct sv_claim_found sv_claim_see(const struct stat *st)
{
    return (struct sv_claim_found){.is_known = true,
                                   .exists = true,
                                   .device = st->st_dev,
                                   .inode = st->st_ino,
                                   .size = (uint64_t)st->st_size,
                                   .changed_s = st->st_ctim.tv_sec,
                                   .changed_ns = st->st_ctim.tv_nsec};
}

/* ---- writing ---- */

/* Control characters would be obeyed by a terminal, or end the line. */
static void make_safe(char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0, n; i < len; i += n) {
        n = sv_utf8_length(text + i, len - i);
        unsigned char c = (unsigned char)text[i];
        bool is_control = c < 32 || c == 127 ||
                          (n == 2 && c == 0xc2 && (text[i + 1] & 0xe0) == 0x80);
        if (n == 0 || is_control) {
            n = n ? n : 1;
            memset(text + i, '?', n);
        }
    }
}

void sv_claim_command_of(uint32_t pid, char *to, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, to, size - 1) : 0;
    if (fd >= 0)
        close(fd);
    to[n > 0 ? n : 0] = '\0';
    for (ssize_t i = 0; i + 1 < n; i++)
        if (to[i] == '\0')
            to[i] = ' ';
    make_safe(to);
}

static void id_text(const uint8_t id[static SV_BOOT_ID_BYTES], char to[static SV_BOOT_TEXT])
{
    static const uint8_t unknown[SV_BOOT_ID_BYTES];
    if (memcmp(id, unknown, sizeof unknown) == 0)
        snprintf(to, SV_BOOT_TEXT, "unknown");
    else
        sv_boot_text(id, to);
}

int sv_claim_text(const struct sv_claim *c, char *to, size_t size)
{
    char boot[SV_BOOT_TEXT], machine[SV_BOOT_TEXT], whole[64] = "", found[128] = "none";
    id_text(c->holder.boot, boot);
    id_text(c->holder.machine, machine);
    if (c->whole_bytes != SV_CLAIM_UNKNOWN)
        snprintf(whole, sizeof whole, WHOLE_KEY "%0*" PRIu64 "\n", WHOLE_DIGITS, c->whole_bytes);
    if (c->found.exists)
        snprintf(found, sizeof found, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64,
                 c->found.device, c->found.inode, c->found.size, c->found.changed_s,
                 c->found.changed_ns);
    if (strchr(c->session, '\n'))
        return -1;
    int n = snprintf(to, size,
                     FIRST_LINE "%skind %s\npid %" PRIu32 "\nstart %" PRIu64
                                "\npid-namespace %" PRIu64 "\nboot %s\nmachine %s\nfound %s\n"
                                "segment %" PRIu32 "\nsession %s\ncommand %s\n",
                     whole, kinds[c->kind], c->holder.pid, c->holder.start_ticks,
                     c->holder.pid_namespace, boot, machine, found, c->segment, c->session,
                     c->command);
    return n < (int)size ? n : -1;
}

/* In place: the number always has the same width. */
void sv_claim_whole(struct sv_claim *c, uint64_t bytes)
{
    char digits[WHOLE_DIGITS + 1];
    c->whole_bytes = bytes;
    snprintf(digits, sizeof digits, "%0*" PRIu64, WHOLE_DIGITS, bytes);
    if (c->fd >= 0 &&
        pwrite(c->fd, digits, WHOLE_DIGITS, sizeof FIRST_LINE - 1 + sizeof WHOLE_KEY - 1) < 0)
        return; /* the older number is true, too */
}

/* ---- reading ---- */

static bool read_number(const char **at, uint64_t *to)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    errno = 0;
    *to = strtoull(*at, &end, 10);
    *at = end;
    return errno == 0;
}

static bool only_number(const char *text, uint64_t max, uint64_t *to)
{
    return read_number(&text, to) && *text == '\0' && *to <= max;
}

static bool read_id(const char *text, uint8_t id[static SV_BOOT_ID_BYTES])
{
    char back[SV_BOOT_TEXT];
    memset(id, 0, SV_BOOT_ID_BYTES);
    if (strcmp(text, "unknown") == 0)
        return true;
    unsigned n = 0;
    for (const char *c = text; *c && n < 2 * SV_BOOT_ID_BYTES; c++) {
        if (*c == '-')
            continue;
        if (!isxdigit((unsigned char)*c) || isupper((unsigned char)*c))
            return false;
        int value = isdigit((unsigned char)*c) ? *c - '0' : *c - 'a' + 10;
        id[n / 2] = (uint8_t)(id[n / 2] << 4 | value);
        n++;
    }
    sv_boot_text(id, back);
    return strcmp(back, text) == 0;
}

static bool read_found(const char *text, struct sv_claim_found *f)
{
    uint64_t v[5];
    *f = (struct sv_claim_found){.is_known = true};
    if (strcmp(text, "none") == 0)
        return true;
    for (int i = 0; i < 5; i++)
        if (!read_number(&text, &v[i]) || (i < 4 ? *text++ != ' ' : *text != '\0'))
            return false;
    f->exists = true;
    f->device = v[0];
    f->inode = v[1];
    f->size = v[2];
    f->changed_s = (int64_t)v[3];
    f->changed_ns = (int64_t)v[4];
    return true;
}

static bool read_text(const char *text, char *to, size_t size)
{
    return snprintf(to, size, "%s", text) < (int)size;
}

static bool read_kind(const char *text, enum sv_claim_kind *kind)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i], text) == 0) {
            *kind = (enum sv_claim_kind)i;
            return true;
        }
    return false;
}

enum key {
    WHOLE,
    KIND,
    PID,
    START,
    NAMESPACE,
    BOOT,
    MACHINE,
    FOUND,
    SEGMENT,
    SESSION,
    COMMAND,
    N_KEYS
};
static const char *const keys[N_KEYS] = {"whole",         "kind",    "pid",     "start",
                                         "pid-namespace", "boot",    "machine", "found",
                                         "segment",       "session", "command"};
#define NEEDED (1u << KIND | 1u << PID | 1u << START | 1u << NAMESPACE | 1u << BOOT | 1u << MACHINE)

static bool take_value(struct sv_claim *c, enum key key, const char *text)
{
    uint64_t n = 0;
    bool ok = true;
    switch (key) {
    case WHOLE: return only_number(text, UINT64_MAX, &c->whole_bytes); /* or SV_CLAIM_UNKNOWN */
    case KIND: return read_kind(text, &c->kind);
    case PID:
        ok = only_number(text, INT32_MAX, &n) && n > 0;
        c->holder.pid = (uint32_t)n;
        return ok;
    case START: return only_number(text, UINT64_MAX, &c->holder.start_ticks);
    case NAMESPACE: return only_number(text, UINT64_MAX, &c->holder.pid_namespace);
    case BOOT: return read_id(text, c->holder.boot);
    case MACHINE: return read_id(text, c->holder.machine);
    case FOUND: return read_found(text, &c->found);
    case SEGMENT:
        ok = only_number(text, UINT32_MAX, &n);
        c->segment = (uint32_t)n;
        return ok;
    case SESSION: return (!*text || *text == '/') && read_text(text, c->session, sizeof c->session);
    case COMMAND:
        ok = read_text(text, c->command, sizeof c->command);
        make_safe(c->command);
        return ok;
    case N_KEYS: break;
    }
    return false;
}

/* One line without its end. Keys that this version does not know belong to a newer one. */
static bool take_line(struct sv_claim *c, char *line, unsigned *seen)
{
    char *value = strchr(line, ' ');
    if (!value)
        return false;
    *value++ = '\0';
    for (unsigned i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i], line) != 0)
            continue;
        bool is_second = *seen & 1u << i;
        *seen |= 1u << i;
        return !is_second && take_value(c, (enum key)i, value);
    }
    return true;
}

bool sv_claim_parse(struct sv_claim *c, char *text, size_t len)
{
    unsigned seen = 0;
    if (len < sizeof FIRST_LINE - 1 || memcmp(text, FIRST_LINE, sizeof FIRST_LINE - 1) != 0 ||
        text[len - 1] != '\n' || strlen(text) != len)
        return false;
    for (char *at = text + sizeof FIRST_LINE - 1, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        *end = '\0';
        if (!take_line(c, at, &seen))
            return false;
    }
    return (seen & NEEDED) == NEEDED;
}

/* Where markers are made by link(), they have two names for a moment. */
static bool is_being_made(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           st.st_nlink == 2;
}

static int open_marker(const char *path, int flags)
{
    for (int attempt = 0;; attempt++) {
        int fd = sv_trusted_file(AT_FDCWD, path, flags, SV_TRUST_OWN, 0);
        if (fd >= 0 || errno != EPERM || attempt == 20 || !is_being_made(path))
            return fd;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static enum sv_claim_state read_marker(struct sv_claim *c, int flags)
{
    char text[SV_CLAIM_BYTES_MAX + 1];
    struct stat st;
    c->fd = open_marker(c->marker, flags);
    if (c->fd < 0)
        return errno == ENOENT                               ? SV_CLAIM_NONE
               : sv_trusted_failed(errno) && errno != EACCES ? SV_CLAIM_UNREADABLE
                                                             : SV_CLAIM_FOREIGN;
    ssize_t n = fstat(c->fd, &st) == 0 ? read(c->fd, text, sizeof text - 1) : -1;
    if (n < 0)
        return SV_CLAIM_UNREADABLE;
    if (n == 0 || n == SV_CLAIM_BYTES_MAX)
        return SV_CLAIM_DAMAGED;
    c->file = sv_claim_see(&st);
    text[n] = '\0';
    return sv_claim_parse(c, text, (size_t)n) ? SV_CLAIM_THERE : SV_CLAIM_DAMAGED;
}

enum sv_claim_state sv_claim_open(const char *out, unsigned number, int flags, struct sv_claim *c)
{
    return sv_claim_names(c, out, number) ? read_marker(c, flags) : SV_CLAIM_NONE;
}

static enum sv_claim_state read_numbered(const char *out, unsigned number, struct sv_claim *c)
{
    enum sv_claim_state state = sv_claim_open(out, number, O_RDONLY, c);
    sv_claim_keep(c);
    return state;
}

enum sv_claim_state sv_claim_read(const char *out, struct sv_claim *c)
{
    return read_numbered(out, 0, c);
}

void sv_claim_keep(struct sv_claim *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

/* ---- all of a name ---- */

/* NAME.session.N (or another suffix): N, and 0 for everything else. */
static unsigned number_of(const char *entry, const char *name, const char *suffix)
{
    size_t n_name = strlen(name), n_suffix = strlen(suffix);
    uint64_t n;
    if (strncmp(entry, name, n_name) != 0 || strncmp(entry + n_name, suffix, n_suffix) != 0)
        return 0;
    const char *at = entry + n_name + n_suffix;
    return at[0] == '.' && at[1] != '0' && only_number(at + 1, SV_CLAIM_NUMBER_MAX, &n)
               ? (unsigned)n
               : 0;
}

/* The highest number below `below`; 0: none. */
static unsigned next_number(DIR *folder, const char *name, const char *suffix, unsigned below)
{
    unsigned best = 0;
    rewinddir(folder);
    for (const struct dirent *e; (e = readdir(folder));) {
        unsigned n = number_of(e->d_name, name, suffix);
        if (n > best && n < below)
            best = n;
    }
    return best;
}

static DIR *open_folder_of(const char *out)
{
    char folder[SV_CLAIM_PATH_MAX] = ".";
    const char *slash = strrchr(out, '/');
    if (slash && snprintf(folder, sizeof folder, "%.*s", slash == out ? 1 : (int)(slash - out),
                          out) >= (int)sizeof folder)
        return NULL;
    return opendir(folder);
}

unsigned sv_claim_last_number(const char *out)
{
    DIR *folder = open_folder_of(out);
    if (!folder)
        return 0;
    unsigned markers = next_number(folder, sv_base_name(out), SV_CLAIM_SUFFIX, UINT_MAX);
    unsigned parts = next_number(folder, sv_base_name(out), SV_PART_SUFFIX, UINT_MAX);
    closedir(folder);
    return markers > parts ? markers : parts;
}

int sv_claims_each(const char *out,
                   int (*visit)(void *ctx, const struct sv_claim *c, enum sv_claim_state state),
                   void *ctx)
{
    struct sv_claim c;
    enum sv_claim_state state = sv_claim_read(out, &c);
    int status = state == SV_CLAIM_NONE ? 0 : visit(ctx, &c, state);
    DIR *folder = status == 0 ? open_folder_of(out) : NULL;
    unsigned number = SV_CLAIM_NUMBER_MAX + 1;
    while (folder && status == 0 &&
           (number = next_number(folder, sv_base_name(out), SV_CLAIM_SUFFIX, number)) > 0) {
        state = read_numbered(out, number, &c);
        if (state != SV_CLAIM_NONE)
            status = visit(ctx, &c, state);
    }
    if (folder)
        closedir(folder);
    return status;
}

struct search {
    const char *session;
    struct sv_claim *to;
};

static int is_of_session(void *ctx, const struct sv_claim *c, enum sv_claim_state state)
{
    const struct search *s = ctx;
    if (state != SV_CLAIM_THERE || strcmp(c->session, s->session) != 0)
        return 0;
    *s->to = *c;
    return 1;
}

bool sv_claim_of_session(const char *out, const char *session, struct sv_claim *c)
{
    struct search s = {session, c};
    return session[0] && sv_claims_each(out, is_of_session, &s) == 1;
}
