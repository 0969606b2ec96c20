/* Arbitrary bytes as input of the reader time_align. */
#include "log_fuzz.h"

LOG_FUZZ(time_align, LOG_READS_ANYTHING)
