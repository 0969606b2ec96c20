/* Notes: read and replaced as a whole. The file is this user's alone, never a link, and replaced by
 * renaming; the document is checked to be JSON and never looked into. */
#include "view/notes.h"

#include "core/base/json.h"
#include "core/files/output.h"
#include "core/stream/json_members.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOTES_MAX (1u << 20)

/* Whether it is one JSON value that ends where it should. */
static bool is_json(const char *p, size_t len)
{
    struct sv_members members = sv_members_of(p, len);
    for (struct sv_member m; sv_member_next(&members, &m);)
        if ((m.type == '{' || m.type == '[') && !is_json(m.value.bytes, m.value.len))
            return false;
    return !members.is_bad;
}

static bool read_file(const char *path, struct sv_buf *to)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool is_fine = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0 &&
                   (size_t)s.st_size <= NOTES_MAX && sv_buf_reserve(to, (size_t)s.st_size + 64);
    ssize_t n = is_fine ? read(fd, to->data, (size_t)s.st_size) : -1;
    close(fd);
    if (n <= 0)
        return false;
    memset(to->data + n, 0, 64);
    to->len = (size_t)n;
    return to->data[0] == '{' && is_json((const char *)to->data, to->len);
}

static void give(const char *path, struct sv_web_answer *a)
{
    struct sv_buf text;
    sv_buf_init(&text, NOTES_MAX + 128);
    sv_buf_str(&a->body, "{\"notes\":");
    if (read_file(path, &text))
        sv_buf_add(&a->body, text.data, text.len);
    else
        sv_buf_str(&a->body, "null");
    sv_buf_str(&a->body, ",\"kept\":true}");
    sv_buf_fini(&text);
}

static void keep(const char *path, struct sv_text notes, struct sv_web_answer *a)
{
    struct sv_output *out;
    struct sv_err err;
    sv_err_clear(&err);
    int code = sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &out, &err);
    if (code >= 0) {
        sv_output_write(out, notes.bytes, notes.len);
        code = sv_output_close(out, &err);
    }
    if (code >= 0) {
        sv_buf_str(&a->body, "{\"kept\":true}");
        return;
    }
    sv_buf_str(&a->body, "{\"kept\":false,\"why\":");
    sv_json_escape(&a->body, err.msg, strlen(err.msg));
    sv_buf_byte(&a->body, '}');
}

void sv_answer_notes(const char *path, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_member m;
    if (!q->is_post) {
        give(path, a);
        return;
    }
    struct sv_members members = sv_members_of((const char *)q->body, q->len);
    if (q->len && sv_member_next(&members, &m) && sv_member_is(&m, "notes") && m.type == '{' &&
        m.value.len <= NOTES_MAX && is_json(m.value.bytes, m.value.len))
        keep(path, m.value, a);
    else
        sv_web_error(a, 400, "expected {\"notes\": {…}} of at most 1 MiB");
}
