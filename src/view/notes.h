/* The user's notes about a trace: one JSON document in a file beside it. */
#pragma once

#include "net/web.h"

/* GET gives them, POST replaces them. One call at a time. */
void sv_answer_notes(const char *path, const struct sv_web_request *q, struct sv_web_answer *a);
