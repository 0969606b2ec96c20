/* Arbitrary bytes as input of the reader of roles. */
#include "log_fuzz.h"

LOG_FUZZ(roles, LOG_READS_ANYTHING)
