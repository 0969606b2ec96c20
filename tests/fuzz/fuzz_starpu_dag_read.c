/* Arbitrary bytes as StarPU task graphs. */
#include "log_fuzz.h"

LOG_FUZZ(starpu_dag, LOG_READS_ANYTHING)
