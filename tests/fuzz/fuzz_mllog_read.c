/* Arbitrary bytes as input of the reader mllog. */
#include "log_fuzz.h"

LOG_FUZZ(mllog, LOG_READS_ANYTHING)
