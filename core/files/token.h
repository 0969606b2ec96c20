/* The secret that a caller shares with a listener. Called by listeners and by stave-server. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { SV_TOKEN_MAX = 200 };

/* In the same time wherever they differ. */
bool sv_token_equal(const char *token, const char *said, size_t said_len);
/* "Bearer TOKEN", the value of a header authorization; NULL: there is none. */
bool sv_token_is_bearer(const char *token, const char *header, size_t header_len);
