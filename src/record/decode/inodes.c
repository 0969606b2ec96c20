/* The table of inodes. Called by the decoder for each miss and each fault; holds a reference to
 * every path that it knows.
 *
 * The maps of a large process are thousands of lines, so they are read once for each program that
 * runs, however often it forks.
 *
 * A file that is deleted and whose number is used again keeps the old path until a call on a
 * descriptor says otherwise. */
#include "record/decode/inodes.h"
#include "record/sample/procfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { MAPS_BYTES = 4 << 20 };

bool sv_inodes_has(const struct sv_inodes *x, uint32_t device, uint64_t inode)
{
    return sv_map_find(&x->numbers, sv_inodes_key(device, inode)) != NULL;
}

void sv_inodes_fini(struct sv_inodes *x, struct sv_tree *t)
{
    for (size_t i = 0; i < x->n; i++)
        sv_file_put(t, x->files[i]);
    free(x->files);
    sv_map_fini(&x->numbers);
    sv_map_fini(&x->asked);
}

void sv_inodes_learn(struct sv_inodes *x, struct sv_tree *t, uint32_t device, uint64_t inode,
                     struct sv_file *f)
{
    if (inode != 0)
        sv_inodes_learn_key(x, t, sv_inodes_key(device, inode), f);
}

void sv_inodes_learn_key(struct sv_inodes *x, struct sv_tree *t, uint64_t key, struct sv_file *f)
{
    bool is_new;
    if (x->n >= SV_INODES_MAX && !sv_map_find(&x->numbers, key))
        return;
    uint64_t *at = sv_map_add(&x->numbers, key, &is_new);
    if (is_new) {
        x->files = sv_grow(x->files, &x->cap, x->n + 1, sizeof(struct sv_file *));
        x->files[x->n++] = NULL;
        *at = x->n;
    }
    struct sv_file **to = &x->files[*at - 1];
    if (*to == f)
        return;
    if (f)
        f->refs++;
    sv_file_put(t, *to);
    *to = f;
}

void sv_inodes_identify(struct sv_inodes *x, struct sv_tree *t, struct sv_file *f)
{
    struct stat st;
    if (f->is_identified)
        return;
    f->is_identified = true;
    if (f->path[0] == '/' && stat(f->path, &st) == 0 && S_ISREG(st.st_mode))
        sv_inodes_learn(x, t, major(st.st_dev) << 20 | (minor(st.st_dev) & 0xfffff), st.st_ino, f);
}

/* 7f0c…-7f0d… r--p 00026000 fe:00 1234   /usr/lib/libc.so.6 */
static void learn_line(struct sv_inodes *x, struct sv_tree *t, const char *line, size_t len)
{
    char text[4352];
    unsigned device_major, device_minor;
    unsigned long long inode;
    int path_at = 0;
    if (len >= sizeof text)
        return;
    memcpy(text, line, len);
    text[len] = 0;
    if (sscanf(text, "%*s %*s %*s %x:%x %llu %n", &device_major, &device_minor, &inode, &path_at) <
            3 ||
        inode == 0 || path_at == 0 || text[path_at] != '/')
        return;
    uint32_t device = device_major << 20 | (device_minor & 0xfffff);
    const uint64_t *at = sv_map_find(&x->numbers, sv_inodes_key(device, inode));
    if (at && x->files[*at - 1])
        return;
    struct sv_file *f = sv_tree_file(t, NULL, text + path_at, strlen(text + path_at));
    sv_inodes_learn(x, t, device, inode, f);
    sv_file_put(t, f);
}

void sv_inodes_maps(struct sv_inodes *x, struct sv_tree *t, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        learn_line(x, t, text, len);
        text += len + (text[len] == '\n');
    }
}

void sv_inodes_maps_of(struct sv_inodes *x, struct sv_tree *t, const struct sv_proc_image *who,
                       const char *text)
{
    bool is_new;
    sv_map_add(&x->asked, who->number, &is_new);
    sv_inodes_maps(x, t, text);
}

void sv_inodes_ask(struct sv_inodes *x, struct sv_tree *t, uint32_t pid)
{
    char path[64], *text = sv_alloc(MAPS_BYTES);
    snprintf(path, sizeof path, "%s/%u/maps", sv_procfs_root(), pid);
    x->readings++;
    if (sv_procfs_text(path, text, MAPS_BYTES) > 0)
        sv_inodes_maps(x, t, text);
    free(text);
}

static bool may_ask(struct sv_inodes *x, const struct sv_proc_image *who)
{
    bool is_new;
    if (!who)
        return false;
    sv_map_add(&x->asked, who->number, &is_new);
    return is_new || !x->follows_maps;
}

const struct sv_file *sv_inodes_find(struct sv_inodes *x, struct sv_tree *t, uint32_t device,
                                     uint64_t inode, const struct sv_proc_image *asked)
{
    const uint64_t *at = sv_map_find(&x->numbers, sv_inodes_key(device, inode));
    if (at || !may_ask(x, asked))
        return at ? x->files[*at - 1] : NULL;
    sv_inodes_ask(x, t, asked->pid);
    at = sv_map_find(&x->numbers, sv_inodes_key(device, inode));
    if (!at)
        sv_inodes_learn(x, t, device, inode, NULL);
    return at ? x->files[*at - 1] : NULL;
}

void sv_inodes_lost(struct sv_inodes *x)
{
    sv_map_clear(&x->asked);
}
