/* Arbitrary bytes as a log of SGLang. */
#include "log_fuzz.h"

LOG_FUZZ(sglang_log, LOG_READS_ANYTHING)
