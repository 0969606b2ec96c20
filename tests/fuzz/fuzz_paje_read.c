/* Arbitrary bytes as Paje. */
#include "log_fuzz.h"

LOG_FUZZ(paje, LOG_READS_ANYTHING)
