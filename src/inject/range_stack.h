// The open ranges of a thread as other libraries nest them: each of their domains has a stack of its own, while the
// recorder has one a thread. A range that is ended while one of another domain is open inside it stays open until that
// one has ended, so that ranges nest; a mark says when it really ended.
#pragma once

#include <cstdint>

namespace strobe::inject {

// Notes a range that the caller has just begun in the recorder (recorded) or left out. Its depth within its domain,
// from 0.
int opened(const void* domain, bool recorded);
// Ends the innermost range of the domain in the recorder. Its depth, or -1: none was open (a fault in the trace).
int close_innermost(const void* domain);
// Whether the innermost open range of this thread was recorded and belongs to the domain.
bool innermost_is(const void* domain);
// In a forked child: what is open was begun in the parent's recording.
void forget_recorded();

}  // namespace strobe::inject
