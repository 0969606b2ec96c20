/* TraceSmith's binary traces from nowhere: what is shorter than their header is refused. */
#include "log_fuzz.h"

LOG_FUZZ(sbt, LOG_MAY_REFUSE)
