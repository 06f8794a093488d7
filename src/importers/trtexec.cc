#include "importers/trtexec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/json_scan.h"
#include "base/tensorrt_layers.h"
#include "importers/decimal.h"

namespace strobe::importers {

using json::Scan;
using json::Value;
using trace::Lane;
using trace::RangeKind;

namespace {

constexpr size_t kLargest = size_t{1} << 30;

struct Member {
  std::string_view key;
  Value value;
};
using Object = std::vector<Member>;

Scan scan_members(const char*& at, const char* end, Object& object) {
  object.clear();
  return json::scan_object(at, end, [&object](std::string_view key, const char*& p, const char* stop) {
    object.push_back({key, {}});
    return json::scan_value(p, stop, object.back().value);
  });
}

const Value* find(const Object& object, std::string_view key) {
  const auto found =
      std::find_if(object.begin(), object.end(), [key](const Member& member) { return member.key == key; });
  return found == object.end() ? nullptr : &found->value;
}

std::string text_of(const Value* value) {
  if (!value) return {};
  return value->type == json::Type::kEscaped ? json::unescape(value->text) : std::string(value->text);
}

std::optional<int64_t> scaled(const Object& object, std::initializer_list<std::string_view> keys, int power) {
  for (const std::string_view key : keys)
    if (const Value* value = find(object, key)) return scaled_decimal(value->text, power);
  return std::nullopt;
}

std::optional<int64_t> ms_to_ns(const Object& object, std::initializer_list<std::string_view> keys) {
  constexpr int kMillisecondsToNanoseconds = 6;
  return scaled(object, keys, kMillisecondsToNanoseconds);
}

class Importer {
 public:
  Importer(std::string_view text, const ImportOptions& options) : text_(text), options_(options) {}

  Result<trace::Timeline> run() {
    const char* at = text_.data();
    const char* const end = at + text_.size();
    if (text_.starts_with("\xef\xbb\xbf")) at += 3;
    at = json::skip_space(at, end);
    if (at != end && *at == '{') {
      if (!layers(at, end)) return nothing();
    } else if (at != end && *at == '[') {
      ++at;
      each(at, end, [this](const Object& object) { entry(object); });
    }
    if (timeline_.ranges.size() == 0 && timeline_.kernels.empty() && timeline_.layers.empty()) return nothing();
    finish_times();
    timeline_.finish();
    return std::move(timeline_);
  }

 private:
  static Error nothing() {
    return bad_data(
        "nothing of trtexec in it, expected the JSON of --exportTimes, --exportProfile or --exportLayerInfo");
  }

  // Objects of the array at `at`. One that cannot be read ends it: counted as a fault.
  void each(const char* at, const char* end, const std::function<void(const Object&)>& take) {
    Object object;
    for (;;) {
      while (at != end && (json::is_space(*at) || *at == ',')) ++at;
      if (at != end && *at == ']') return;
      const char* const first = at;
      if (options_.stop && options_.stop->load(std::memory_order_relaxed)) {
        ++timeline_.losses.faults["import stopped by the user"];
        return;
      }
      if (at == end || scan_members(at, end, object) != Scan::kDone) {
        return breaks_off(first, end);
      }
      take(object);
    }
  }

  void breaks_off(const char* at, const char* end) {
    const auto place = std::to_string(at - text_.data());
    timeline_.losses.faults["the JSON breaks off or is damaged at byte " + place + ": bytes that were skipped"] +=
        static_cast<uint64_t>(end - at);
  }

  void entry(const Object& object) {
    if (const auto count = scaled(object, {"count"}, 0); count && !find(object, "name")) {
      timeline_.facts["trtexec.profiled_runs"] = std::to_string(*count);
    } else if (find(object, "averageMs") || find(object, "timeMs")) {
      layer_time(object);
    } else if (find(object, "startComputeMs")) {
      inference(object);
    } else {
      ++timeline_.losses.faults["entry of another kind"];
    }
  }

  // One inference of --exportTimes: times of three steps on the device and of the call that asked for them.
  void inference(const Object& object) {
    const int64_t frame = frames_++;
    const auto enqueue = ms_to_ns(object, {"startEnqMs"}), enqueued = ms_to_ns(object, {"endEnqMs"});
    if (enqueue && enqueued) {
      // Several enqueueing threads are not told apart; calls that overlap do not nest.
      const bool overlaps = *enqueue < last_enqueued_;
      last_enqueued_ = std::max(last_enqueued_, *enqueued);
      add("enqueue", RangeKind::kApi, lane(0), frame, *enqueue, *enqueued, overlaps);
    }
    struct Step {
      const char* name;
      RangeKind kind;
      size_t lane;
      std::array<std::string_view, 2> start, end, duration;
    };
    static const std::array<Step, 3> kSteps{{
        {"H2D", RangeKind::kCopy, 1, {"startH2dMs", "startInMs"}, {"endH2dMs", "endInMs"}, {"h2dMs", "inMs"}},
        {"compute", RangeKind::kGraph, 2, {"startComputeMs", ""}, {"endComputeMs", ""}, {"computeMs", ""}},
        {"D2H", RangeKind::kCopy, 3, {"startD2hMs", "startOutMs"}, {"endD2hMs", "endOutMs"}, {"d2hMs", "outMs"}},
    }};
    std::optional<int64_t> first, last;
    for (const Step& step : kSteps) {
      const auto start = ms_to_ns(object, {step.start[0], step.start[1]});
      auto end = ms_to_ns(object, {step.end[0], step.end[1]});
      // Times since the start are printed with six digits, which is coarse after a while; durations keep theirs.
      if (const auto duration = ms_to_ns(object, {step.duration[0], step.duration[1]}); start && duration)
        end = *start + *duration;
      if (!start || !end) {
        ++timeline_.losses.faults["step without times that can be read"];
        continue;
      }
      const int32_t range = add(step.name, step.kind, lane(step.lane), frame, *start, *end, false);
      trace::DeviceOp op{.range = range};
      if (step.kind == RangeKind::kCopy) op.copy_kind = step.lane == 1 ? 1 : 2;
      timeline_.device_ops.push_back(op);
      if (!first) first = start;
      last = end;
    }
    if (first && last) add("inference", RangeKind::kAnnotation, lane(0), frame, *first, *last, true);
  }

  // One layer of --exportProfile.
  void layer_time(const Object& object) {
    if (timeline_.tables.empty())
      timeline_.tables.emplace_back("trtexec profile",
                                    std::vector<Column>{{"name", "Layer, as TensorRT fused it", 0},
                                                        {"total_ns", "Sum over all profiled runs", 0},
                                                        {"avg_ns", "Mean of a run", 0},
                                                        {"median_ns", "Median of the runs; not in older files", 0},
                                                        {"share", "Share of all layers' time (0..1)", 6}});
    const auto cell = [](std::optional<int64_t> value) { return value ? Cell(*value) : Cell(); };
    const auto total = ms_to_ns(object, {"timeMs"}), average = ms_to_ns(object, {"averageMs"});
    constexpr int kDigits = 9;
    const auto percent = scaled(object, {"percentage"}, kDigits);
    const std::string name = text_of(find(object, "name"));
    timeline_.tables[0].add_row({name, cell(total), cell(average), cell(ms_to_ns(object, {"medianMs"})),
                                 percent ? Cell(static_cast<double>(*percent) / 1e11) : Cell()});
    trace::NetworkKernel kernel;
    kernel.name = timeline_.strings.intern(name);
    if (average) kernel.duration_ns.push_back(*average);
    timeline_.kernels.push_back(std::move(kernel));
  }

  // {"Layers": [...], "Bindings": [...]}: layers are names, or objects when the engine was built in detail.
  bool layers(const char* at, const char* end) {
    TensorrtLayerScan scan({at, static_cast<size_t>(end - at)});
    if (!scan.found()) return false;
    while (const auto layer = scan.next()) add_layer(*layer);
    if (scan.broken_at()) breaks_off(at + *scan.broken_at(), end);
    return true;
  }

  void add_layer(const TensorrtLayer& one) {
    auto& strings = timeline_.strings;
    trace::NetworkLayer layer;
    layer.name = strings.intern(one.name);
    layer.type = strings.intern(one.type);
    if (!one.shape.empty()) layer.shape = strings.intern(one.shape);
    trace::NetworkKernel kernel;
    kernel.name = layer.name;
    kernel.type = layer.type;
    kernel.implementation = strings.intern(one.tactic);
    kernel.layers.push_back(static_cast<int32_t>(timeline_.layers.size()));
    timeline_.layers.push_back(layer);
    timeline_.kernels.push_back(std::move(kernel));
  }

  // 0 the enqueueing thread, then copies in, compute, copies out.
  int32_t lane(size_t index) {
    if (timeline_.lanes.empty()) {
      const auto named = [this](Lane::Kind kind, int32_t id, const char* name) {
        const int32_t device = kind == Lane::Kind::kThread ? trace::kNone : 0;
        timeline_.lanes.push_back(
            {.kind = kind, .pid = 1, .tid = id, .name = timeline_.strings.intern(name), .device = device});
      };
      named(Lane::Kind::kThread, 1, "trtexec");
      named(Lane::Kind::kCopyEngine, 1, "H2D");
      named(Lane::Kind::kStream, 2, "compute");
      named(Lane::Kind::kCopyEngine, 3, "D2H");
      timeline_.processes.push_back({1, timeline_.strings.intern("trtexec")});
    }
    return static_cast<int32_t>(index);
  }

  int32_t add(const char* name, RangeKind kind, int32_t lane, int64_t frame, int64_t start, int64_t end, bool async) {
    trace::Ranges& ranges = timeline_.ranges;
    ranges.start_ns.push_back(start);
    ranges.end_ns.push_back(end);
    ranges.name.push_back(timeline_.strings.intern(name));
    ranges.lane.push_back(lane);
    ranges.frame.push_back(frame);
    ranges.is_async.push_back(async ? 1 : 0);
    ranges.open.push_back(0);
    ranges.kind.push_back(kind);
    return static_cast<int32_t>(ranges.size() - 1);
  }

  void finish_times() {
    trace::Ranges& ranges = timeline_.ranges;
    if (ranges.size() == 0) return;
    const int64_t first = *std::min_element(ranges.start_ns.begin(), ranges.start_ns.end());
    for (int64_t& time : ranges.start_ns) time -= first;
    for (int64_t& time : ranges.end_ns) time -= first;
    timeline_.duration_ns = *std::max_element(ranges.end_ns.begin(), ranges.end_ns.end());
  }

  std::string_view text_;
  const ImportOptions& options_;
  trace::Timeline timeline_;
  int64_t frames_ = 0;
  int64_t last_enqueued_ = INT64_MIN;
};

}  // namespace

bool looks_like_trtexec(std::string_view text) {
  const char* at = json::skip_space(text.data(), text.data() + text.size());
  if (at == text.data() + text.size()) return false;
  constexpr size_t kStart = 4096;
  const std::string_view start = text.substr(static_cast<size_t>(at - text.data()), kStart);
  if (start[0] == '{')
    return start.starts_with("{\"Layers\"") || start.find("\"Layers\":") < 64 || start.find("\"Layers\" :") < 64;
  return start.find("\"startComputeMs\"") != std::string_view::npos ||
         start.find("\"averageMs\"") != std::string_view::npos ||
         (start.find("\"timeMs\"") != std::string_view::npos && start.find("\"percentage\"") != std::string_view::npos);
}

Result<trace::Timeline> import_trtexec(ByteStream& stream, const ImportOptions& options) {
  STROBE_ASSIGN(std::string text, read_all(stream, kLargest));
  const size_t size = text.size();
  text.append(ByteStream::kPadding, '\0');
  if (options.on_progress) options.on_progress(stream.file_done(), stream.file_size());
  auto timeline = Importer({text.data(), size}, options).run();
  if (timeline && !stream.damage().empty()) ++timeline->losses.faults[stream.damage()];
  return timeline;
}

}  // namespace strobe::importers
