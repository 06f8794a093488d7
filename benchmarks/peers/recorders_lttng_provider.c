/* The tracepoints of recorders_lttng_events.h. */
#include <stdint.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "peers/recorders_lttng_events.h"
