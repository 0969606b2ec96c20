/* Operators of a network, timed elsewhere in milliseconds and pushed when they are done, one track
 * per layer.
 *
 *     STAVE_OUT=layers.json layers */
#include <stave/stave.h>

#include <stdio.h>

/* A duration in ms that ends now. */
static void push(const char *name, const char *category, double ms, unsigned layer)
{
    if (!stave_enabled(category))
        return;
    char row[16];
    snprintf(row, sizeof row, "Layer %u", layer);
    int64_t dur_ns = (int64_t)(ms * 1e6 + 0.5);
    stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                     .kind = STAVE_KIND_COMPLETE,
                                     .track = stave_track(STAVE_PROCESS, row),
                                     .category = category,
                                     .name = name,
                                     .start_ns = stave_now_ns() - dur_ns,
                                     .dur_ns = dur_ns});
}

int main(void)
{
    push("rms_norm", "norm", 1.0, 1);
    push("rope", "attn", 0.5, 1);
    push("rms_norm", "norm", 0.123, 2);
    stave_flush(); /* twice, or never: nothing is lost and nothing is emptied */
    stave_flush();
    return 0;
}
