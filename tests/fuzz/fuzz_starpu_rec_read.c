/* Arbitrary bytes as StarPU's records. */
#include "log_fuzz.h"

LOG_FUZZ(starpu_rec, LOG_READS_ANYTHING)
