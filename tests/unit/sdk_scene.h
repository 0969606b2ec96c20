/* Sessions of this very process, and what is then in the file: for the tests of libstave's parts
 * together.
 *
 *     static struct sdk_scene s;
 *     sdk_start(&s, &(struct stave_options){.full = STAVE_FULL_BLOCK});
 *     STAVE_INSTANT("c", "n", "k", 1);
 *     CHECK_STR_EQ(sdk_stop(&s), "instant thread n c k=int:1\n");
 *     sdk_done(&s);
 */
#ifndef TESTS_UNIT_SDK_SCENE_H
#define TESTS_UNIT_SDK_SCENE_H

#include "sdk/session/sdk.h"
#include "tests/unit/pffile.h"

struct sdk_scene {
    char out[512], dir[512]; /* the file; where sessions are */
    struct read file;        /* as it was read last */
    bool is_read;
    struct sv_buf text;
};

/* As in a new process: tests of one file may share theirs. Sessions are in a folder of the test. */
void sdk_fresh(struct sdk_scene *s);
/* Options without `out` and `size` (NULL: none) and a file of the test's own. */
void sdk_start(struct sdk_scene *s, const struct stave_options *options);
/* A file as lines `kind track name category arguments` in its order. Tracks: thread, process, or
 * the names from the top; each further track with the same names has one more apostrophe. */
const char *sdk_read(struct sdk_scene *s, const char *path);
const char *sdk_stop(struct sdk_scene *s); /* completes the file and reads it */
void sdk_done(struct sdk_scene *s);

/* The writer does nothing until it may again, as during a fork: the rings are the test's own. */
void sdk_hold(void);
void sdk_release(void);

/* What is said on stderr goes to a file of the test; the second call gives it back and returns the
 * text. */
void sdk_hear(void);
const char *sdk_heard(void);

/* Bytes that the calling thread keeps for the ends of open slices. */
uint64_t sdk_kept(void);
/* How many entries a folder has. */
size_t sdk_entries(const char *folder);

#endif
