#include "importers/nvprof_rows.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "importers/decimal.h"

namespace strobe::importers::nvprof {

using trace::RangeKind;

namespace {

struct Unit {
  std::string_view suffix;
  int64_t factor;
};

// The unit that the text ends in, and the number before it.
template <size_t kCount>
const Unit* unit_of(std::string_view text, const std::array<Unit, kCount>& units, std::string_view& number) {
  const size_t end = text.find_first_not_of("0123456789.+-");
  // An exponent: "1.2e+03s".
  size_t split = end;
  if (end != std::string_view::npos && text[end] == 'e' && end + 1 < text.size())
    split = text.find_first_not_of("0123456789+-", end + 1);
  if (split == std::string_view::npos || split == 0) return nullptr;
  for (const Unit& unit : units) {
    if (text.substr(split) != unit.suffix) continue;
    number = text.substr(0, split);
    return &unit;
  }
  return nullptr;
}

constexpr std::array<Unit, 4> kSizes{{{"B", 1}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}}};

std::optional<double> real(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

// A value of a metric in its base unit.
struct Measure {
  Cell value;
  std::string unit;
};

std::optional<Measure> measure(std::string_view text) {
  if (const auto part = share(text)) return Measure{*part, "share"};
  if (const auto count = whole_number(text)) return Measure{*count, ""};
  if (const auto number = real(text)) return Measure{*number, ""};
  if (const size_t per = text.rfind("/s"); per != std::string_view::npos && per + 2 == text.size()) {
    std::string_view number;
    const Unit* unit = unit_of(text.substr(0, per), kSizes, number);
    const auto value = unit ? real(number) : std::nullopt;
    if (value) return Measure{*value * static_cast<double>(unit->factor), "B/s"};
  }
  if (const auto size = bytes_of(text)) return Measure{*size, "B"};
  // A level: "Low (1)".
  if (const size_t open = text.rfind('('); open != std::string_view::npos && text.back() == ')')
    if (const auto level = whole_number(text.substr(open + 1, text.size() - open - 2))) return Measure{*level, "level"};
  if (text.starts_with('<') && text.ends_with('>')) return Measure{{}, ""};  // "<OVERFLOW>"
  return std::nullopt;
}

uint8_t memory_kind(std::string_view text) {
  constexpr std::array<std::string_view, 5> kKinds{"Pageable", "Pinned", "Device", "Array", "Managed"};
  const auto found = std::find(kKinds.begin(), kKinds.end(), text);
  return found == kKinds.end() ? 7 : static_cast<uint8_t>(found - kKinds.begin());
}

uint8_t copy_kind(std::string_view name) {
  struct Word {
    std::string_view text;
    uint8_t kind;
  };
  constexpr std::array<Word, 12> kWords{{{"Unified Memory Memcpy HtoD", 11},
                                         {"Unified Memory Memcpy DtoH", 12},
                                         {"HtoD", 1},
                                         {"DtoH", 2},
                                         {"HtoA", 3},
                                         {"AtoH", 4},
                                         {"AtoA", 5},
                                         {"AtoD", 6},
                                         {"DtoA", 7},
                                         {"DtoD", 8},
                                         {"HtoH", 9},
                                         {"PtoP", 10}}};
  for (const Word& word : kWords)
    if (name.find(word.text) != std::string_view::npos) return word.kind;
  return 0;
}

// "(64 64 1)".
void read_triple(std::string_view text, uint32_t (&triple)[3]) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint32_t& one : triple) {
    while (at != end && (*at == ' ' || *at == '(')) ++at;
    const auto result = std::from_chars(at, end, one);
    if (result.ec != std::errc()) return;
    at = result.ptr;
  }
}

// Takes " [123]" (or the same inside a last bracket) off a name.
int64_t take_correlation(std::string_view& name) {
  const bool in_bracket = name.ends_with("])");
  const std::string_view text = in_bracket ? name.substr(0, name.size() - 1) : name;
  const size_t open = text.rfind(" [");
  if (!text.ends_with(']') || open == std::string_view::npos) return 0;
  const auto number = whole_number(text.substr(open + 2, text.size() - open - 3));
  if (!number) return 0;
  name = name.substr(0, open);
  // "cudaLaunch (kernel(int*) [85])" is a call of cudaLaunch.
  if (in_bracket) name = name.substr(0, std::min(name.find(" ("), name.size()));
  return *number;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split_cells(std::string_view line, size_t most) {
  std::vector<std::string_view> cells;
  line = trimmed(line);
  while (cells.size() + 1 < most) {
    const size_t gap = std::min(line.find("  "), line.find('\t'));
    if (gap == std::string_view::npos) break;
    cells.push_back(line.substr(0, gap));
    line = trimmed(line.substr(gap));
  }
  if (!line.empty()) cells.push_back(line);
  return cells;
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (text.empty() || result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}

std::optional<double> share(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto percent = real(text.substr(0, text.size() - 1));
  if (!percent) return std::nullopt;
  return *percent / 100;
}

std::optional<int64_t> time_ns(std::string_view text) {
  constexpr std::array<Unit, 5> kTimes{{{"s", 9}, {"ms", 6}, {"us", 3}, {"ns", 0}, {"min", 60}}};
  std::string_view number;
  const Unit* unit = unit_of(text, kTimes, number);
  if (!unit) return std::nullopt;
  if (unit->suffix != "min") return scaled_decimal(number, static_cast<int>(unit->factor));
  const auto value = scaled_decimal(number, 9);
  if (!value || std::abs(*value) > INT64_MAX / 60) return std::nullopt;
  return *value * 60;
}

std::optional<int64_t> bytes_of(std::string_view text) {
  std::string_view number;
  const Unit* unit = unit_of(text, kSizes, number);
  if (!unit) return std::nullopt;
  constexpr int kDigits = 6;
  constexpr double kScale = 1e6;
  const auto value = scaled_decimal(number, kDigits);
  if (!value) return std::nullopt;
  const double bytes = static_cast<double>(*value) * static_cast<double>(unit->factor) / kScale;
  if (bytes > 1e18) return std::nullopt;
  return std::llround(bytes);
}

std::string_view Row::cell(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  const auto index = static_cast<size_t>(found - columns.begin());
  return index < cells.size() ? cells[index] : std::string_view{};
}

void Builder::process(int32_t pid, std::string_view command) {
  timeline_.facts.try_emplace("nvprof.command", command);
  const auto same = [pid](const trace::Process& process) { return process.pid == pid; };
  if (std::none_of(timeline_.processes.begin(), timeline_.processes.end(), same))
    timeline_.processes.push_back({pid, timeline_.strings.intern(command)});
}

void Builder::warning(std::string_view text) {
  constexpr size_t kMost = 50;
  if (++warnings_ <= kMost) timeline_.facts["nvprof.warning." + std::to_string(warnings_)] = text;
}

Table& Builder::table(const std::string& title, const std::vector<Column>& columns) {
  const auto [found, is_new] = tables_.try_emplace(title, timeline_.tables.size());
  if (is_new) timeline_.tables.emplace_back(title, columns);
  return timeline_.tables[found->second];
}

bool Builder::summary(int32_t pid, const std::string& group, const Row& row) {
  const auto part = share(row.cell("Time(%)"));
  const auto total = time_ns(row.cell("Time")), average = time_ns(row.cell("Avg"));
  const auto least = time_ns(row.cell("Min")), most = time_ns(row.cell("Max"));
  const auto calls = whole_number(row.cell("Calls"));
  if (!row.complete() || !part || !total || !calls || !average || !least || !most) return false;
  Table& table =
      this->table("nvprof " + (group.empty() ? "activities" : group), {{"pid", "Process", 0},
                                                                       {"name", "Kernel, copy or call", 0},
                                                                       {"share", "Share of the group's time (0..1)", 4},
                                                                       {"total_ns", "Sum of all durations", 0},
                                                                       {"calls", "How often", 0},
                                                                       {"avg_ns", "Mean duration", 0},
                                                                       {"min_ns", "Shortest", 0},
                                                                       {"max_ns", "Longest", 0}});
  table.add_row({int64_t{pid}, std::string(row.cell("Name")), *part, *total, *calls, *average, *least, *most});
  return true;
}

bool Builder::dependency(int32_t pid, const Row& row) {
  const auto part = share(row.cell("Critical path(%)"));
  const auto path = time_ns(row.cell("Critical path")), waiting = time_ns(row.cell("Waiting time"));
  if (!row.complete() || !part || !path || !waiting) return false;
  Table& table = this->table("nvprof dependency analysis", {{"pid", "Process", 0},
                                                            {"name", "Kernel, copy or call", 0},
                                                            {"share", "Share of the critical path (0..1)", 4},
                                                            {"path_ns", "Time on the critical path", 0},
                                                            {"waiting_ns", "Time spent waiting for others", 0}});
  table.add_row({int64_t{pid}, std::string(row.cell("Name")), *part, *path, *waiting});
  return true;
}

bool Builder::counted(int32_t pid, bool metrics, const std::string& device, const std::string& kernel, const Row& row) {
  const auto invocations = whole_number(row.cell("Invocations"));
  const auto least = measure(row.cell("Min")), most = measure(row.cell("Max")), average = measure(row.cell("Avg"));
  if (!row.complete() || !invocations || !least || !most || !average) return false;
  if (metrics) {
    Table& table = this->table("nvprof metrics", {{"pid", "Process", 0},
                                                  {"device", "Device", 0},
                                                  {"kernel", "Kernel", 0},
                                                  {"metric", "Name of the metric", 0},
                                                  {"description", "What it is", 0},
                                                  {"invocations", "Runs of the kernel", 0},
                                                  {"min", "Least, in the unit", 6},
                                                  {"max", "Most, in the unit", 6},
                                                  {"avg", "Mean, in the unit", 6},
                                                  {"unit", "share (0..1), B, B/s, level, or none", 0}});
    table.add_row({int64_t{pid}, device, kernel, std::string(row.cell("Metric Name")),
                   std::string(row.cell("Metric Description")), *invocations, least->value, most->value, average->value,
                   average->unit});
    return true;
  }
  Table& table = this->table("nvprof events", {{"pid", "Process", 0},
                                               {"device", "Device", 0},
                                               {"kernel", "Kernel", 0},
                                               {"event", "Name of the event", 0},
                                               {"invocations", "Runs of the kernel", 0},
                                               {"min", "Least", 0},
                                               {"max", "Most", 0},
                                               {"avg", "Mean", 0},
                                               {"total", "Sum; not in older logs", 0}});
  const auto total = measure(row.cell("Total"));
  table.add_row({int64_t{pid}, device, kernel, std::string(row.cell("Event Name")), *invocations, least->value,
                 most->value, average->value, total ? total->value : Cell{}});
  return true;
}

bool Builder::unified_memory(int32_t pid, const std::string& device, const Row& row) {
  const auto count = whole_number(row.cell("Count"));
  if (!row.complete() || !count) return false;
  const auto size = [&row](std::string_view column) {
    const auto bytes = bytes_of(row.cell(column));
    return bytes ? Cell(*bytes) : Cell();
  };
  const auto time = time_ns(row.cell("Total Time"));
  Table& table = this->table("nvprof unified memory", {{"pid", "Process", 0},
                                                       {"device", "Device", 0},
                                                       {"name", "Kind of migration or fault", 0},
                                                       {"count", "How often", 0},
                                                       {"avg_bytes", "Mean size", 0},
                                                       {"min_bytes", "Smallest", 0},
                                                       {"max_bytes", "Largest", 0},
                                                       {"total_bytes", "Sum of sizes", 0},
                                                       {"total_ns", "Sum of durations", 0}});
  table.add_row({int64_t{pid}, device, std::string(row.cell("Name")), *count, size("Avg Size"), size("Min Size"),
                 size("Max Size"), size("Total Size"), time ? Cell(*time) : Cell()});
  return true;
}

void Builder::available(const std::string& what, const std::string& device, const std::string& domain,
                        std::string_view name, std::string_view description) {
  Table& table = this->table("nvprof available " + what + "s", {{"device", "Device", 0},
                                                                {"domain", "Domain of an event", 0},
                                                                {what, "Name", 0},
                                                                {"description", "What it is", 0}});
  table.add_row({device, what == "event" ? domain : std::string(), std::string(name), std::string(description)});
}

int32_t Builder::thread_lane(int32_t pid) {
  const auto [found, is_new] = threads_.try_emplace(pid, static_cast<int32_t>(timeline_.lanes.size()));
  if (is_new) timeline_.lanes.push_back({.kind = trace::Lane::Kind::kThread, .pid = pid, .tid = pid});
  return found->second;
}

int32_t Builder::stream_lane(int32_t pid, const Row& row, int32_t stream) {
  const std::string name(row.cell("Device"));
  // "Tesla K40c (0)"; logs of a single device leave the number out.
  int32_t device = 0;
  if (const size_t open = name.rfind('('); open != std::string::npos && name.ends_with(')')) {
    device =
        static_cast<int32_t>(whole_number(std::string_view(name).substr(open + 1, name.size() - open - 2)).value_or(0));
  } else {
    device = devices_.try_emplace(name, static_cast<int32_t>(devices_.size())).first->second;
  }
  timeline_.facts.try_emplace("device." + std::to_string(device) + ".name", name.substr(0, name.rfind(" (")));
  const auto context = static_cast<int32_t>(whole_number(row.cell("Context")).value_or(trace::kNone));
  const auto [found, is_new] =
      streams_.try_emplace({pid, device, context, stream}, static_cast<int32_t>(timeline_.lanes.size()));
  if (is_new)
    timeline_.lanes.push_back(
        {.kind = trace::Lane::Kind::kStream, .pid = pid, .tid = stream, .device = device, .context = context});
  return found->second;
}

bool Builder::traced(int32_t pid, const Row& row) {
  const auto start = time_ns(row.cell("Start")), duration = time_ns(row.cell("Duration"));
  std::string_view name = row.cell("Name");
  if (!row.complete() || !start || !duration || name.empty()) return false;
  const int64_t correlation = take_correlation(name);
  const auto stream = whole_number(row.cell("Stream"));
  const bool bracket = name.starts_with('[');
  RangeKind kind = RangeKind::kKernel;
  if (bracket && name.find("memset") != std::string_view::npos) {
    kind = RangeKind::kSet;
  } else if (bracket &&
             (name.find("memcpy") != std::string_view::npos || name.find("Memcpy") != std::string_view::npos)) {
    kind = RangeKind::kCopy;
  } else if (bracket) {
    kind = RangeKind::kAnnotation;  // page faults of unified memory
  } else if (!stream) {
    kind = RangeKind::kApi;
  }
  const int32_t lane = stream            ? stream_lane(pid, row, static_cast<int32_t>(*stream))
                       : is_device(kind) ? stream_lane(pid, row, trace::kNone)
                                         : thread_lane(pid);
  trace::Ranges& ranges = timeline_.ranges;
  const auto range = static_cast<int32_t>(ranges.size());
  ranges.start_ns.push_back(*start);
  ranges.end_ns.push_back(*start + *duration);
  ranges.name.push_back(timeline_.strings.intern(name));
  ranges.lane.push_back(lane);
  ranges.frame.push_back(trace::kNoFrame);
  ranges.is_async.push_back(kind == RangeKind::kAnnotation ? 1 : 0);
  ranges.open.push_back(0);
  ranges.kind.push_back(kind);
  if (kind == RangeKind::kApi) timeline_.api_calls.push_back({range, correlation});
  if (!is_device(kind)) return true;
  trace::DeviceOp op{.range = range, .correlation = correlation};
  read_triple(row.cell("Grid Size"), op.grid);
  read_triple(row.cell("Block Size"), op.block);
  const auto small = [](std::optional<int64_t> number) {
    return number && *number >= 0 && *number <= INT32_MAX ? static_cast<int32_t>(*number) : -1;
  };
  op.registers = small(whole_number(row.cell("Regs*")));
  op.static_shared = small(bytes_of(row.cell("SSMem*")));
  op.dynamic_shared = small(bytes_of(row.cell("DSMem*")));
  op.bytes = bytes_of(row.cell("Size")).value_or(-1);
  if (kind == RangeKind::kCopy) op.copy_kind = copy_kind(name);
  op.source_kind = memory_kind(row.cell("SrcMemType"));
  op.target_kind = memory_kind(row.cell(kind == RangeKind::kSet ? "SrcMemType" : "DstMemType"));
  if (kind == RangeKind::kSet) op.source_kind = 7;
  timeline_.device_ops.push_back(op);
  return true;
}

trace::Timeline Builder::finish() {
  trace::Ranges& ranges = timeline_.ranges;
  if (ranges.size() > 0) {
    const int64_t first = *std::min_element(ranges.start_ns.begin(), ranges.start_ns.end());
    for (int64_t& time : ranges.start_ns) time -= first;
    for (int64_t& time : ranges.end_ns) time -= first;
    timeline_.duration_ns = *std::max_element(ranges.end_ns.begin(), ranges.end_ns.end());
  }
  timeline_.finish();
  return std::move(timeline_);
}

}  // namespace strobe::importers::nvprof
