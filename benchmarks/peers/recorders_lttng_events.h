// LTTng-UST generates code out of this file, which it includes several times.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER strobe_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "peers/recorders_lttng_events.h"

#if !defined(STROBE_BENCH_LTTNG_EVENTS_H_) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define STROBE_BENCH_LTTNG_EVENTS_H_
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(strobe_bench, begin, LTTNG_UST_TP_ARGS(int64_t, batch),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int64_t, batch, batch)))
LTTNG_UST_TRACEPOINT_EVENT(strobe_bench, begin_named, LTTNG_UST_TP_ARGS(const char*, name),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_string(name, name)))
LTTNG_UST_TRACEPOINT_EVENT(strobe_bench, end, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
#endif

#include <lttng/tracepoint-event.h>
