/* pmon from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(pmon, LOG_READS_ANYTHING)
