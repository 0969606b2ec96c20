/* mllog from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(mllog, LOG_READS_ANYTHING)
