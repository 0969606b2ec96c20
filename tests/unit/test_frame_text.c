/* Frames of stacks, taken apart: what is not certainly a place stays in the function's name. */
#include "core/stream/frame_text.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

/* "function|file|line" */
static const char *parts(const char *text)
{
    static char out[256];
    struct sv_frame_parts p = sv_frame_parts(text, strlen(text));
    snprintf(out, sizeof out, "%.*s|%.*s|%u", (int)p.function_len, text, (int)p.file_len,
             text + p.file_at, p.line);
    return out;
}

TEST(a_frame_is_a_function_and_maybe_a_place)
{
    CHECK_STR_EQ(parts("step (train.py:41)"), "step|train.py|41");
    CHECK_STR_EQ(parts("step (train.py)"), "step|train.py|0");
    CHECK_STR_EQ(parts("f(int, char) (a b.cc:7)"), "f(int, char)|a b.cc|7");
    CHECK_STR_EQ(parts("f (C:\\x.c:7)"), "f|C:\\x.c|7");
    CHECK_STR_EQ(parts("<module> (<string>:1)"), "<module>|<string>|1");
}

TEST(names_with_brackets_stay_whole)
{
    static const char *const whole[] = {"",
                                        "main",
                                        "f(int)",
                                        "f (int)",
                                        "f(void (int))",
                                        "f(int (*)(char))",
                                        "(x.c:1)",
                                        " (x.c:1)",
                                        "f (x.c:1",
                                        "f (:1)",
                                        "f (x.c:01)()",
                                        "[libc.so.6+0x1234]",
                                        "vfs_read_[k]"};
    for (size_t i = 0; i < TEST_COUNT(whole); i++) {
        CONTEXT("%s", whole[i]);
        struct sv_frame_parts p = sv_frame_parts(whole[i], strlen(whole[i]));
        CHECK_UINT_EQ(p.function_len, strlen(whole[i]));
        CHECK(p.file_len == 0 && p.line == 0);
    }
    /* Lines that would not be written the same way again belong to the file. */
    CHECK_STR_EQ(parts("f (x.c:0)"), "f|x.c:0|0");
    CHECK_STR_EQ(parts("f (x.c:01)"), "f|x.c:01|0");
    CHECK_STR_EQ(parts("f (x.c:12345678901)"), "f|x.c:12345678901|0");
}
