/* Spans of LLM engines: vLLM and SGLang write one for each request, with what it waited and took as
 * attributes gen_ai.latency.* in seconds. It becomes a request in the words of
 * core/serving/engine_words.h, so that the reports need to know of no engine. The attributes stay
 * beside these words. */
#include "core/serving/engine_words.h"
#include "core/serving/life.h"
#include "formats/otlp/reader.h"

#define LATENCY "gen_ai.latency."

/* Spans of clients have gen_ai.* attributes, too: only an engine's have these. */
bool otlp_llm_marks(struct otlp_text key)
{
    return key.len > sizeof LATENCY - 1 && memcmp(key.bytes, LATENCY, sizeof LATENCY - 1) == 0;
}

static const struct {
    const char *attribute, *word;
    bool is_seconds;
} numbers[] = {
    {LATENCY "time_in_queue", SV_LLM_QUEUE_NS, true},
    {LATENCY "time_to_first_token", SV_LLM_TTFT_NS, true},
    {LATENCY "time_in_model_prefill", SV_LLM_PREFILL_NS, true},
    {LATENCY "time_in_model_decode", SV_LLM_DECODE_NS, true},
    {"gen_ai.usage.prompt_tokens", SV_LLM_PROMPT_TOKENS, false},
    {"gen_ai.usage.input_tokens", SV_LLM_PROMPT_TOKENS, false},
    {"gen_ai.usage.completion_tokens", SV_LLM_OUTPUT_TOKENS, false},
    {"gen_ai.usage.output_tokens", SV_LLM_OUTPUT_TOKENS, false},
    {"gen_ai.usage.cached_tokens", SV_LLM_CACHED_TOKENS, false},
    {"gen_ai.usage.cache_read.input_tokens", SV_LLM_CACHED_TOKENS, false},
    {OTLP_STAVE_WARMUP, SV_LLM_WARMUP, false},
};
enum { N_NUMBERS = sizeof numbers / sizeof *numbers };

static const struct {
    const char *attribute, *word;
} texts[] = {
    {"gen_ai.request.id", SV_REQUEST},
    {"gen_ai.response.model", SV_LLM_MODEL},
    {"gen_ai.request.model", SV_LLM_MODEL},
};

/* Seconds as whole nanoseconds; false: no time can be so long. */
static bool to_ns(double seconds, int64_t *ns)
{
    if (!(seconds >= 0) || seconds > 9e9)
        return false;
    *ns = (int64_t)(seconds * 1e9 + 0.5);
    return true;
}

/* Bits of what was given: the first attribute of a word counts. */
static bool is_first(const char *word, const char **given, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (given[i] == word || strcmp(given[i], word) == 0)
            return false;
    given[(*n)++] = word;
    return true;
}

static void put_number(struct otlp_reader *r, struct sv_batch *b, size_t i, struct sv_pb value)
{
    double seconds;
    int64_t n;
    bool ok = numbers[i].is_seconds ? otlp_value_double(value, &seconds) && to_ns(seconds, &n)
                                    : otlp_value_int(value, &n);
    if (ok)
        sv_batch_int(b, sv_dict_cstr(r->source.dict, numbers[i].word), n);
}

static bool is_aborted(struct sv_pb value)
{
    static const char word[] = "abort";
    return memmem(value.p, (size_t)(value.end - value.p), word, sizeof word - 1) != NULL;
}

/* What `stave export` wrote says it in our words; NULL: it does not. */
static const char *own_outcome(struct sv_pb value)
{
    struct otlp_text text;
    for (int i = SV_FATE_RESPONDED; i < SV_N_FATES && otlp_value_text(value, &text); i++)
        if (otlp_is(text, sv_life_fate_names[i]))
            return sv_life_fate_names[i];
    return NULL;
}

void otlp_llm_args(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w,
                   const struct otlp_span *s)
{
    const char *given[N_NUMBERS + sizeof texts / sizeof *texts];
    const char *outcome = s->status == OTLP_STATUS_ERROR ? "failed" : "responded", *own = NULL;
    size_t n_given = 0;
    int64_t id;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        struct otlp_text key, text;
        struct sv_pb value;
        if (f.id != OTLP_SPAN_ATTRIBUTES || f.type != SV_PB_BYTES ||
            !otlp_key_value(sv_pb_sub(&f), &key, &value))
            continue;
        for (size_t i = 0; i < N_NUMBERS; i++)
            if (otlp_is(key, numbers[i].attribute) && is_first(numbers[i].word, given, &n_given))
                put_number(r, b, i, value);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if (otlp_is(key, texts[i].attribute) && otlp_value_text(value, &text) &&
                is_first(texts[i].word, given, &n_given))
                otlp_put_text(b, sv_dict_cstr(r->source.dict, texts[i].word), text);
        if (otlp_is(key, "gen_ai.request.id") && otlp_value_int(value, &id) &&
            is_first(SV_REQUEST, given, &n_given)) /* of a server that numbers them */
            sv_batch_int(b, sv_dict_cstr(r->source.dict, SV_REQUEST), id);
        if (otlp_is(key, "gen_ai.response.finish_reasons") && value.p && is_aborted(value))
            outcome = "cancelled";
        if (otlp_is(key, SV_LLM_OUTCOME))
            own = own_outcome(value);
    }
    outcome = own ? own : outcome;
    sv_batch_str(b, sv_dict_cstr(r->source.dict, SV_LLM_OUTCOME), outcome, strlen(outcome));
}
