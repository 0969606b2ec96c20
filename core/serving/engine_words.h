/* The words in which the trace of an engine with continuous batching is written (vLLM, SGLang and
 * others): whoever writes such a trace or reads a foreign one uses these, and the reports, the SQL
 * tables and the viewer need no other.
 *
 *1. An engine step is a slice, category SV_ENGINE_CATEGORY, name SV_ENGINE_STEP, on a track of its
 * engine (the track's name is the
 *    engine's). Its arguments are the SV_STEP_ ones; all but SV_STEP_NUMBER may be missing.
 *    SV_STEP_MEMBERS is a text, a word for each member:
 *
 *        REQUEST PHASE IN [+OUT] [@POSITION] [~CACHED] [?PROPOSED [!ACCEPTED]]     without blanks;
 *            words are separated by one blank
 *        412p512@128~64 413d1+1@77                  412: prefill of 512 tokens; 413: decode of one
 *                                                   token, which gave one
 *
 *    REQUEST is the number of the request; PHASE is p (prefill) or d (decode); IN the tokens
 *    computed; OUT the tokens that came out for the client;
 *    POSITION the tokens of the request before the step; CACHED prompt tokens that the prefix cache
 *    had; PROPOSED and ACCEPTED speculative
 *    tokens. A part that is missing is 0. A step with more members than fit one text has instants
 *    of the name SV_ENGINE_MEMBERS on its
 *    track, at its begin, with SV_STEP_NUMBER and SV_STEP_MEMBERS.
 *
 *2. The life of a request is instants of category SV_LIFE_CATEGORY (core/serving/life.h):
 * "enqueued", "rejected", "responded", "failed", "cancelled",
 *    and of an engine "scheduled", "preempted", "resumed", "transferred", "streamed". Each has
 *    SV_REQUEST.
 *
 *3. A source that knows a request only as a whole (a span of OTLP, a line of a log) writes one
 * slice, category SV_LLM_CATEGORY, name SV_LLM_REQUEST,
 *    from arrival to end, with SV_REQUEST and the SV_LLM_ arguments that it has. Where the life of
 *    the same request is in the trace, that counts. */
#pragma once

/* ---- steps ---- */

#define SV_ENGINE_CATEGORY "serving.engine"
#define SV_ENGINE_STEP     "engine step"
#define SV_ENGINE_MEMBERS  "step members"

#define SV_STEP_NUMBER     "step"
#define SV_STEP_REQUESTS   "requests" /* members */
#define SV_STEP_PREFILL    "prefill"  /* members in prefill, in decode */
#define SV_STEP_DECODE     "decode"
#define SV_STEP_TOKENS_IN  "tokens_in"
#define SV_STEP_TOKENS_OUT "tokens_out"
#define SV_STEP_CACHED     "cached_tokens"
#define SV_STEP_KV_USED    "kv_used" /* blocks of the KV cache */
#define SV_STEP_KV_TOTAL   "kv_total"
#define SV_STEP_WAITING    "waiting" /* requests in the queue when it began */
#define SV_STEP_GRAPH      "graph"   /* "eager", "piecewise", "full" */
#define SV_STEP_PROPOSED   "proposed"
#define SV_STEP_ACCEPTED   "accepted"
#define SV_STEP_FLAGS      "flags" /* 1: warm-up */
#define SV_STEP_MEMBERS    "members"

/* ---- requests ---- */

/* A number below 2^63 or, of engines whose requests have names, a text. */
#define SV_REQUEST "request"

#define SV_LIFE_TOKENS      "tokens"  /* "streamed": how many */
#define SV_LIFE_TOOK        "took_ns" /* "transferred": how long, up to its time */
#define SV_LIFE_BYTES       "bytes"
#define SV_LIFE_FROM_ENGINE "from" /* "transferred": numbers of engines */
#define SV_LIFE_TO_ENGINE   "to"

#define SV_LLM_CATEGORY "serving"
#define SV_LLM_REQUEST  "llm request"

#define SV_LLM_MODEL         "model"
#define SV_LLM_OUTCOME       "outcome" /* "responded", "rejected", "failed", "cancelled" */
#define SV_LLM_PROMPT_TOKENS "prompt_tokens"
#define SV_LLM_CACHED_TOKENS "cached_tokens"
#define SV_LLM_OUTPUT_TOKENS "output_tokens"
#define SV_LLM_QUEUE_NS      "queue_ns"
#define SV_LLM_TTFT_NS       "ttft_ns" /* arrival to first token */
#define SV_LLM_PREFILL_NS    "prefill_ns"
#define SV_LLM_DECODE_NS     "decode_ns" /* first to last token */
#define SV_LLM_PREEMPTED_NS  "preempted_ns"
#define SV_LLM_PREEMPTIONS   "preemptions"
#define SV_LLM_BATCH         "batch_id" /* of a server with dynamic batching */
#define SV_LLM_WARMUP        "warmup"   /* 1: it is */
/* In the order of enum sv_transport (core/serving/life.h). */
#define SV_TRANSPORT_KEYS "read_ns", "parse_ns", "serialise_ns", "write_ns"

/* A batch as a slice, in a trace without its life: batch_id, model_name, batch_size, worker_id. */
#define SV_BATCH_CATEGORY "batch"

/* Slices of this category are times in which a model, weights or graphs were loaded or captured:
 * `report llm --why` names them. */
#define SV_LOAD_CATEGORY "serving.load"

/* Requests and engines on the time line of libstave-serving; an analysis does not need them. */
#define SV_LLM_TOKEN "token"
