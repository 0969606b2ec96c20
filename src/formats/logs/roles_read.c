/* pids.json: what the processes of a run did, {"4054151": "master", "4054152": "worker 1"}.
 *
 * Opened through the table of formats. It has no events: it names processes. */
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/stream/json_members.h"
#include "formats/lines.h"

#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX 1048576u

static bool pid_of(struct sv_text t, int64_t *pid)
{
    return t.len && t.len < 11 && sv_text_i64(t, pid) && *pid >= 0;
}

/* How many roles are in it; -1: it is something else. */
static int count_roles(const uint8_t *p, size_t n)
{
    struct sv_members members = sv_members_of((const char *)p, n);
    int64_t pid;
    int count = 0;
    if (!members.is_object)
        return -1;
    for (struct sv_member m; sv_member_next(&members, &m);) {
        if (m.type != '"' || m.value.len == 0 || !pid_of(m.key, &pid))
            return -1;
        count++;
    }
    return members.is_bad ? -1 : count;
}

static int probe(const uint8_t *head, size_t n)
{
    size_t i = 0;
    while (i < n && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n'))
        i++;
    if (i == n || head[i] != '{' || sv_bytes_find((const char *)head, n, "\"ph\""))
        return 0;
    uint8_t *padded = sv_alloc(n + SV_JSON_PAD); /* the bytes after a head need not be readable */
    memcpy(padded, head, n);
    int count = count_roles(padded, n);
    free(padded);
    return count > 0 ? 95 : 0;
}

static int read_all(struct sv_lines *l, struct sv_batch *b, struct sv_err *err)
{
    int more = sv_input_need(l->in, FILE_BYTES_MAX, err);
    l->is_at_end = true;
    if (more < 0)
        return more;
    if (more > 0 || count_roles(l->in->data, l->in->len) < 0) {
        sv_report_add(l->source.report, SV_DAMAGE, l->kind->damaged, 1, 0,
                      "an object of up to 1 MiB, process numbers to texts");
        return 0;
    }
    struct sv_members members = sv_members_of((const char *)l->in->data, l->in->len);
    int64_t pid;
    for (struct sv_member m; sv_member_next(&members, &m);)
        if (pid_of(m.key, &pid))
            sv_lines_process(l, pid, sv_member_text(&m, b));
    return 0;
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct sv_lines),
    .max_events = 1,
    .gives = SV_HAS_NESTED,
    .damaged = "file that does not name processes",
    .read = read_all,
};

const struct sv_format sv_roles_format = {
    .name = "roles",
    .help = "the roles of processes, pids.json",
    .lacks = "events: it only names processes",
    .files = "`pids.json` of the DL benchmark tracing tools: an object, process numbers to roles",
    .times = "none",
    .probe = probe,
    .lines = &kind,
};
