/* The messages of inference.GRPCInferenceService (KServe v2, with Triton's additions) as protobuf,
 * by their public field numbers.
 *
 * Pure functions over bytes. Fields that are not known are ignored and counted.
 * tests/system/server_grpc.proto has the messages that are used. */
#pragma once

#include "core/base/buf.h"
#include "server/infer_tensors.h"

/* Fields 1 and 2 of most requests: a model's name and version ("": any). Of RepositoryIndex:
 * `ready` is 2. */
struct sv_proto_target {
    const char *name, *version; /* of the message's bytes, not terminated */
    size_t name_len, version_len;
    bool is_ready_only;
};
int sv_proto_target(const uint8_t *bytes, size_t len, struct sv_proto_target *out,
                    struct sv_err *err);

/* A ModelInferRequest for this model. *is_raw: its values came as raw_input_contents. */
int sv_proto_parse(const struct sv_infer_model *model, const uint8_t *bytes, size_t len,
                   struct sv_infer_request *out, bool *is_raw, struct sv_err *err);

/* A ModelInferResponse. is_raw: values as raw_output_contents, otherwise in the typed fields where
 * the types have them. */
void sv_proto_answer(const struct sv_infer_model *model, const struct sv_infer_answer *a,
                     bool is_raw, struct sv_buf *out);
/* A ModelStreamInferResponse: of an answer's bytes, or of an error (error is not NULL). */
void sv_proto_stream(const struct sv_buf *answer, const char *error, const char *id,
                     struct sv_buf *out);

void sv_proto_flag(bool is_so,
                   struct sv_buf *out); /* ServerLive-, ServerReady-, ModelReadyResponse */
void sv_proto_server(const char *name, const char *version, const char *const *extensions, size_t n,
                     struct sv_buf *out);
void sv_proto_describe(const struct sv_infer_model *model, struct sv_buf *out);
