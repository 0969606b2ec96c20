/* mpstat from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(mpstat, LOG_READS_ANYTHING)
