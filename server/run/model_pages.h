/* Answers about the server and its models as JSON: lists, descriptions, configurations,
 * statistics. */
#pragma once

#include "server/run/engine.h"

/* m: the model, or NULL for all of them where a page has that. */
typedef void sv_page(struct sv_engine *e, struct sv_model *m, struct sv_buf *out);
sv_page sv_page_server, sv_page_models, sv_page_model, sv_page_config, sv_page_stats, sv_page_index,
    sv_page_index_ready;

/* The body of a request for the index: empty, or {"ready": true}. false: it is something else. */
bool sv_page_index_asks(const uint8_t *body, size_t len, bool *ready_only);

/* The extensions of the protocol that the server has. */
extern const char *const sv_server_extensions[];
extern const size_t sv_server_n_extensions;

const char *sv_model_state(const struct sv_model *m);  /* READY, UNAVAILABLE */
const char *sv_model_reason(const struct sv_model *m); /* "" when it is ready */

/* A ModelConfig message, with Triton's field numbers. */
void sv_config_proto(const struct sv_model *m, struct sv_buf *out);
