/* Between claim.c and claim_file.c: the marker's names and text. Not for others; tests feed the
 * parser. */
#pragma once

#include "core/files/claim.h"

#include <sys/stat.h>

/* An empty claim with its names; false: too long. */
bool sv_claim_names(struct sv_claim *c, const char *out, unsigned number);
/* Reads the marker (opened with these flags) and leaves it open in c->fd unless there is none or it
 * is foreign; sv_claim_keep() closes it. */
enum sv_claim_state sv_claim_open(const char *out, unsigned number, int flags, struct sv_claim *c);

/* The highest N of OUT.session.N and OUT.part.N; 0: there is none. */
unsigned sv_claim_last_number(const char *out);

/* Bytes, without the terminator; -1: it does not fit, or the session's name has a line break. */
int sv_claim_text(const struct sv_claim *c, char *to, size_t size);
/* `text` is terminated, and changed. */
bool sv_claim_parse(struct sv_claim *c, char *text, size_t len);
/* What identifies a file: whether it is the same one, unchanged. */
struct sv_claim_found sv_claim_see(const struct stat *st);
void sv_claim_command_of(uint32_t pid, char *to, size_t size);
