/* StarPU's records from nowhere. */
#include "log_fuzz.h"

LOG_FUZZ(starpu_rec, LOG_READS_ANYTHING)
