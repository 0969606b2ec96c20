/* Which path a page of the page cache belongs to: learnt from calls on descriptors, from files that
 * are mapped and from /proc/PID/maps, by device and inode. */
#ifndef SV_RECORD_DECODE_INODES_H
#define SV_RECORD_DECODE_INODES_H

#include "record/decode/tree.h"

enum { SV_INODES_MAX = 1 << 16 }; /* further files stay without a path */

struct sv_inodes {
    struct sv_map numbers;  /* device and inode → index + 1 */
    struct sv_file **files; /* NULL: looked for and not found */
    size_t n, cap;
    struct sv_map asked; /* the images whose maps were read */
    uint64_t readings;   /* of maps */
    bool follows_maps;   /* what is mapped later comes as calls: once per image is enough */
};

/* The key of x->numbers. */
static inline uint64_t sv_inodes_key(uint32_t device, uint64_t inode)
{
    return sv_mix64(inode * 31 + device);
}

void sv_inodes_fini(struct sv_inodes *x, struct sv_tree *t);
void sv_inodes_learn(struct sv_inodes *x, struct sv_tree *t, uint32_t device, uint64_t inode,
                     struct sv_file *f);
/* The same by the key of x->numbers, as another process has saved it. */
void sv_inodes_learn_key(struct sv_inodes *x, struct sv_tree *t, uint64_t key, struct sv_file *f);
/* Asks the file system for the number of a path, once. */
void sv_inodes_identify(struct sv_inodes *x, struct sv_tree *t, struct sv_file *f);
/* NULL: not known. Where the file is not known the maps of `asked` (NULL: nobody) are read, unless
 * they were and those that came later are followed. */
const struct sv_file *sv_inodes_find(struct sv_inodes *x, struct sv_tree *t, uint32_t device,
                                     uint64_t inode, const struct sv_proc_image *asked);
/* Calls were lost: what was read of maps may be out of date. */
void sv_inodes_lost(struct sv_inodes *x);
/* Learns what a process maps now. */
void sv_inodes_ask(struct sv_inodes *x, struct sv_tree *t, uint32_t pid);
/* Would sv_inodes_find() answer without asking? */
bool sv_inodes_has(const struct sv_inodes *x, uint32_t device, uint64_t inode);
/* Learns every file of these lines, as /proc/PID/maps has them. */
void sv_inodes_maps(struct sv_inodes *x, struct sv_tree *t, const char *text);
/* The same of a program, which need not be asked any more. */
void sv_inodes_maps_of(struct sv_inodes *x, struct sv_tree *t, const struct sv_proc_image *who,
                       const char *text);

#endif
