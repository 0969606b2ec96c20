/* Whole recordings in this process: `stave record` in the folder of verb_enter(), and what is in
 * its file and in its summary. */
#ifndef TESTS_UNIT_WHOLE_H
#define TESTS_UNIT_WHOLE_H

#include <stdbool.h>
#include <stdint.h>

/* Skips the test where it is not there. */
void whole_need_sql(void);
void whole_need_kernel(void);

/* A file `in` of 1,000 bytes; a program work.sh that reads it, writes it to another one and ends
 * with 7; many.sh, which opens it 3,000 times and ends with 3. */
void whole_make_work(void);

int whole_record(const char *line); /* as verb() */
/* A program with libstave that emits `n` instants of 4 KB with a number each within one slice; with
 * EMIT_HITS=N also N slices, in turns of 5 ms called "long" and of 1 ms called "short"; with
 * EMIT_SIGNAL=FILE it asks the recorder to save its ring before the slice ends, and waits for the
 * file. */
int whole_record_emitter(unsigned n, const char *options);
/* The rows of a query over a file, as CSV without its head, or its first number. */
const char *whole_ask(const char *file, const char *sql);
uint64_t whole_number(const char *file, const char *sql);

/* What was said has this, however many blanks are between the words. */
bool whole_says(const char *text);
/* "139 system calls": the number before the words, in a text or in what was said. */
uint64_t whole_number_before(const char *text, const char *words);
uint64_t whole_said(const char *words);

#endif
