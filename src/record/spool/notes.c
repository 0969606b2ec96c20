/* See notes.h. A note is its struct, the length of its text and the text. Written by the scout,
 * asked by the decoder; read from files of killed recorders, too, so lengths are checked. */
#include "record/spool/notes.h"

#include "record/spool/kspool.h"

struct placed {
    struct sv_note note;
    uint64_t len;
};

static uint64_t key_of(struct sv_note n)
{
    return sv_mix64(sv_mix64(n.ns ^ (uint64_t)n.kind << 56) ^ (uint64_t)n.pid << 32 ^
                    (uint64_t)n.fd);
}

void sv_note_put(struct sv_buf *to, struct sv_note note, const char *text, size_t len)
{
    const struct placed p = {note, len};
    sv_buf_add(to, &p, sizeof p);
    sv_buf_add(to, text, len);
}

bool sv_notes_set(struct sv_notes *n, const uint8_t *bytes, size_t len, sv_notes_learn_fn *learn,
                  void *ctx)
{
    bool is_new;
    if (n->bytes.limit == 0)
        sv_buf_init(&n->bytes, SV_KSPOOL_ENTRY_MAX);
    sv_buf_clear(&n->bytes);
    sv_map_clear(&n->at);
    sv_buf_add(&n->bytes, bytes, len);
    for (size_t at = 0; at < len;) {
        struct placed p;
        if (len - at < sizeof p)
            return false;
        memcpy(&p, bytes + at, sizeof p);
        if (p.len > len - at - sizeof p)
            return false;
        if (p.note.kind >= SV_NOTE_PROCESS && learn)
            learn(ctx, &p.note, (const char *)bytes + at + sizeof p, p.len);
        *sv_map_add(&n->at, key_of(p.note), &is_new) = at + 1;
        at += sizeof p + p.len;
    }
    return true;
}

const char *sv_notes_find(const struct sv_notes *n, struct sv_note note, size_t *len)
{
    const uint64_t *at = n->at.n ? sv_map_find(&n->at, key_of(note)) : NULL;
    struct placed p;
    if (!at)
        return NULL;
    memcpy(&p, n->bytes.data + *at - 1, sizeof p);
    if (p.note.kind != note.kind || p.note.pid != note.pid || p.note.fd != note.fd ||
        p.note.ns != note.ns)
        return NULL;
    *len = p.len;
    return (const char *)n->bytes.data + *at - 1 + sizeof p;
}

void sv_notes_fini(struct sv_notes *n)
{
    sv_buf_fini(&n->bytes);
    sv_map_fini(&n->at);
}
