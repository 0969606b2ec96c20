/* Whose a finished recording is, where root records for another user. */
#ifndef SV_RECORD_OUTPUT_OWNER_H
#define SV_RECORD_OUTPUT_OWNER_H

#include "record/session/recorder.h"

struct sv_record_owner {
    uid_t uid; /* 0: the recorder's own */
    gid_t gid;
};

/* The user of the processes that -p names, if all are of one; else the one who called sudo. Before
 * the recording: they may end. */
struct sv_record_owner sv_record_owner_find(const struct sv_record_options *o);

/* Gives him a file or folder that this recorder has made. Nothing else is touched: no link, no
 * second name, nothing that is not root's. */
void sv_record_owner_give(const struct sv_record_owner *owner, const char *path);

/* A folder and the files in it. */
void sv_record_owner_give_folder(const struct sv_record_owner *owner, const char *path);

#endif
