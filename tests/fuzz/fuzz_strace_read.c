/* strace from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(strace, LOG_READS_ANYTHING)
