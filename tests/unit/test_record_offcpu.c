/* Records of waits without a stack: shorter, named by where the thread was. */
#include "record/bpf/offcpu.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <string.h>

static struct sv_wire_short_offcpu a_wait(void)
{
    return (struct sv_wire_short_offcpu){
        .head = {.kind = SV_WIRE_OFFCPU,
                 .flags = SV_WIRE_NO_STACK,
                 .tgid = 10,
                 .tid = 11,
                 .ts_ns = 3000},
        .ip = 0x1234,
        .away = {.begin_ns = 1000, .end_ns = 2500, .nr = 35, .state = SV_STATE_SLEEPING}};
}

TEST(a_wait_without_a_stack)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_short_offcpu w = a_wait();
    kbench_put(k, 0, &w, sizeof w, NULL, 0, 0);
    CHECK_UINT_EQ(kbench_round(k, 5000), 2);
    CHECK_STR_EQ(k->text, "1000 begin /off CPU sleep reason=sleep =0 =[unknown]\n"
                          "2500 end /off CPU \n");
    w.away.end_ns = 10; /* before it began */
    kbench_put(k, 0, &w, sizeof w, NULL, 0, 0);
    w = a_wait();
    kbench_put(k, 0, &w, sizeof w - 8, NULL, 0, 0); /* cut off */
    w.head.flags = 0;                               /* says that it has a stack */
    kbench_put(k, 0, &w, sizeof w, NULL, 0, 0);
    CHECK_UINT_EQ(kbench_round(k, 5000), 0);
    kbench_free(k);
}
