/* The congestion detector and the adaptive batch size that follows it.
 *
 * Called by a model's batcher once per tick. The rules and their numbers are in docs/server.md;
 * nothing here reads a clock, so that tests can play any history. */
#include "server/congestion.h"

void sv_congestion_init(struct sv_congestion *g, const struct sv_congestion_config *config)
{
    *g = (struct sv_congestion){.config = config, .pressure = SV_PRESSURE_NONE};
}

static double ratio_of(const struct sv_congestion_sample *s)
{
    if (s->completed)
        return (double)s->arrived / (double)s->completed;
    return s->arrived ? 1000 : 0;
}

static bool latency_beyond(const struct sv_congestion *g, double p95_ms, double part)
{
    return g->config->latency_slo_ms > 0 && p95_ms > part * g->config->latency_slo_ms;
}

static void find_pressure(struct sv_congestion *g, const struct sv_congestion_sample *s)
{
    const struct sv_congestion_config *c = g->config;
    if (s->rejected || s->inflight >= 0.95 || s->fill >= 0.95)
        g->pressure = SV_PRESSURE_SEVERE;
    else if (g->fill > c->fill_high || g->rho > c->rho_high || s->inflight >= 0.75)
        g->pressure = SV_PRESSURE_HIGH;
    else if (g->fill < c->fill_low && g->rho < c->rho_high && s->inflight <= 0.25)
        g->pressure = SV_PRESSURE_LOW;
    else
        g->pressure = SV_PRESSURE_NONE;
}

void sv_congestion_tick(struct sv_congestion *g, const struct sv_congestion_sample *s)
{
    const struct sv_congestion_config *c = g->config;
    g->rho += c->alpha * (ratio_of(s) - g->rho);
    g->fill += c->alpha * (s->fill - g->fill);
    bool grows = s->fill > g->last_fill;
    g->last_fill = s->fill;
    bool pressed = g->rho > c->rho_high || (g->fill > c->fill_high && grows) ||
                   latency_beyond(g, s->p95_ms, c->e2e_warn_ratio);
    bool calm = g->fill < c->fill_low && g->rho < c->rho_low &&
                !latency_beyond(g, s->p95_ms, c->e2e_ok_ratio);
    /* Nothing arrives: no ratio can say so. */
    calm = calm || (s->arrived == 0 && s->fill == 0);
    g->pressed_ms = pressed ? g->pressed_ms + c->tick_ms : 0;
    g->calm_ms = calm ? g->calm_ms + c->tick_ms : 0;
    if (s->rejected || g->pressed_ms >= c->entry_horizon_ms) {
        g->is_congested = true;
        if (s->rejected)
            g->calm_ms = 0;
    } else if (g->is_congested && g->calm_ms >= c->exit_horizon_ms) {
        g->is_congested = false;
    }
    find_pressure(g, s);
}

int64_t sv_congestion_target(const struct sv_congestion *g, int64_t target, int64_t min,
                             int64_t max)
{
    int64_t step = max / 8 > 1 ? max / 8 : 1;
    if (g->is_congested)
        return max;
    if (g->pressure == SV_PRESSURE_SEVERE)
        target += 2 * step;
    else if (g->pressure == SV_PRESSURE_HIGH)
        target += step;
    else if (g->pressure == SV_PRESSURE_LOW)
        target -= 1;
    return target < min ? min : target > max ? max : target;
}
