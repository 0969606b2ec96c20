/* Arbitrary bytes as input of the reader mpstat. */
#include "log_fuzz.h"

LOG_FUZZ(mpstat, LOG_READS_ANYTHING)
