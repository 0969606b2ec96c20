/* A Perfetto file as text, by the rules of Perfetto's importer: what the writer's tests compare.
 *
 * One line per event in file order, `ts uuid TYPE cat|name key=value …`, and one per descriptor. It
 * is not Stave's reader on purpose: small, strict (a reference to something unknown is printed as
 * such), and without recovery. */
#ifndef TESTS_UNIT_PFTEXT_H
#define TESTS_UNIT_PFTEXT_H

#include "core/base/buf.h"

/* False: the bytes are no sequence of packets. Compressed packets are unpacked. */
bool pftext(const uint8_t *bytes, size_t len, struct sv_buf *out);

#endif
