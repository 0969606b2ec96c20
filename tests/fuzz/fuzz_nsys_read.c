/* Arbitrary bytes as SQLite databases, as exports of Nsight Systems: most are refused when they are
 * opened. */
#include "log_fuzz.h"

LOG_FUZZ(nsys, LOG_MAY_REFUSE)
