/* What a pair of nvtxRangePushA and nvtxRangePop costs, and their richer relatives;
 * NVTX_INJECTION64_PATH decides who listens.
 *
 * Prints NAME VALUE ns, the best of several rounds, each call by itself (half a pair). The rings
 * are drained between rounds by time. */
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { PAIRS = 4000, ROUNDS = 100 };

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const char *const names[] = {"forward", "backward", "optimizer step",
                                    "all_reduce of the gradients of layer 17"};
static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                           .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                           .colorType = NVTX_COLOR_ARGB,
                                           .color = 0xff00ff00,
                                           .messageType = NVTX_MESSAGE_TYPE_ASCII};

static void text(int i)
{
    nvtxRangePushA(names[i & 3]);
    nvtxRangePop();
}

static void registered(int i)
{
    (void)i;
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
}

static void in_domain(int i)
{
    attributes.message.ascii = names[i & 3];
    nvtxDomainRangePushEx(domain, &attributes);
    nvtxDomainRangePop(domain);
}

static void measure(const char *name, void (*pair)(int))
{
    double best = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
        int64_t t = now_ns();
        for (int i = 0; i < PAIRS; i++)
            pair(i);
        double each = (double)(now_ns() - t) / (2 * PAIRS);
        best = each < best ? each : best;
        nanosleep(&(struct timespec){0, 15000000}, NULL);
    }
    printf("%s %.1f ns\n", name, best);
}

int main(void)
{
    domain = nvtxDomainCreateA("bench");
    measure("nvtx_push_pop", text);
    measure("nvtx_domain_push_pop", in_domain);
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
    measure("nvtx_registered_push_pop", registered);
    return 0;
}
