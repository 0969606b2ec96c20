/* Arbitrary bytes as rocprofv3's JSON. */
#include "log_fuzz.h"

LOG_FUZZ(rocprofv3, LOG_READS_ANYTHING)
