/* bpftrace from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(bpftrace, LOG_READS_ANYTHING)
