/* iostat from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(iostat, LOG_READS_ANYTHING)
