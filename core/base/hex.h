/* Hexadecimal digits. */
#pragma once

/* 0 to 15; -1: none. */
static inline int sv_hex_lower(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline int sv_hex_digit(char c)
{
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : sv_hex_lower(c);
}
