/* Opening the end of a recording. Called by the viewer while it follows one. See tail.h. */
#include "files/tail.h"

#include "core/base/mem.h"
#include "core/perfetto/stave.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The marker's packet, as core/perfetto/write_block.c writes it: these bytes and the marker. */
#define HEAD       "\x0a\x13\xa2\x02\x10"
#define MARKER     HEAD SV_PF_SYNC_MARKER
#define MARKER_LEN (sizeof MARKER - 1)

enum { BLOCK = 1 << 20 };

bool sv_has_resync(int fd, uint64_t at)
{
    uint8_t bytes[MARKER_LEN];
    return pread(fd, bytes, sizeof bytes, (off_t)at) == (ssize_t)sizeof bytes &&
           memcmp(bytes, MARKER, MARKER_LEN) == 0;
}

bool sv_find_resync(int fd, uint64_t at, uint64_t *found)
{
    uint8_t *bytes = sv_alloc(BLOCK);
    bool is_found = false;
    for (ssize_t n; !is_found && (n = pread(fd, bytes, BLOCK, (off_t)at)) >= (ssize_t)MARKER_LEN;
         at += (uint64_t)n - (MARKER_LEN - 1)) {
        const uint8_t *place = memmem(bytes, (size_t)n, MARKER, MARKER_LEN);
        is_found = place != NULL;
        if (is_found)
            *found = at + (uint64_t)(place - bytes);
    }
    free(bytes);
    return is_found;
}

int sv_open_tail(const char *path, uint64_t bytes, struct sv_dict *dict, struct sv_opened *o,
                 struct sv_err *err)
{
    struct stat st;
    struct sv_piece piece = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is_large = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
                    (uint64_t)st.st_size > bytes;
    if (!is_large || !sv_find_resync(fd, (uint64_t)st.st_size - bytes, &piece.at)) {
        if (fd >= 0)
            close(fd);
        return sv_open_input(path, NULL, 0, dict, o, err);
    }
    piece.bytes = (uint64_t)st.st_size - piece.at;
    return sv_open_piece(path, fd, &piece, dict, o, err);
}
