#include "inject/range_stack.h"

#include <pthread.h>

#include <vector>

#include "strobe/record/annotate.h"

namespace strobe::inject {
namespace {

struct Open {
  const void* domain;
  int depth;
  bool recorded;
  bool ended;
};
using Stack = std::vector<Open>;

// A pointer takes the least of the little room that a library loaded later has for thread-local variables.
constinit thread_local Stack* stack __attribute__((tls_model("initial-exec"))) = nullptr;

Stack& stack_of_thread() {
  if (stack != nullptr) [[likely]]
    return *stack;
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, [](void* held) {
      stack = nullptr;
      delete static_cast<Stack*>(held);
    });
    return made;
  }();
  stack = new Stack;
  stack->reserve(32);
  ::pthread_setspecific(key, stack);
  return *stack;
}

void pop_ended(Stack& open) {
  while (!open.empty() && open.back().ended) {
    if (open.back().recorded) record::pop();
    open.pop_back();
  }
}

}  // namespace

int opened(const void* domain, bool recorded) {
  Stack& open = stack_of_thread();
  int depth = 0;
  for (size_t i = open.size(); i-- > 0;) {
    if (open[i].domain != domain || open[i].ended) continue;
    depth = open[i].depth + 1;
    break;
  }
  open.push_back({domain, depth, recorded, false});
  return depth;
}

int close_innermost(const void* domain) {
  Stack& open = stack_of_thread();
  for (size_t i = open.size(); i-- > 0;) {
    if (open[i].domain != domain || open[i].ended) continue;
    const int depth = open[i].depth;
    open[i].ended = true;
    if (i + 1 < open.size()) {
      static const record::Name kOutOfOrder("range ended before one of another domain inside it");
      if (open[i].recorded) record::mark(kOutOfOrder);
    } else {
      pop_ended(open);
    }
    return depth;
  }
  if (open.empty()) {
    record::pop();  // the recorder counts it as unmatched
  } else {
    static const record::Name kUnmatched("end of a range in a domain that has none open");
    record::mark(kUnmatched);
  }
  return -1;
}

bool innermost_is(const void* domain) {
  const Stack& open = stack_of_thread();
  return !open.empty() && open.back().domain == domain && open.back().recorded;
}

void forget_recorded() {
  if (stack == nullptr) return;
  for (Open& range : *stack) range.recorded = false;
}

}  // namespace strobe::inject
