/* Takes a line of strace apart. Called by the reader of strace's output with the text of a whole
 * call.
 *
 * Which argument means what is a table; calls that are not in it keep their name, result and
 * duration. */
#include "formats/logs/strace_call.h"

#include "formats/decimal.h"

#include <errno.h>
#include <string.h>

#define ARGUMENTS_MAX 8

/* A letter per argument: f descriptor, F the one that a copy writes to, d folder, p path, P second
 * path, n bytes asked for, o offset, l length, a address, - other. */
static const struct {
    const char *name, *arguments;
    enum sv_strace_kind kind;
} calls[] = {
    {"openat", "dp", SV_STRACE_OPEN},
    {"open", "p", SV_STRACE_OPEN},
    {"openat2", "dp", SV_STRACE_OPEN},
    {"creat", "p", SV_STRACE_OPEN},
    {"close", "f", SV_STRACE_CLOSE},
    {"dup", "f", SV_STRACE_DUP},
    {"dup2", "f", SV_STRACE_DUP},
    {"dup3", "f", SV_STRACE_DUP},
    {"read", "f-n", SV_STRACE_TRANSFER},
    {"write", "f-n", SV_STRACE_TRANSFER},
    {"pread64", "f-no", SV_STRACE_TRANSFER},
    {"pwrite64", "f-no", SV_STRACE_TRANSFER},
    {"readv", "f", SV_STRACE_TRANSFER},
    {"writev", "f", SV_STRACE_TRANSFER},
    {"preadv", "f--o", SV_STRACE_TRANSFER},
    {"pwritev", "f--o", SV_STRACE_TRANSFER},
    {"preadv2", "f--o", SV_STRACE_TRANSFER},
    {"pwritev2", "f--o", SV_STRACE_TRANSFER},
    {"sendfile", "Ff-n", SV_STRACE_TRANSFER},
    {"copy_file_range", "f-F-n", SV_STRACE_TRANSFER},
    {"splice", "f-F-n", SV_STRACE_TRANSFER},
    {"getdents64", "f-n", SV_STRACE_OTHER},
    {"mmap", "al--fo", SV_STRACE_OTHER},
    {"munmap", "al", SV_STRACE_OTHER},
    {"msync", "al", SV_STRACE_OTHER},
    {"madvise", "al", SV_STRACE_OTHER},
    {"mprotect", "al", SV_STRACE_OTHER},
    {"fsync", "f", SV_STRACE_OTHER},
    {"fdatasync", "f", SV_STRACE_OTHER},
    {"sync_file_range", "fol", SV_STRACE_OTHER},
    {"lseek", "fo", SV_STRACE_OTHER},
    {"ftruncate", "fl", SV_STRACE_OTHER},
    {"truncate", "pl", SV_STRACE_OTHER},
    {"fallocate", "f-ol", SV_STRACE_OTHER},
    {"mkdir", "p", SV_STRACE_OTHER},
    {"mkdirat", "dp", SV_STRACE_OTHER},
    {"rmdir", "p", SV_STRACE_OTHER},
    {"unlink", "p", SV_STRACE_OTHER},
    {"unlinkat", "dp", SV_STRACE_OTHER},
    {"rename", "pP", SV_STRACE_OTHER},
    {"renameat", "dp-P", SV_STRACE_OTHER},
    {"renameat2", "dp-P", SV_STRACE_OTHER},
    {"link", "pP", SV_STRACE_OTHER},
    {"symlink", "pP", SV_STRACE_OTHER},
    {"stat", "p", SV_STRACE_OTHER},
    {"lstat", "p", SV_STRACE_OTHER},
    {"fstat", "f", SV_STRACE_OTHER},
    {"newfstatat", "dp", SV_STRACE_OTHER},
    {"statx", "dp", SV_STRACE_OTHER},
    {"access", "p", SV_STRACE_OTHER},
    {"faccessat", "dp", SV_STRACE_OTHER},
    {"faccessat2", "dp", SV_STRACE_OTHER},
    {"readlink", "p", SV_STRACE_OTHER},
    {"readlinkat", "dp", SV_STRACE_OTHER},
    {"execve", "p", SV_STRACE_OTHER},
    {"clone", "", SV_STRACE_CLONE},
    {"clone3", "", SV_STRACE_CLONE},
    {"fork", "", SV_STRACE_CLONE},
    {"vfork", "", SV_STRACE_CLONE},
};

static const struct {
    const char *name;
    int number;
} errnos[] = {
#define E(name)     \
    {               \
#name, name \
    }
    E(EPERM),        E(ENOENT),     E(EINTR),       E(EIO),        E(ENXIO),     E(E2BIG),
    E(ENOEXEC),      E(EBADF),      E(ECHILD),      E(EAGAIN),     E(ENOMEM),    E(EACCES),
    E(EFAULT),       E(EBUSY),      E(EEXIST),      E(EXDEV),      E(ENODEV),    E(ENOTDIR),
    E(EISDIR),       E(EINVAL),     E(ENFILE),      E(EMFILE),     E(ENOTTY),    E(ETXTBSY),
    E(EFBIG),        E(ENOSPC),     E(ESPIPE),      E(EROFS),      E(EMLINK),    E(EPIPE),
    E(ERANGE),       E(ELOOP),      E(ESRCH),       E(EDQUOT),     E(ESTALE),    E(ENOTEMPTY),
    E(ENOSYS),       E(ENODATA),    E(ENOTSUP),     E(EOPNOTSUPP), E(EOVERFLOW), E(ENAMETOOLONG),
    E(ECONNREFUSED), E(ECONNRESET), E(EINPROGRESS), E(ETIMEDOUT),  E(ENOTSOCK),  E(ENOTCONN),
    E(EADDRINUSE),   E(EALREADY),   E(ECANCELED),   E(ENOTBLK),
#undef E
};

/* The number of an errno's name (Linux's, of all architectures but alpha, mips, parisc and sparc),
 * 0: not known. */
static int errno_number(struct sv_text name)
{
    for (size_t i = 0; i < sizeof errnos / sizeof *errnos; i++)
        if (sv_text_is(name, errnos[i].name))
            return errnos[i].number;
    return 0;
}

/* ---- the result ---- */

/* "<0.000012>" at the end, with the blanks before it. False: a malformed duration. */
static bool take_duration(struct sv_text *t, struct sv_strace_call *c)
{
    while (t->len && t->bytes[t->len - 1] == ' ')
        t->len--;
    if (t->len < 4 || t->bytes[t->len - 1] != '>')
        return true;
    const char *open = memrchr(t->bytes, '<', t->len), *end = t->bytes + t->len - 1;
    struct sv_text inside = {open ? open + 1 : end, open ? (uint32_t)(end - open - 1) : 0};
    bool is_apart = open && open > t->bytes && open[-1] == ' ';
    if (is_apart ? strspn(inside.bytes, "0123456789.+-aefinAEFIN") < inside.len
                 : !memchr(inside.bytes, '.', inside.len) ||
                       strspn(inside.bytes, "0123456789.") < inside.len)
        return true; /* another pair of angles: 3</path>, <unavailable> */
    c->has_duration = sv_decimal_ns(inside, 9, &c->dur_ns);
    t->len = (uint32_t)(open - t->bytes);
    return c->has_duration;
}

/* The '=' before the result: the last one after a closing bracket. NULL: none. */
static const char *find_result(struct sv_text t)
{
    for (const char *p = t.bytes + t.len; p > t.bytes;) {
        p = memrchr(t.bytes, '=', (size_t)(p - t.bytes));
        if (!p)
            return NULL;
        const char *q = p;
        while (q > t.bytes && q[-1] == ' ')
            q--;
        if (q > t.bytes && q[-1] == ')' && q < p)
            return p;
    }
    return NULL;
}

static void take_result(struct sv_fields f, struct sv_strace_call *c)
{
    struct sv_text value = sv_field_next(&f), name = sv_field_next(&f);
    uint64_t u;
    const char *angle = memchr(value.bytes, '<', value.len);
    if (angle) { /* -y: 3</path> */
        value.len = (uint32_t)(angle - value.bytes);
        c->fd_path = (struct sv_text){0};
    }
    if (sv_text_i64(value, &c->ret)) {
        c->has_ret = true;
        int number = c->ret == -1 ? errno_number(name) : 0;
        if (number)
            c->ret = -number;
    } else if (sv_text_u64(value, &u)) { /* an address */
        c->has_ret = u <= INT64_MAX;
        c->ret = (int64_t)(u & INT64_MAX);
    }
}

/* ---- arguments ---- */

/* The next argument up to a comma outside of quotes and brackets. */
static struct sv_text next_argument(struct sv_fields *f)
{
    int depth = 0;
    while (f->p < f->end && *f->p == ' ')
        f->p++;
    const char *start = f->p;
    bool is_quoted = false;
    for (; f->p < f->end; f->p++) {
        char ch = *f->p;
        if (is_quoted) {
            if (ch == '\\')
                f->p++;
            else
                is_quoted = ch != '"';
        } else if (ch == '"') {
            is_quoted = true;
        } else if (strchr("([{", ch)) {
            depth++;
        } else if (strchr(")]}", ch)) {
            depth--;
        } else if (ch == ',' && depth <= 0) {
            break;
        }
    }
    if (f->p > f->end)
        f->p = f->end;
    struct sv_text out = {start, (uint32_t)(f->p - start)};
    if (f->p < f->end)
        f->p++;
    return out;
}

static int digit_of(char c, int base)
{
    int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
    return v < base ? v : -1;
}

/* Octal or \x escapes of one byte; the bytes used. */
static size_t take_number_escape(const char *p, const char *end, char *out)
{
    bool is_hex = *p == 'x';
    size_t n = is_hex;
    int v = 0, base = is_hex ? 16 : 8, most = is_hex ? 2 : 3;
    for (int k = 0; k < most && p + n < end && digit_of(p[n], base) >= 0; k++)
        v = v * base + digit_of(p[n++], base);
    *out = (char)v;
    return n;
}

static struct sv_text unquote(struct sv_text t, struct sv_batch *b)
{
    if (t.len < 2 || t.bytes[0] != '"')
        return (struct sv_text){0};
    char *out = sv_arena_get(&b->arena, t.len, 1);
    const char *p = t.bytes + 1, *end = t.bytes + t.len;
    uint32_t n = 0;
    while (p < end && *p != '"') {
        if (*p != '\\' || p + 1 >= end) {
            out[n++] = *p++;
            continue;
        }
        static const char from[] = "ntrvf", into[] = "\n\t\r\v\f";
        const char *at = strchr(from, *++p);
        if (*p == 'x' || digit_of(*p, 8) >= 0)
            p += take_number_escape(p, end, &out[n++]);
        else
            out[n++] = at && *p ? into[at - from] : *p, p++;
    }
    return (struct sv_text){out, n};
}

/* 3, or 3</path> with strace -y. */
static bool take_fd(struct sv_text t, int64_t *fd, struct sv_text *path)
{
    const char *angle = memchr(t.bytes, '<', t.len);
    struct sv_text number = {t.bytes, angle ? (uint32_t)(angle - t.bytes) : t.len};
    if (angle && t.len > number.len + 2 && angle[1] == '/')
        *path = (struct sv_text){angle + 1, t.len - number.len - 2};
    return sv_text_i64(number, fd);
}

static void take_argument(char role, struct sv_text t, struct sv_batch *b, struct sv_strace_call *c)
{
    struct sv_text ignored = {0};
    switch (role) {
    case 'f': c->has_fd = take_fd(t, &c->fd, &c->fd_path); break;
    case 'F': c->has_fd2 = take_fd(t, &c->fd2, &c->path2); break;
    case 'd': c->has_dirfd = take_fd(t, &c->dirfd, &ignored); break;
    case 'p': c->path = unquote(t, b); break;
    case 'P': c->path2 = unquote(t, b); break;
    case 'n': c->has_requested = sv_text_i64(t, &c->requested); break;
    case 'o': {
        uint64_t u;
        c->has_offset = sv_text_i64(t, &c->offset);
        if (!c->has_offset && (c->has_offset = sv_text_u64(t, &u) && u <= INT64_MAX))
            c->offset = (int64_t)u;
        break;
    }
    case 'l': c->has_length = sv_text_i64(t, &c->length); break;
    case 'a': c->has_address = sv_text_u64(t, &c->address) && c->address != 0; break;
    default: break;
    }
}

bool sv_strace_parse(struct sv_text text, struct sv_batch *b, struct sv_strace_call *c)
{
    *c = (struct sv_strace_call){0};
    if (!take_duration(&text, c))
        return false;
    const char *open = memchr(text.bytes, '(', text.len), *equals = find_result(text);
    if (!open || open == text.bytes || open - text.bytes > 64 || !equals || equals < open)
        return false;
    c->name = (struct sv_text){text.bytes, (uint32_t)(open - text.bytes)};
    const char *end = equals;
    while (end > open && *end != ')')
        end--;
    take_result((struct sv_fields){equals + 1, text.bytes + text.len}, c);
    c->is_thread = sv_bytes_find(open, (size_t)(end - open), "CLONE_THREAD") != NULL;
    const char *roles = "";
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!sv_text_is(c->name, calls[i].name))
            continue;
        roles = calls[i].arguments;
        c->kind = calls[i].kind;
    }
    struct sv_fields f = {open + 1, end};
    for (int i = 0; i < ARGUMENTS_MAX && roles[i] && f.p < f.end; i++)
        take_argument(roles[i], next_argument(&f), b, c);
    if (c->has_dirfd && roles[0] == 'd' &&
        c->path.len == 0) { /* AT_EMPTY_PATH: the descriptor itself */
        c->has_fd = true;
        c->fd = c->dirfd;
    }
    return true;
}
