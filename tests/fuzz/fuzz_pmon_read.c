/* Arbitrary bytes as input of the reader pmon. */
#include "log_fuzz.h"

LOG_FUZZ(pmon, LOG_READS_ANYTHING)
