/* Arguments as JSON: the nested list of an event as one object, for every writer that needs one. */
#ifndef SV_FORMATS_ARGS_JSON_H
#define SV_FORMATS_ARGS_JSON_H

#include "base/json.h"
#include "model/dict.h"

/* Writes {…}. Arguments with a meaning of their own and no key get the name of their type: "correlation", "source",
 * "stack", "flow_begin": "0x…". */
void sv_args_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *args, size_t n);

/* One value, without its key. */
void sv_arg_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a);

#endif
