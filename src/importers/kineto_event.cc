#include "importers/kineto_event.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace strobe::importers {

using json::Scan;
using json::Value;

json::Scan scan_event(const char*& at, const char* end, Event& event) {
  event.phase = 0;
  event.binds_to_enclosing = false;
  event.name = event.category = event.pid = event.tid = event.time = event.duration = event.id = event.local_id = {};
  event.args.clear();
  Value phase, bind, other;
  bool has_args = false;
  const auto member_of = [&](std::string_view key) -> Value* {
    switch (key.size()) {
      case 2:
        if (key == "ph") return &phase;
        if (key == "ts") return &event.time;
        if (key == "id") return &event.id;
        return key == "bp" ? &bind : nullptr;
      case 3:
        if (key == "pid") return &event.pid;
        if (key == "tid") return &event.tid;
        if (key == "dur") return &event.duration;
        if (key == "id2") return &event.local_id;
        return key == "cat" ? &event.category : nullptr;
      case 4:
        return key == "name" ? &event.name : nullptr;
      default:
        return nullptr;
    }
  };
  const Scan result = json::scan_object(at, end, [&](std::string_view key, const char*& p, const char* stop) {
    if (key == "args" && p != stop && *p == '{') {
      if (has_args) return Scan::kBad;
      has_args = true;
      return json::scan_object(p, stop, [&](std::string_view name, const char*& q, const char* last) {
        event.args.emplace_back();
        event.args.back().key = name;
        return json::scan_value(q, last, event.args.back().value);
      });
    }
    Value* member = member_of(key);
    if (!member) return json::scan_value(p, stop, other);
    if (member->type != json::Type::kNone) return Scan::kBad;
    return json::scan_value(p, stop, *member);
  });
  if (result != Scan::kDone) return result;
  if (phase.type == json::Type::kString && phase.text.size() == 1) event.phase = phase.text[0];
  event.binds_to_enclosing = bind.text == "e";
  return Scan::kDone;
}

Category category_of(std::string_view name) {
  using trace::RangeKind;
  struct Row {
    std::string_view name;
    Category category;
  };
  static constexpr std::array<Row, 36> kRows{{
      {"cpu_op", {RangeKind::kOperator, true, false, false}},
      {"Operator", {RangeKind::kOperator, true, false, false}},
      {"hpu_op", {RangeKind::kOperator, true, false, false}},
      {"python_function", {RangeKind::kOperator, true, false, false}},
      {"user_annotation", {RangeKind::kAnnotation, true, false, false}},
      {"cpu_instant_event", {RangeKind::kAnnotation, true, false, false}},
      {"Trace", {RangeKind::kAnnotation, true, false, false}},
      {"gpu_user_annotation", {RangeKind::kAnnotation, true, true, false}},
      {"cuda_runtime", {RangeKind::kApi, true, false, false}},
      {"cuda_driver", {RangeKind::kApi, true, false, false}},
      {"Runtime", {RangeKind::kApi, true, false, false}},
      {"hip_runtime", {RangeKind::kApi, true, false, false}},
      {"hip_driver", {RangeKind::kApi, true, false, false}},
      {"xpu_runtime", {RangeKind::kApi, true, false, false}},
      {"xpu_driver", {RangeKind::kApi, true, false, false}},
      {"mtia_runtime", {RangeKind::kApi, true, false, false}},
      {"glow_runtime", {RangeKind::kApi, true, false, false}},
      {"privateuse1_runtime", {RangeKind::kApi, true, false, false}},
      {"privateuse1_driver", {RangeKind::kApi, true, false, false}},
      {"overhead", {RangeKind::kOverhead, true, false, false}},
      {"Overhead", {RangeKind::kOverhead, true, false, false}},
      {"kernel", {RangeKind::kKernel, true, true, false}},
      {"Kernel", {RangeKind::kKernel, true, true, false}},
      {"concurrent_kernel", {RangeKind::kKernel, true, true, false}},
      {"gpu_memcpy", {RangeKind::kCopy, true, true, false}},
      {"Memcpy", {RangeKind::kCopy, true, true, false}},
      {"gpu_memset", {RangeKind::kSet, true, true, false}},
      {"Memset", {RangeKind::kSet, true, true, false}},
      {"cuda_sync", {RangeKind::kSync, true, true, false}},
      {"gpu_sync", {RangeKind::kSync, true, true, false}},
      {"cuda_event", {RangeKind::kSync, true, true, false}},
      {"ac2g", {RangeKind::kAnnotation, true, false, true}},
      {"async_cpu_to_gpu", {RangeKind::kAnnotation, true, false, true}},
      {"async_gpu", {RangeKind::kAnnotation, true, false, true}},
      {"fwdbwd", {RangeKind::kAnnotation, true, false, false}},
      {"forward_backward", {RangeKind::kAnnotation, true, false, false}},
  }};
  // "async" alone is too common a word; its arrows are told by their name, "launch".
  const auto found = std::find_if(kRows.begin(), kRows.end(), [name](const Row& row) { return row.name == name; });
  return found == kRows.end() ? Category{} : found->category;
}

}  // namespace strobe::importers
