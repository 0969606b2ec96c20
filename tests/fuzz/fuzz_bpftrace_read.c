/* Arbitrary bytes as input of the reader bpftrace. */
#include "log_fuzz.h"

LOG_FUZZ(bpftrace, LOG_READS_ANYTHING)
