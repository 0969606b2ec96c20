/* Files that are known, but not read. Called by those who open inputs, before a format is chosen:
 * some look like one. */
#include "formats/foreign.h"

#include "core/base/wire.h"
#include "formats/tar.h"

#include <string.h>

static bool begins(const uint8_t *p, size_t n, const char *word)
{
    return n >= strlen(word) && memcmp(p, word, strlen(word)) == 0;
}

static bool is_graph(const uint8_t *head, size_t n)
{
    return begins(head, n, "digraph ") || begins(head, n, "graph ") ||
           begins(head, n, "strict digraph ") || begins(head, n, "strict graph ");
}

enum { XSPACE_PLANES = 1, XPLANE_ID = 1, XPLANE_NAME = 2 };

/* XSpace { repeated XPlane planes = 1; } XPlane { int64 id = 1; string name = 2; … }. As a Perfetto
 * trace it is packets without anything that Stave knows; there field 2 is a message, which a name
 * is not. */
static bool is_xspace(const uint8_t *head, size_t n)
{
    static const char *const names[] = {"/host:", "/device:", "Task Environment"};
    struct sv_pb file = sv_pb_at(head, n);
    uint64_t tag, len;
    if (!sv_pb_varint(&file, &tag) || tag != (XSPACE_PLANES << 3 | SV_PB_BYTES) ||
        !sv_pb_varint(&file, &len))
        return false;
    size_t have = (size_t)(file.end - file.p);
    struct sv_pb plane = sv_pb_at(file.p, len < have ? (size_t)len : have);
    for (struct sv_pb_field f; sv_pb_next(&plane, &f) && f.id <= XPLANE_NAME;) {
        if (f.id == XPLANE_ID && f.type == SV_PB_VARINT)
            continue;
        if (f.id != XPLANE_NAME || f.type != SV_PB_BYTES)
            return false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (begins(f.bytes, (size_t)f.u, names[i]))
                return true;
        return false;
    }
    return false;
}

/* Archives and compressions that are not unpacked here. */
static bool is_packed(const uint8_t *head, size_t n)
{
    return begins(head, n,
                  "\xfd"
                  "7zXZ") ||
           begins(head, n, "PK\x03\x04") ||
           (begins(head, n, "BZh") && n >= 10 && memcmp(head + 4, "1AY&SY", 6) == 0);
}

static const struct {
    bool (*is)(const uint8_t *head, size_t n);
    const char *what;
} files[] = {
    {is_xspace, "a profile of XLA (XSpace, xplane.pb), which Stave does not read: use the "
                "*.trace.json.gz beside it, or convert it to Chrome JSON by xprof "
                "(xprof.convert.raw_to_tool_data, tool trace_viewer)"},
    {is_graph, "a Graphviz graph, but not dag.dot as StarPU's starpu_fxt_tool writes it: that is "
               "the only kind that Stave reads"},
    {sv_tar_is, "an archive (tar), not a trace: 'stave import' reads the files in it"},
    {is_packed, "packed by xz, bzip2 or zip, which Stave does not unpack: unpack it first"},
};

const char *sv_foreign_file(const uint8_t *head, size_t n)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i].is(head, n))
            return files[i].what;
    return NULL;
}
