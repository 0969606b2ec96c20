/* Arbitrary bytes as dumps of PyTorch's flight recorder, pickle or JSON: what is neither, or calls
 * code, is refused. */
#include "log_fuzz.h"

LOG_FUZZ(flight_recorder, LOG_MAY_REFUSE)
