/* Decimal times of text formats to nanoseconds, without a double on the way. What does not fit into
 * int64 is refused: the reader reports the line as damage. */
#pragma once

#include "formats/lines.h"

/* "12.345678901" with the unit's power of ten: 9 for seconds, 6 for milliseconds. Digits past a
 * nanosecond are dropped; 1.5e+06 is read, too. Not negative. */
bool sv_decimal_ns(struct sv_text t, int decimals, int64_t *ns);
bool sv_decimal_signed_ns(struct sv_text t, int decimals, int64_t *ns); /* may begin with a minus */
