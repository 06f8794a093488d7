#include "exporters/chrome.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "exporters/byte_sink.h"
#include "exporters/chrome_places.h"
#include "exporters/names.h"
#include "exporters/text.h"

namespace strobe::exporters {

namespace {

using trace::kNone;
using trace::RangeKind;
using trace::StringId;
using trace::Timeline;

// As PyTorch's profiler calls them. An annotation of a thread has a word of our own: its arguments are the program's,
// and none of them has a meaning by its name.
std::string_view category_of(RangeKind kind, bool on_device) {
  switch (kind) {
    case RangeKind::kAnnotation:
      return on_device ? "gpu_user_annotation" : "annotation";
    case RangeKind::kOperator:
      return "cpu_op";
    case RangeKind::kApi:
      return "cuda_runtime";
    case RangeKind::kOs:
      return "os";
    case RangeKind::kOverhead:
      return "overhead";
    case RangeKind::kKernel:
      return "kernel";
    case RangeKind::kCopy:
      return "gpu_memcpy";
    case RangeKind::kSet:
      return "gpu_memset";
    case RangeKind::kSync:
      return "cuda_sync";
    case RangeKind::kGraph:
      return "gpu_user_annotation";
  }
  return "annotation";
}

class Exporter {
 public:
  Exporter(const Timeline& timeline, ByteSink& sink)
      : timeline_(timeline), out_(sink.buffer()), sink_(sink), places_(chrome_places(timeline)) {
    seen_.resize(timeline.strings.size(), 0);
  }

  void run() {
    out_ += R"({"displayTimeUnit":"ns")";
    if (timeline_.utc_start_ns != 0) {
      out_ += R"(,"baseTimeNanoseconds":)";
      append(out_, timeline_.utc_start_ns);
    }
    out_ += R"(,"traceEvents":[)";
    write_names();
    for (size_t i = 0; i < timeline_.ranges.size() && sink_.good(); ++i) write_range(static_cast<int32_t>(i));
    write_marks();
    write_flows();
    write_launches();
    write_counters();
    out_ += "\n]";
    write_facts();
    out_ += "}\n";
  }

 private:
  // {"ph":"X","ts":1.000,"pid":1,"tid":2,"name":"..." and what the caller adds; end() closes it.
  void begin(std::string_view phase, int64_t time_ns, ChromePlace place, std::string_view name) {
    out_ += first_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"";
    first_ = false;
    out_ += phase;
    out_ += R"(","ts":)";
    append_microseconds(out_, time_ns);
    out_ += R"(,"pid":)";
    append(out_, place.pid);
    out_ += R"(,"tid":)";
    append(out_, place.tid);
    out_ += R"(,"name":)";
    append_json(out_, name);
    first_argument_ = true;
  }
  void category(std::string_view name) {
    out_ += R"(,"cat":)";
    append_json(out_, name);
  }
  void end() {
    out_ += first_argument_ ? "}" : "}}";
    sink_.flush_if_full();
  }
  // The key of an argument. Keys of one event must differ for every reader to see all.
  void key(std::string_view name) {
    out_ += first_argument_ ? R"(,"args":{)" : ",";
    first_argument_ = false;
    append_json(out_, name);
    out_ += ':';
  }
  void number(std::string_view name, int64_t value) {
    mark_seen(name);
    key(name);
    append(out_, value);
  }
  void text(std::string_view name, std::string_view value) {
    mark_seen(name);
    key(name);
    append_json(out_, value);
  }
  // JSON has no word for what is no number.
  void append_real(double value) {
    const bool as_text = !std::isfinite(value);
    if (as_text) out_ += '"';
    append(out_, value);
    if (as_text) out_ += '"';
  }

  // How often a key of the timeline's was used in this event is kept beside its text.
  void mark_seen(std::string_view name) {
    const int64_t id = timeline_.strings.find(name);
    if (id != kNone) seen_[static_cast<size_t>(id)] = event_;
  }
  void argument(StringId id, const std::variant<int64_t, double, StringId>& value) {
    if (seen_[id] == event_) {
      key(std::string(timeline_.strings[id]) + " #" + std::to_string(++repeated_ + 1));
    } else {
      key(timeline_.strings[id]);
    }
    seen_[id] = event_;
    if (const auto* whole = std::get_if<0>(&value)) {
      append(out_, *whole);
    } else if (const auto* real = std::get_if<1>(&value)) {
      append_real(*real);
    } else {
      append_json(out_, timeline_.strings[std::get<2>(value)]);
    }
  }

  ChromePlace place(int32_t lane) const {
    return lane == kNone ? ChromePlace{} : places_.lanes[static_cast<size_t>(lane)];
  }

  void name_of_place(std::string_view what, ChromePlace place, std::string_view name) {
    begin("M", 0, place, what);
    key("name");
    append_json(out_, name);
    end();
  }
  void order_of_place(std::string_view what, ChromePlace place, size_t index) {
    begin("M", 0, place, what);
    key("sort_index");
    append(out_, static_cast<int64_t>(index));
    end();
  }

  void write_names() {
    for (size_t i = 0; i < places_.processes.size(); ++i) {
      const ChromeProcess& process = places_.processes[i];
      if (!process.name.empty()) name_of_place("process_name", {process.pid, 0}, process.name);
      order_of_place("process_sort_index", {process.pid, 0}, i);
    }
    for (size_t i = 0; i < timeline_.lanes.size(); ++i) {
      const trace::Lane& lane = timeline_.lanes[i];
      const ChromePlace where = place(static_cast<int32_t>(i));
      if (lane.name != 0) {
        name_of_place("thread_name", where, timeline_.strings[lane.name]);
      } else if (lane.kind != trace::Lane::Kind::kThread) {
        name_of_place("thread_name", where, "stream " + std::to_string(lane.tid));
      }
      order_of_place("thread_sort_index", where, i);
    }
  }

  void begin_arguments(const trace::Ranges& ranges, size_t row) {
    ++event_;
    repeated_ = 0;
    if (ranges.frame[row] != trace::kNoFrame) number("frame", ranges.frame[row]);
    if (ranges.category_of(row) != 0) text("category", timeline_.strings[ranges.category_of(row)]);
    if (ranges.domain_of(row) != 0) text("domain", timeline_.strings[ranges.domain_of(row)]);
  }

  void write_range(int32_t range) {
    const auto row = static_cast<size_t>(range);
    const trace::Ranges& ranges = timeline_.ranges;
    const std::string_view name = timeline_.strings[ranges.name[row]];
    const trace::Lane& lane = timeline_.lanes[static_cast<size_t>(ranges.lane[row])];
    const ChromePlace where = place(ranges.lane[row]);
    const bool on_device = lane.kind != trace::Lane::Kind::kThread;
    const std::string_view kind = category_of(ranges.kind[row], on_device);
    const bool open = ranges.open[row] != 0, is_async = ranges.is_async[row] != 0;
    if (is_async) {
      begin("b", ranges.start_ns[row], where, name);
      async_id(range);
    } else {
      begin(open ? "B" : "X", ranges.start_ns[row], where, name);
      if (!open) {
        out_ += R"(,"dur":)";
        append_microseconds(out_, ranges.end_ns[row] - ranges.start_ns[row]);
      }
    }
    category(kind);
    begin_arguments(ranges, row);
    if (on_device) write_place(lane);
    write_details(range);
    for (; argument_ < timeline_.arguments.size() && timeline_.arguments.range[argument_] == range; ++argument_)
      argument(timeline_.arguments.key[argument_], timeline_.arguments.value[argument_]);
    end();
    if (!is_async || open) return;
    begin("e", ranges.end_ns[row], where, name);
    async_id(range);
    category(kind);
    end();
  }

  void async_id(int32_t range) {
    out_ += R"(,"id":)";
    append(out_, int64_t{range} + 1);
  }

  void write_place(const trace::Lane& lane) {
    if (lane.device != kNone) number("device", lane.device);
    if (lane.context != kNone) number("context", lane.context);
    number("stream", lane.tid);
  }

  void write_details(int32_t range) {
    for (; call_ < timeline_.api_calls.size() && timeline_.api_calls[call_].range <= range; ++call_)
      if (timeline_.api_calls[call_].range == range && timeline_.api_calls[call_].correlation != 0)
        number("correlation", timeline_.api_calls[call_].correlation);
    for (; op_ < timeline_.device_ops.size() && timeline_.device_ops[op_].range <= range; ++op_)
      if (timeline_.device_ops[op_].range == range) write_op(timeline_.device_ops[op_]);
  }

  void write_op(const trace::DeviceOp& op) {
    const auto known = [this](std::string_view name, int64_t value, int64_t unknown) {
      if (value != unknown) number(name, value);
    };
    const auto triple = [this](std::string_view name, const uint32_t(&sizes)[3]) {
      if (sizes[0] == 0) return;
      mark_seen(name);
      key(name);
      for (int axis = 0; axis < 3; ++axis) {
        out_ += axis == 0 ? '[' : ',';
        append(out_, int64_t{sizes[axis]});
      }
      out_ += ']';
    };
    known("correlation", op.correlation, 0);
    known("bytes", op.bytes, -1);
    triple("grid", op.grid);
    triple("block", op.block);
    known("registers per thread", op.registers, -1);
    if (op.static_shared >= 0 || op.dynamic_shared >= 0)
      number("shared memory", int64_t{std::max(op.static_shared, 0)} + std::max(op.dynamic_shared, 0));
    if (op.static_shared > 0) number("static shared memory", op.static_shared);
    if (const auto sync = name_of(kSyncKinds, op.sync_type); !sync.empty()) text("cuda_sync_kind", sync);
    known("wait_on_stream", op.sync_stream, kNone);
    known("wait_on_cuda_event_record_corr_id", op.sync_correlation, 0);
    // PyTorch has these in the name.
    const std::string_view name = timeline_.strings[timeline_.ranges.name[static_cast<size_t>(op.range)]];
    if (name.starts_with("Memcpy ") || name.starts_with("Memset ")) return;
    if (const auto copy = name_of(kCopyKinds, op.copy_kind); !copy.empty()) text("copy", copy);
    if (const auto from = name_of(kMemoryKinds, op.source_kind); !from.empty()) text("from memory", from);
    if (const auto to = name_of(kMemoryKinds, op.target_kind); !to.empty()) text("to memory", to);
  }

  void write_marks() {
    const trace::Marks& marks = timeline_.marks;
    const trace::MarkArguments& arguments = timeline_.mark_arguments;
    size_t one = 0;
    for (size_t i = 0; i < marks.size() && sink_.good(); ++i) {
      begin("i", marks.time_ns[i], place(marks.lane[i]), timeline_.strings[marks.name[i]]);
      out_ += R"(,"s":"t")";
      category("mark");
      ++event_;
      repeated_ = 0;
      if (marks.frame[i] != trace::kNoFrame) number("frame", marks.frame[i]);
      if (marks.category_of(i) != 0) text("category", timeline_.strings[marks.category_of(i)]);
      if (marks.domain_of(i) != 0) text("domain", timeline_.strings[marks.domain_of(i)]);
      for (; one < arguments.size() && arguments.mark[one] == static_cast<int32_t>(i); ++one)
        argument(arguments.key[one], arguments.value[one]);
      end();
    }
  }

  void arrow(std::string_view kind, std::string_view name, int64_t id, ChromePlace from, int64_t from_ns,
             ChromePlace to, int64_t to_ns) {
    const auto one_end = [&](const char* phase, ChromePlace where, int64_t time_ns) {
      begin(phase, time_ns, where, name);
      category(kind);
      out_ += R"(,"id":)";
      append(out_, id);
      if (*phase == 'f') out_ += R"(,"bp":"e")";
      end();
    };
    one_end("s", from, from_ns);
    one_end("f", to, to_ns);
  }

  void write_flows() {
    const trace::Flows& flows = timeline_.flows;
    for (size_t i = 0; i < flows.size() && sink_.good(); ++i)
      arrow("flow", timeline_.strings[flows.name[i]], static_cast<int64_t>(i) + 1, place(flows.from_lane[i]),
            flows.from_ns[i], place(flows.to_lane[i]), flows.to_ns[i]);
  }

  void write_launches() {
    const trace::Ranges& ranges = timeline_.ranges;
    for (size_t i = 0; i < timeline_.device_ops.size() && sink_.good(); ++i) {
      const trace::DeviceOp& op = timeline_.device_ops[i];
      if (op.launch == kNone) continue;
      const auto from = static_cast<size_t>(op.launch), to = static_cast<size_t>(op.range);
      arrow("ac2g", "ac2g", static_cast<int64_t>(timeline_.flows.size() + i) + 1, place(ranges.lane[from]),
            ranges.start_ns[from], place(ranges.lane[to]), ranges.start_ns[to]);
    }
  }

  void write_counters() {
    const trace::Counters& counters = timeline_.counters;
    for (size_t i = 0; i < counters.size() && sink_.good(); ++i) {
      const int32_t lane = counters.lane_of(i);
      const ChromePlace where = lane == kNone ? ChromePlace{counters.pid[i], 0} : place(lane);
      begin("C", counters.time_ns[i], where, timeline_.strings[counters.name[i]]);
      // Such counters belong to processes; an id keeps those of threads apart.
      if (lane != kNone) {
        out_ += R"(,"id":")";
        append(out_, where.tid);
        out_ += '"';
      }
      key("value");
      append_real(counters.value[i]);
      end();
    }
  }

  // Members of the outermost object. Importing puts "trace." before their names.
  void write_facts() {
    constexpr std::string_view kImported = "trace.";
    constexpr std::string_view kOurs[] = {"traceEvents", "displayTimeUnit", "baseTimeNanoseconds", "systemTraceEvents"};
    const auto member = [this](std::string_view name, std::string_view value) {
      out_ += ",\n";
      append_json(out_, name);
      out_ += ':';
      append_json(out_, value);
    };
    for (const auto& [name, value] : timeline_.facts) {
      std::string_view plain = name;
      if (plain.starts_with(kImported) && !timeline_.facts.contains(name.substr(kImported.size())))
        plain.remove_prefix(kImported.size());
      if (std::find(std::begin(kOurs), std::end(kOurs), plain) == std::end(kOurs)) member(plain, value);
    }
    if (timeline_.losses.dropped_records > 0)
      member("loss: dropped records", std::to_string(timeline_.losses.dropped_records));
    for (const auto& [name, count] : timeline_.losses.faults) member("loss: " + name, std::to_string(count));
  }

  const Timeline& timeline_;
  std::string& out_;
  ByteSink& sink_;
  const ChromePlaces places_;
  std::vector<uint32_t> seen_;  // by StringId: number of the event that last used it as a key
  uint32_t event_ = 0;
  int repeated_ = 0;
  size_t argument_ = 0, call_ = 0, op_ = 0;
  bool first_ = true, first_argument_ = true;
};

}  // namespace

Result<void> write_chrome(const Timeline& timeline, const std::filesystem::path& output) {
  return write_whole_file(output, output.extension() == ".gz",
                          [&timeline](ByteSink& sink) { Exporter(timeline, sink).run(); });
}

}  // namespace strobe::exporters
