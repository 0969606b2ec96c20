/* Arbitrary bytes as TraceSmith's binary traces: what is shorter than their header is refused. */
#include "log_fuzz.h"

LOG_FUZZ(sbt, LOG_MAY_REFUSE)
