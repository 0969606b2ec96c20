/* rocprofv3's JSON from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(rocprofv3, LOG_READS_ANYTHING)
