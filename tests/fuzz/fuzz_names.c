/* Arbitrary bytes as the log of names of another process: nothing may crash, and memory stays
 * within a small multiple of the log. */
#include "core/base/report.h"
#include "sdk/drain/drain_names.h"
#include "tests/fuzz/mutate_records.h"
#include "tests/fuzz/session_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_report report;
    struct sv_drain_names names;
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    sv_drain_names_init(&names, dict, 1);
    size_t before = sv_dict_used_bytes(dict);
    size_t used = sv_drain_names_read(&names, &report, data, size);
    assert(used <= size);
    for (uint32_t i = 0; i < names.n_sites; i++) {
        struct sv_drain_site *s = sv_drain_site(&names, i);
        if (s)
            assert(s->name < dict->n_strings && sv_drain_counter_track(&names, s) < dict->n_tracks);
    }
    for (uint64_t i = 0; i < 64; i++)
        assert(sv_drain_track(&names, i) < dict->n_tracks);
    assert(sv_drain_names_bytes(&names) < 16 * size + (64 << 10));
    assert(sv_dict_used_bytes(dict) - before < 32 * size + (256 << 10));
    sv_drain_names_fini(&names);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}

static const struct mutate_shape shape = MUTATE_NAMES_SHAPE(0);
MUTATE_BY_RECORDS(&shape)
