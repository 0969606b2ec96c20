/* Arbitrary bytes as a log of vLLM. */
#include "log_fuzz.h"

LOG_FUZZ(vllm_log, LOG_READS_ANYTHING)
