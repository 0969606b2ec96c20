/* The list of probes: every kind of record belongs to one, options choose them, and docs/record.md
 * has their table. */
#include "record/decode/calls.h"
#include "record/probes/probe.h"
#include "subjects/io/words.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(every_kind_of_record_belongs_to_one_probe)
{
    unsigned owners[SV_WIRE_KINDS] = {0};
    for (unsigned i = 0; i < SV_N_PROBES; i++) {
        const struct sv_probe *p = sv_probes[i];
        REQUIRE(p->name && p->cat && p->docs.what && p->docs.row && p->docs.says);
        CHECK(p->records[0].size >= sizeof(struct sv_wire_head));
        for (unsigned k = 0; k < SV_PROBE_RECORDS && p->records[k].size; k++) {
            REQUIRE(p->records[k].kind > 0 && p->records[k].kind < SV_WIRE_KINDS);
            CHECK(p->records[k].name && p->records[k].decode);
            owners[p->records[k].kind]++;
        }
    }
    CHECK_UINT_EQ(owners[0], 0);
    for (unsigned kind = 1; kind < SV_WIRE_KINDS; kind++)
        CHECK_UINT_EQ(owners[kind], 1);
    CHECK_STR_EQ(sv_probe_lost_name(SV_WIRE_FAULT), "page faults");
}

/* Kinds are numbers in recorded bytes (tests/system/records.bin), so a line in the middle of the
 * list is a mistake. */
TEST(the_kinds_of_records_keep_their_numbers)
{
    CHECK_UINT_EQ(SV_WIRE_CALL, 1);
    CHECK_UINT_EQ(SV_WIRE_NAME, 5);
    CHECK_UINT_EQ(SV_WIRE_CACHE, 7);
    CHECK_UINT_EQ(SV_WIRE_FAULT, 11);
}

TEST(an_option_is_of_the_type_that_the_list_gives)
{
#define NONE(p)  CHECK_STR_EQ((p).option.name, "")
#define FLAG(p)  CHECK((p).option.name[0] && (p).option.help[0] && !(p).option.arg[0])
#define PAIR(p)  CHECK((p).option.name[0] && (p).option.off_name[0] && (p).option.off_help[0])
#define COUNT(p) CHECK((p).option.name[0] && (p).option.help[0] && (p).option.arg[0])
#define SV_PROBE(probe, type, ...)               \
    CHECK_STR_EQ(sv_probe_##probe.name, #probe); \
    type(sv_probe_##probe);
#include "record/probes/list.h"
#undef SV_PROBE
}

TEST(options_choose_probes)
{
    struct sv_probe_setting given[SV_N_PROBES] = {0};
    uint64_t chosen[SV_N_PROBES];
    sv_probes_choose(given, SV_CALLS_DEFAULT, chosen);
    CHECK_UINT_EQ(chosen[SV_PROBE_process], 1);
    CHECK_UINT_EQ(chosen[SV_PROBE_block], 1);
    CHECK_UINT_EQ(chosen[SV_PROBE_page_fault], 1);
    CHECK_UINT_EQ(chosen[SV_PROBE_io_uring], 1);
    CHECK_UINT_EQ(chosen[SV_PROBE_sched], 1);
    CHECK_UINT_EQ(chosen[SV_PROBE_offcpu], 1);
    CHECK_UINT_EQ(chosen[SV_PROBE_stack], 1);
    CHECK_UINT_EQ(chosen[SV_PROBE_sample], 0);
    given[SV_PROBE_page_cache].is_given = given[SV_PROBE_sched].is_given = true;
    given[SV_PROBE_sched].is_off = given[SV_PROBE_offcpu].is_off = true;
    given[SV_PROBE_sample].number = 99;
    sv_probes_choose(given, SV_CALLS_FILES, chosen);
    CHECK_UINT_EQ(chosen[SV_PROBE_page_cache], 0);
    CHECK_UINT_EQ(chosen[SV_PROBE_page_fault], 0); /* it goes with the page cache */
    CHECK_UINT_EQ(chosen[SV_PROBE_io_uring], 0);   /* it goes with a group of calls */
    CHECK_UINT_EQ(chosen[SV_PROBE_sched], 1);      /* --sched undoes --no-sched */
    CHECK_UINT_EQ(chosen[SV_PROBE_offcpu], 0);
    CHECK_UINT_EQ(chosen[SV_PROBE_sample], 99);
}

TEST(a_kernel_program_belongs_to_the_probe_of_its_name)
{
    CHECK_INT_EQ(sv_probe_of_program("on_block_insert"), SV_PROBE_block);
    CHECK_INT_EQ(sv_probe_of_program("on_page_fault"), SV_PROBE_page_fault);
    CHECK_INT_EQ(sv_probe_of_program("on_sample"), SV_PROBE_sample);
    CHECK_INT_EQ(sv_probe_of_program("on_enter"), -1);
    CHECK_INT_EQ(sv_probe_of_program("block"), -1);
}

/* ---- the table in docs/record.md ---- */

#define DOCS  TEST_SRC "/docs/record.md"
#define BEGIN "<!-- probes: made from src/record/probes; UPDATE=1 build/tests/unit -n probes. -->\n"
#define END   "<!-- /probes -->\n"

static const char *option_of(const struct sv_probe *p, char text[64])
{
    const char *dashes = p->option.name[0] ? "`--" : "",
               *name = p->option.off_name[0] ? p->option.off_name : p->option.name;
    snprintf(text, 64, "%s%s%s%s%s", dashes, name, p->option.arg[0] ? " " : "", p->option.arg,
             *dashes ? "`" : "");
    if (p->with[0])
        return option_of(p->with[0], text);
    return *dashes ? text : p->groups ? "`--calls`" : "always";
}

static void make_table(char *to, size_t size)
{
    size_t n = (size_t)snprintf(to, size,
                                "| event | category | option | track | content |\n"
                                "|---|---|---|---|---|\n");
    for (unsigned i = 0; i < SV_N_PROBES && n < size; i++) {
        const struct sv_probe *p = sv_probes[i];
        char option[64];
        n += (size_t)snprintf(to + n, size - n, "| %s | `%s` | %s | %s | %s |\n", p->docs.what,
                              p->cat, option_of(p, option), p->docs.row, p->docs.says);
    }
    REQUIRE(n < size);
}

static char *read_docs(void)
{
    enum { DOCS_BYTES = 1 << 20 };
    FILE *f = fopen(DOCS, "rb");
    REQUIRE(f);
    char *text = calloc(1, DOCS_BYTES);
    size_t n = fread(text, 1, DOCS_BYTES - 1, f);
    fclose(f);
    REQUIRE(n > 0 && n < DOCS_BYTES - 1);
    return text;
}

static void replace_block(const char *text, const char *block, const char *end, const char *table)
{
    FILE *f = fopen(DOCS, "wb");
    REQUIRE(f);
    fprintf(f, "%.*s%s%s", (int)(block - text), text, table, end);
    CHECK_INT_EQ(fclose(f), 0);
}

TEST(the_documentation_has_a_row_for_each)
{
    char table[1 << 14], *text = read_docs();
    char *block = strstr(text, BEGIN), *end = block ? strstr(block, END) : NULL;
    REQUIRE(end);
    block += strlen(BEGIN);
    make_table(table, sizeof table);
    if (getenv("UPDATE"))
        replace_block(text, block, end, table);
    else {
        *end = 0;
        CHECK_STR_EQ(block, table);
    }
    free(text);
}
