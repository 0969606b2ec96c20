/* Which inputs of a merge share a machine: boot ids first, host names where there is none; and the
 * metadata that says it. */
#include "clocks/hosts.h"
#include "core/stream/machine.h"

#include "core/files/process_id.h"
#include "core/stream/dict.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *what;
    struct sv_host in[4];
    size_t n;
    bool same_host;
    uint32_t machine[4], group[4], space[4];
};

static const struct row rows[] = {
    {.what = "equal host names without boot ids",
     .in = {{.host = "a"}, {.host = "a"}, {.host = "b"}},
     .n = 3,
     .machine = {0, 0, 1},
     .group = {0, 0, 1},
     .space = {0, 0, 1}},
    {.what = "one host name, two machines",
     .in = {{.host = "a", .boot = "1"}, {.host = "a", .boot = "2"}, {.host = "a", .boot = "1"}},
     .n = 3,
     .machine = {0, 1, 0},
     .group = {0, 1, 0},
     .space = {0, 1, 0}},
    {.what = "one machine that was renamed",
     .in = {{.host = "a", .boot = "1"}, {.host = "b", .boot = "1"}},
     .n = 2},
    {.what = "without a boot id it belongs to the only machine of that name",
     .in = {{.host = "a"}, {.host = "a", .boot = "1"}, {.host = "a"}},
     .n = 3},
    {.what = "and to none when there are two of that name",
     .in = {{.host = "a"}, {.host = "a", .boot = "1"}, {.host = "a", .boot = "2"}, {.host = "a"}},
     .n = 4,
     .machine = {0, 1, 2, 0},
     .group = {0, 1, 2, 0},
     .space = {0, 1, 2, 0}},
    {.what = "a boot id is no host name",
     .in = {{.host = "1"}, {.boot = "1"}},
     .n = 2,
     .machine = {0, 1},
     .group = {0, 1},
     .space = {0, 1}},
    {.what = "unknown ones are machines of their own",
     .in = {{0}, {0}},
     .n = 2,
     .machine = {0, 1},
     .group = {0, 1},
     .space = {0, 1}},
    {.what = "ranks of one machine share pids, not flows",
     .in = {{.host = "a", .rank = 0}, {.host = "a", .rank = 1}, {.host = "a", .rank = 0}},
     .n = 3,
     .group = {0, 1, 0}},
    {.what = "what was merged of several machines joins nobody by its host name",
     .in = {{.host = "a", .boot = "2"},
            {.host = "a", .is_mixed = true, .n_spaces = 2},
            {.host = "b"}},
     .n = 3,
     .machine = {0, 1, 2},
     .group = {0, 1, 2},
     .space = {0, 1, 3}},
    {.what = "containers of one machine have pids of their own",
     .in = {{.boot = "1", .pids = "7:1"},
            {.boot = "1", .pids = "7:2"},
            {.boot = "1", .pids = "7:1"},
            {.boot = "2", .pids = "7:1"}},
     .n = 4,
     .machine = {0, 0, 0, 1},
     .group = {0, 0, 0, 1},
     .space = {0, 1, 0, 2}},
    {.what = "without a namespace it belongs to the only one of its machine",
     .in = {{.host = "a"}, {.host = "a", .boot = "1", .pids = "7"}},
     .n = 2},
    {.what = "and to none when there are two",
     .in = {{.boot = "1"}, {.boot = "1", .pids = "7"}, {.boot = "1", .pids = "8"}, {.boot = "1"}},
     .n = 4,
     .space = {0, 1, 2, 0}},
    {.what = "nor when it was merged of several",
     .in = {{.boot = "1", .pids = "7"}, {.boot = "1", .n_spaces = 2}, {.boot = "1", .pids = "8"}},
     .n = 3,
     .space = {0, 1, 3}},
    {.what = "containers, by the user's word one machine with one set of pids",
     .in = {{.boot = "1", .pids = "7"}, {.boot = "2", .pids = "8"}},
     .n = 2,
     .same_host = true},
    {.what = "all of one machine by the user's word",
     .in = {{.host = "a", .boot = "1"}, {.host = "b", .boot = "2"}, {0}},
     .n = 3,
     .same_host = true},
};

TEST(rows_of_machines)
{
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].what);
        struct sv_host in[4] = {0}, *at[4];
        for (size_t k = 0; k < rows[i].n; k++) {
            in[k] = rows[i].in[k];
            in[k].n_spaces += in[k].n_spaces == 0;
            at[k] = &in[k];
        }
        sv_hosts_number(at, rows[i].n, rows[i].same_host);
        for (size_t k = 0; k < rows[i].n; k++) {
            CHECK_UINT_EQ(in[k].machine, rows[i].machine[k]);
            CHECK_UINT_EQ(in[k].group, rows[i].group[k]);
            CHECK_UINT_EQ(in[k].space, rows[i].space[k]);
        }
    }
}

TEST(a_host_name_that_two_inputs_have)
{
    struct sv_host in[] = {{.host = "a"}, {.host = "b"}, {.host = "a", .boot = "1"}, {0}};
    struct sv_host *at[] = {&in[0], &in[1], &in[2], &in[3]};
    sv_hosts_number(at, 4, false);
    CHECK(!in[0].is_only && in[1].is_only && !in[2].is_only && !in[3].is_only);
}

/* Each a machine of its own: cubic work would not end. */
TEST(many_machines_end)
{
    enum { N = 20000 };
    struct sv_host *in = calloc(N, sizeof *in), **at = calloc(N, sizeof *at);
    char(*boots)[16] = calloc(N, sizeof *boots);
    REQUIRE(in && at && boots);
    for (size_t i = 0; i < N; i++) {
        snprintf(boots[i], sizeof boots[i], "%zu", i);
        in[i] = (struct sv_host){.host = "node", .boot = boots[i], .n_spaces = 1};
        at[i] = &in[i];
    }
    struct sv_hosts counts = sv_hosts_number(at, N, false);
    CHECK_UINT_EQ(counts.n_machines, N);
    CHECK_UINT_EQ(counts.n_groups, N);
    CHECK_UINT_EQ(in[N - 1].space, N - 1);
    free(in);
    free(at);
    free(boots);
}

TEST(this_machine_is_described)
{
    struct sv_dict *d = sv_dict_new();
    uint8_t id[SV_BOOT_ID_BYTES];
    char text[SV_BOOT_TEXT];
    sv_machine_describe(d);
    CHECK(sv_dict_find_meta(d, "hostname") && sv_dict_find_meta(d, "machine"));
    if (!sv_boot_id(id))
        SKIP("this machine has no boot id");
    sv_boot_text(id, text);
    const struct sv_meta *boot = sv_dict_find_meta(d, "boot_id");
    REQUIRE(boot);
    CHECK_STR_EQ(sv_dict_text(d, boot->value).bytes, text);
    char pids[SV_PIDS_TEXT];
    const struct sv_meta *namespace = sv_dict_find_meta(d, "pid_namespace");
    REQUIRE(sv_pids_text(pids) && namespace);
    CHECK_STR_EQ(sv_dict_text(d, namespace->value).bytes, pids);
    sv_dict_free(d);
}
