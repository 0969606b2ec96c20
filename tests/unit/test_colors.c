/* Which colour a slice gets: states and waits have theirs in every trace, and take none from the
 * others. */
#include "plot/colors.h"

#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"

#define HEAD                                                    \
    "# stave text 1\n"                                          \
    "track #1 thread uuid=0x11 pid=7 tid=8 name=\"t\"\n"        \
    "track #2 thread uuid=0x12 pid=7 tid=9 name=\"u\"\n"        \
    "1.000000000 slice #1 \"a\" cat=\"work\" dur=0.000000100\n" \
    "1.000001000 slice #1 \"b\" cat=\"other\" dur=0.000000100\n"

/* The numbers of all slices of a trace, in its order. */
static void check_numbers(const char *text, const unsigned *want, size_t n)
{
    struct sv_report findings;
    struct sv_colors c;
    struct sv_dict *dict = sv_dict_new();
    struct sv_trace *trace = text_trace(text, dict, &findings);
    sv_colors_init(&c, trace, NULL);
    CHECK_UINT_EQ(trace->slices.n, n);
    for (uint64_t row = 0; row < trace->slices.n && row < n; row++)
        CHECK_UINT_EQ(sv_color_number(&c, row), want[row]);
    sv_colors_fini(&c);
    sv_trace_free(trace);
    sv_report_fini(&findings);
    sv_dict_free(dict);
}

TEST(states_have_fixed_colors)
{
    static const char text[] = HEAD
        "1.000010000 slice #2 \"Running\" cat=\"thread_state\" dur=0.000000100\n"
        "1.000011000 slice #2 \"Runnable\" cat=\"thread_state\" dur=0.000000100\n"
        "1.000012000 slice #2 \"Preempted\" cat=\"thread_state\" dur=0.000000100\n"
        "1.000013000 slice #2 \"Blocked on I/O\" cat=\"thread_state\" dur=0.000000100\n"
        "1.000014000 slice #2 \"Sleeping\" cat=\"thread_state\" dur=0.000000100\n"
        "1.000015000 slice #2 \"gil\" cat=\"offcpu_sample\" dur=0.000000100\n"
        "1.000016000 slice #2 \"of a newer version\" cat=\"thread_state\" dur=0.000000100\n";
    /* The two categories of the program keep the first colours, whatever states there are. */
    check_numbers(text, (const unsigned[]){0, 1, 2, 6, 1, 3, 7, 4, 7}, 9);
    check_numbers(HEAD, (const unsigned[]){0, 1}, 2);
}

/* A program's own slice of that name is none of them. */
TEST(names_of_states_are_free)
{
    check_numbers(HEAD "1.000020000 slice #2 \"Running\" cat=\"work\" dur=0.000000100\n",
                  (const unsigned[]){0, 1, 0}, 3);
}
