/* dlio from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(dlio, LOG_READS_ANYTHING)
