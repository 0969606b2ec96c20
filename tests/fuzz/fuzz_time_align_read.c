/* time_align from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(time_align, LOG_READS_ANYTHING)
