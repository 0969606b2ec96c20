/* What a server says of a failure: its number and its own words, cut to a line. The bytes are
 * anybody's. */
#include "clickhouse/client.h"

#include <stdio.h>
#include <string.h>

bool sv_ch_is_about_sql(int number)
{
    /* Numbers of ClickHouse's dbms/src/Common/ErrorCodes.cpp: wrong or unknown names, functions,
     * arguments, types, syntax, nothing may be changed. */
    static const int numbers[] = {10, 16, 36, 42, 43,  46,  47,  52,
                                  53, 60, 62, 63, 164, 179, 184, 215};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

static void cut_at(char *text, const char *mark)
{
    char *found = strstr(text, mark);
    if (found && found != text)
        *found = 0;
}

int sv_ch_words(const char *body, size_t n, char *to, size_t size)
{
    static const char middle[] = "e.displayText() = ";
    char text[1024];
    int number = 0;
    size_t len = 0;
    for (size_t i = 0; i < n && len < sizeof text - 1 && body[i]; i++) {
        bool is_blank = (unsigned char)body[i] <= ' ' || body[i] == 127;
        if (!is_blank)
            text[len++] = body[i];
        else if (len && text[len - 1] != ' ')
            text[len++] = ' ';
    }
    text[len] = 0;
    if (sscanf(text, "Code: %9d", &number) != 1)
        number = 0;
    cut_at(text, ", e.what() = ");
    cut_at(text, ", Stack trace");
    const char *words = strstr(text, middle);
    words = words ? words + strlen(middle) : text;
    if (number && words != text)
        snprintf(to, size, "%.320s (code %d)", words, number);
    else
        snprintf(to, size, "%.340s", *words ? words : "no reason given");
    return number;
}
