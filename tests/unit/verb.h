/* A verb of stave, from its words to the files that are there afterwards, in this process: for what
 * is between the command line and the parts that have tests of their own.
 *
 *     verb_enter("folder");
 *     CHECK_INT_EQ(verb(&sv_command_recover, "--keep t.json"), 0);
 *     CHECK_STR_EQ(verb_files(), "t.json t.json.part");
 *     verb_leave(); */
#ifndef TESTS_UNIT_VERB_H
#define TESTS_UNIT_VERB_H

#include "cli/command.h"

extern char verb_said[1 << 14], verb_shown[1 << 14]; /* on stderr, on stdout */
extern char verb_message[512];                       /* of the error */

/* An empty folder, which is the current one until verb_leave(); sessions are looked for in another
 * one that is empty. */
void verb_enter(const char *name);
void verb_leave(void);

/* Runs it with these words, separated by blanks unless they are in 'single quotes'. Returns what it
 * returns: 0 or more, or an error. */
int verb(const struct sv_command *c, const char *line);
/* The names in the current folder, in order: "a.json b.json.part". */
const char *verb_files(void);

#endif
