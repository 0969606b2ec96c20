/* A bit of everything: a track of one's own, a traced function with its arguments, instants, a
 * counter, a flow, nested groups.
 *
 *     STAVE_OUT=usage.pftrace complete_usage */
#include <stave/stave.h>

#include <stdio.h>

static int multiply(int a, int b)
{
    STAVE_FUNC_ARGS(a, b);
    return a * b;
}

/* Dies and clusters of an accelerator as groups. */
static stave_track_t cluster(unsigned die, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "Die:%u", die);
    stave_track_t group = stave_track(STAVE_ROOT, name);
    snprintf(name, sizeof name, "Cluster:%u", number);
    return stave_track(group, name);
}

int main(void)
{
    stave_track_t compute = stave_track(STAVE_PROCESS, "Compute");
    STAVE_SCOPE_ON(compute, "app", "matrix_ops", "size", 1024);

    int result = multiply(10, 20);
    STAVE_INSTANT("app", "checkpoint", "result", result);
    STAVE_COUNTER_ADD("app", "operations", 1);

    uint64_t flow = stave_flow_new();
    STAVE_INSTANT("app", "data_ready", STAVE_FLOW_OUT, flow);
    STAVE_INSTANT("app", "process", STAVE_FLOW_IN, flow);

    stave_track_t power = stave_counter(cluster(0, 1), "power", "W");
    for (int i = 0; i < 10; i++) {
        STAVE_COUNTER_ON(power, "app", 10.5 + i);
        stave_complete(cluster(0, (unsigned)i % 2), "app", "tile", stave_now_ns() - 1000, 900, "i",
                       i);
    }
    return 0;
}
