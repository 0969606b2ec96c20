/* Parts of a rotated trace: OUT grows, the parts before it are OUT-0001, OUT-0002 … */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Part 3 of train.pftrace is train-0003.pftrace. */
void sv_parts_name(const char *out, uint32_t number, char *path, size_t size);
/* After all parts of that name that are there: those of a run before. */
uint32_t sv_parts_free_number(const char *out);

/* No part is begun sooner. */
#define SV_ROTATE_BYTES_MIN ((uint64_t)256 << 10)
#define SV_ROTATE_NS_MIN    ((int64_t)1000000000)

enum { SV_PART_ID = 56 };
/* The same in all parts of a run, and in no other run. */
void sv_part_new_id(char id[static SV_PART_ID]);
