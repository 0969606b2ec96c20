/* `stave convert --dialect batching`: the life cycle in a trace as batching_trace.json, or as its summary when the output ends in .csv. */
#ifndef SV_CMD_CONVERT_BATCHING_H
#define SV_CMD_CONVERT_BATCHING_H

#include "files/open.h"

/* A sink for the events of `dict`, with the layout of newer servers when is_newer. */
int sv_batching_sink(const struct sv_output_choice *choice, bool is_newer, struct sv_dict *dict,
                     struct sv_sink **sink, struct sv_err *err);

#endif
