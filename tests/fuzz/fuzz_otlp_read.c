/* Arbitrary bytes as OTLP traces: protobuf, with lengths before each message, JSON, JSON lines. */
#include "log_fuzz.h"

LOG_FUZZ(otlp, LOG_READS_ANYTHING)
