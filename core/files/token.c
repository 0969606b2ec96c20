/* See token.h. */
#include "core/files/token.h"

#include <string.h>
#include <strings.h>

bool sv_token_equal(const char *token, const char *said, size_t said_len)
{
    size_t len = strlen(token);
    unsigned char a[SV_TOKEN_MAX] = {0}, b[SV_TOKEN_MAX] = {0};
    if (len > sizeof a || said_len > sizeof b)
        return false; /* no token is so long */
    memcpy(a, token, len);
    memcpy(b, said, said_len);
    volatile unsigned char differs = len != said_len;
    for (size_t i = 0; i < sizeof a; i++)
        differs |= a[i] ^ b[i];
    return differs == 0;
}

bool sv_token_is_bearer(const char *token, const char *header, size_t header_len)
{
    static const char scheme[] = "Bearer ";
    size_t n = sizeof scheme - 1;
    return header && header_len > n && strncasecmp(header, scheme, n) == 0 &&
           sv_token_equal(token, header + n, header_len - n);
}
