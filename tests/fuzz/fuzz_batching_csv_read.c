/* Arbitrary bytes as input of the reader batching-csv: the summary of a server. */
#include "log_fuzz.h"

LOG_FUZZ(batching_csv, LOG_MAY_REFUSE)
