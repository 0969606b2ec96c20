/* Which requests are traced: Triton's trace settings, of the server and of each model.
 *
 *     sv_trace_open(e, &err);                    at the start, or when a request switches tracing on
 *     r->trace = sv_trace_for(model, caller);    once for each request; NULL: it is not traced
 *
 * A request is traced as a whole or not at all: what is set later is for later ones. The decision
 * takes no lock. Settings change rarely, under one. */
#pragma once

#include "server/run/engine.h"

/* What the configuration says. The trace is opened if it is on. */
int sv_trace_start(struct sv_engine *e, struct sv_err *err);
/* The text of trace_keep. */
int sv_trace_check_keep(const char *rule, struct sv_err *err);
int sv_trace_check_rotate(const char *text, struct sv_err *err); /* of trace_rotate */
/* The engine has its models and workers: the trace gets their names. */
void sv_trace_name(struct sv_engine *e);

/* The trace that a request of this model goes into; caller: the span of its caller, or NULL. */
struct stave_serving *sv_trace_for(struct sv_model *m, const struct stave_trace_context *caller);

/* ---- /v2/trace/setting and TraceSetting; m NULL: of the server ---- */

void sv_page_trace(struct sv_engine *e, struct sv_model *m, struct sv_buf *out);
/* A body as Triton's clients send it; all of it holds or none. SV_EUSAGE: the message is for the
 * client. */
int sv_trace_set(struct sv_engine *e, struct sv_model *m, const uint8_t *body, size_t len,
                 struct sv_err *err);
/* May this user, or who sends this header `authorization` (NULL: none), change settings? */
bool sv_trace_may(uid_t uid, const char *token, size_t len);
