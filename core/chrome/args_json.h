/* Arguments as JSON: the nested list of an event as objects and arrays, for every writer that needs
 * them. */
#pragma once

#include "core/base/json.h"
#include "core/stream/dict.h"

/* Writes {…}. Arguments with a meaning of their own and no key get the name of their type:
 * "correlation", "source", "stack", "flow_begin": "0x…". False when containers were nested too
 * deeply and written as null. */
bool sv_args_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *args, size_t n);

/* One value with all that belongs to it, without its key. Nothing at or past `end` is believed. */
bool sv_arg_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a,
                 const struct sv_arg *end);
/* The same with its key, as a member of an object that is open. */
bool sv_arg_member_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a,
                        const struct sv_arg *end);

/* Copies a text that came from a file to `scratch`, with the pad that looking at it needs. False:
 * it is no JSON. */
bool sv_json_copy(struct sv_buf *scratch, struct sv_text text);
/* The value of metadata: as the JSON that it is, else as a text. */
void sv_meta_json(struct sv_json *j, const struct sv_dict *d, const struct sv_meta *m,
                  struct sv_buf *scratch);
