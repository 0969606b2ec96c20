/* Arbitrary bytes as input of the reader dlio. */
#include "log_fuzz.h"

LOG_FUZZ(dlio, LOG_READS_ANYTHING)
