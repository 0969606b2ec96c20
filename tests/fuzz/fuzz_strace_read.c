/* Arbitrary bytes as input of the reader strace. */
#include "log_fuzz.h"

LOG_FUZZ(strace, LOG_READS_ANYTHING)
