/* Arbitrary bytes as input of the reader iostat. */
#include "log_fuzz.h"

LOG_FUZZ(iostat, LOG_READS_ANYTHING)
