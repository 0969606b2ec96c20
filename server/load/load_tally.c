/* What came of the load: counts, rates and percentiles, as text and as JSON.
 *
 * Called after the last answer. Percentiles are linear between ranks. */
#include "server/load/load_plan.h"

#include "core/base/json.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void sv_load_tally_sort(struct sv_load_tally *t)
{
    if (t->n)
        qsort(t->latencies_ns, t->n, sizeof *t->latencies_ns, compare);
}

double sv_load_tally_ms(const struct sv_load_tally *t, double percentile)
{
    if (t->n == 0)
        return 0;
    double rank = percentile / 100 * (double)(t->n - 1);
    uint64_t low = (uint64_t)rank, high = low + 1 < t->n ? low + 1 : low;
    double part = rank - (double)low;
    return ((double)t->latencies_ns[low] * (1 - part) + (double)t->latencies_ns[high] * part) / 1e6;
}

double sv_load_tally_mean_ms(const struct sv_load_tally *t)
{
    double sum = 0;
    for (uint64_t i = 0; i < t->n; i++)
        sum += (double)t->latencies_ns[i];
    return t->n ? sum / (double)t->n / 1e6 : 0;
}

double sv_load_tally_rate(const struct sv_load_tally *t)
{
    return t->elapsed_ns > 0 ? (double)t->counts[SV_LOAD_OK] * 1e9 / (double)t->elapsed_ns : 0;
}

static const double shares[] = {50, 85, 90, 95, 99, 99.9, 100};

static uint64_t handled(const struct sv_load_tally *t)
{
    return t->counts[SV_LOAD_OK] + t->counts[SV_LOAD_REJECTED] + t->counts[SV_LOAD_FAILED];
}

static double mean_batch(const struct sv_load_tally *t)
{
    return t->counts[SV_LOAD_OK] ? (double)t->batch_rows / (double)t->counts[SV_LOAD_OK] : 0;
}

static void number(struct sv_json *j, const char *key, double v)
{
    sv_json_key(j, key, strlen(key));
    sv_json_double(j, v);
}

static void count(struct sv_json *j, const char *key, uint64_t v)
{
    sv_json_key(j, key, strlen(key));
    sv_json_u64(j, v);
}

void sv_load_tally_json(const struct sv_load_tally *t, struct sv_buf *out)
{
    static const char *const names[] = {"p50_ms", "p85_ms",   "p90_ms", "p95_ms",
                                        "p99_ms", "p99_9_ms", "p100_ms"};
    struct sv_json j;
    sv_json_init(&j, out);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "requests", begin, '{');
    count(&j, "sent", t->sent);
    count(&j, "handled", handled(t));
    count(&j, "ok", t->counts[SV_LOAD_OK]);
    count(&j, "rejected", t->counts[SV_LOAD_REJECTED]);
    count(&j, "failed", t->counts[SV_LOAD_FAILED]);
    count(&j, "broken", t->counts[SV_LOAD_BROKEN]);
    sv_json_end(&j);
    count(&j, "response_count", handled(t));
    number(&j, "elapsed_seconds", (double)t->elapsed_ns / 1e9);
    number(&j, "throughput_rps", sv_load_tally_rate(t));
    number(&j, "mean_batch_size", mean_batch(t));
    sv_json_put(&j, "latency_ms", begin, '{');
    sv_json_lit(&j, "roundtrip");
    if (t->n) {
        sv_json_begin(&j, '{');
        number(&j, "mean_ms", sv_load_tally_mean_ms(t));
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
            number(&j, names[i], sv_load_tally_ms(t, shares[i]));
        sv_json_end(&j);
    } else {
        sv_json_null(&j);
    }
    sv_json_end(&j);
    sv_json_end(&j);
    sv_buf_byte(out, '\n');
}

void sv_load_tally_text(const struct sv_load_tally *t, struct sv_buf *out)
{
    sv_buf_printf(
        out,
        "%llu requests in %.3f s: %llu ok, %llu rejected, %llu failed, %llu without an answer\n",
        (unsigned long long)t->sent, (double)t->elapsed_ns / 1e9,
        (unsigned long long)t->counts[SV_LOAD_OK], (unsigned long long)t->counts[SV_LOAD_REJECTED],
        (unsigned long long)t->counts[SV_LOAD_FAILED],
        (unsigned long long)t->counts[SV_LOAD_BROKEN]);
    sv_buf_printf(out, "throughput  %.1f requests/s, mean batch size %.2f\n", sv_load_tally_rate(t),
                  mean_batch(t));
    if (t->n)
        sv_buf_printf(
            out,
            "latency ms  mean %.3f  p50 %.3f  p90 %.3f  p95 %.3f  p99 %.3f  p99.9 %.3f  max %.3f\n",
            sv_load_tally_mean_ms(t), sv_load_tally_ms(t, 50), sv_load_tally_ms(t, 90),
            sv_load_tally_ms(t, 95), sv_load_tally_ms(t, 99), sv_load_tally_ms(t, 99.9),
            sv_load_tally_ms(t, 100));
    if (t->first_error[0])
        sv_buf_printf(out, "first error: %s\n", t->first_error);
}
