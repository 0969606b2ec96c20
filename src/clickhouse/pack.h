/* Compression of what is sent: blocks of zstd in ClickHouse's own frame, or gzip where the build
 * has no zstd. Both carry a checksum that the server checks. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"

struct sv_ch_packer;

struct sv_ch_packer *sv_ch_packer_new(void);
void sv_ch_packer_free(struct sv_ch_packer *p);
/* Makes `to`, a new buffer, also on failure. */
int sv_ch_pack(struct sv_ch_packer *p, const void *bytes, size_t n, struct sv_buf *to,
               struct sv_err *err);

/* What the request must say of it. */
extern const char *const sv_ch_pack_header;   /* a line; NULL: none */
extern const char *const sv_ch_pack_settings; /* for the URL, "&a=b"; "" */
