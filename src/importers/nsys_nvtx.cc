// NVTX_EVENTS: ranges, marks, and the names of threads, domains and categories.
#include <algorithm>
#include <charconv>
#include <optional>

#include "importers/nsys_events.h"

namespace strobe::importers {

using trace::kNone;
using trace::RangeKind;
using trace::StringId;

namespace {

// ENUM_NSYS_EVENT_TYPE; its names changed over time, its numbers did not.
enum EventType : int64_t { kCategory = 33, kMark = 34, kThreadName = 39, kPushPop = 59, kStartEnd = 60, kDomain = 75 };

enum Column {
  kStart,
  kEnd,
  kType,
  kText,
  kTextId,
  kTid,
  kDomainId,
  kCategoryId,
  kUint64,
  kInt64,
  kDouble,
  kUint32,
  kInt32,
  kFloat
};
#define STROBE_NVTX_COLUMNS                                                                                        \
  "start", "end", "eventType", "text", "textId", "globalTid", "domainId", "category", "uint64Value", "int64Value", \
      "doubleValue", "uint32Value", "int32Value", "floatValue"

// Takes ", key = 123" from the front.
bool take_number(std::string_view& text, std::string_view key, int64_t& value) {
  if (!text.starts_with(key)) return false;
  const char* begin = text.data() + key.size();
  const auto [end, code] = std::from_chars(begin, text.data() + text.size(), value);
  if (code != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// What PyTorch (emit_nvtx) writes behind an operator's name, so that every name is another one:
// "aten::add, seq = 7, op_id = 12, sizes = [[2, 3], [2, 3]]".
struct Operator {
  std::string_view name;  // empty: the text is none of PyTorch's
  std::optional<int64_t> sequence, id;
  std::string_view sizes;
};

Operator parse_operator(std::string_view text) {
  constexpr std::string_view kSequence = ", seq = ", kId = ", op_id = ", kSizes = ", sizes = ",
                             kInputs = ", input_op_ids = ";
  const size_t end = std::min(text.find(kSequence), text.find(kId));
  if (end == std::string_view::npos) return {};
  Operator result{text.substr(0, end), {}, {}, {}};
  std::string_view rest = text.substr(end);
  int64_t number = 0;
  if (take_number(rest, kSequence, number)) result.sequence = number;
  if (take_number(rest, kId, number)) result.id = number;
  if (rest.starts_with(kSizes))
    result.sizes = rest.substr(kSizes.size(), rest.find(kInputs) - kSizes.size());
  else if (!rest.empty() && !rest.starts_with(kInputs))
    return {};
  return result;
}

}  // namespace

void NsysEvents::read_nvtx_names() {
  file_.each(
      "NVTX_EVENTS", {STROBE_NVTX_COLUMNS},
      [this](const NsysRow& row) {
        std::string text(row.text(kText));
        if (text.empty() && !row.is_null(kTextId)) text = timeline_.strings[places_.text(row.integer(kTextId))];
        const int32_t pid = process_of(row, kTid);
        if (row.integer(kType) == kThreadName)
          places_.name_thread(row.integer(kTid), text);
        else if (row.integer(kType) == kDomain)
          domains_[{pid, row.integer(kDomainId)}] = text;
        else
          categories_[{pid, row.integer(kDomainId), row.integer(kCategoryId)}] = text;
      },
      "eventType IN (33, 39, 75)");
}

void NsysEvents::read_nvtx() {
  file_.each("NVTX_EVENTS", {STROBE_NVTX_COLUMNS}, [this](const NsysRow& row) { read_nvtx_row(row); });
}

void NsysEvents::read_nvtx_row(const NsysRow& row) {
  const int64_t type = row.integer(kType);
  if (type != kPushPop && type != kStartEnd && type != kMark) return;
  // A registered string has no text of its own. No view into the texts may live while one is added.
  std::string text(row.text(kText));
  if (row.is_null(kText) && !row.is_null(kTextId)) text = timeline_.strings[places_.text(row.integer(kTextId))];
  const int32_t lane = places_.thread(row.integer(kTid));
  const auto [category, domain] = category_of(row);
  if (type == kMark) {
    if (row.is_null(kStart) || !see(row.integer(kStart))) {
      ++timeline_.losses.faults["event at a time that cannot be"];
      return;
    }
    timeline_.marks.time_ns.push_back(row.integer(kStart));
    timeline_.marks.name.push_back(timeline_.strings.intern(text));
    timeline_.marks.lane.push_back(lane);
    timeline_.marks.frame.push_back(trace::kNoFrame);
    timeline_.marks.categorize_last(category, domain);
    read_nvtx_payload(row, [this](const char* key, Value value) {
      trace::MarkArguments& arguments = timeline_.mark_arguments;
      arguments.mark.push_back(static_cast<int32_t>(timeline_.marks.size() - 1));
      arguments.key.push_back(timeline_.strings.intern(key));
      arguments.value.push_back(value);
    });
    return;
  }
  const Operator call = parse_operator(text);
  const bool is_operator = !call.name.empty();
  const int32_t range = add_range(is_operator ? RangeKind::kOperator : RangeKind::kAnnotation,
                                  timeline_.strings.intern(is_operator ? call.name : text), lane, row, kStart);
  if (range == kNone) return;
  timeline_.ranges.is_async.back() = type == kStartEnd ? 1 : 0;
  timeline_.ranges.categorize_last(category, domain);
  if (call.sequence) add_argument(range, "seq", *call.sequence);
  if (call.id) add_argument(range, "op_id", *call.id);
  if (!call.sizes.empty()) add_argument(range, "sizes", timeline_.strings.intern(call.sizes));
  read_nvtx_payload(row, [this, range](const char* key, Value value) { add_argument(range, key, value); });
}

std::pair<StringId, StringId> NsysEvents::category_of(const NsysRow& row) {
  const int32_t pid = process_of(row, kTid);
  const int64_t domain = row.integer(kDomainId), category = row.integer(kCategoryId);
  // What was never named goes by its number.
  const auto name = [this](const auto& names, const auto& key, int64_t number) -> StringId {
    if (number == 0) return 0;
    const auto found = names.find(key);
    return timeline_.strings.intern(found != names.end() ? found->second : std::to_string(number));
  };
  return {name(categories_, std::tuple(pid, domain, category), category),
          name(domains_, std::pair(pid, domain), domain)};
}

void NsysEvents::read_nvtx_payload(const NsysRow& row, const Add& add) {
  for (const int column : {int{kUint64}, int{kInt64}, int{kUint32}, int{kInt32}})
    if (!row.is_null(column)) return add("payload", row.integer(column));
  for (const int column : {int{kDouble}, int{kFloat}})
    if (!row.is_null(column)) return add("payload", row.real(column));
}

}  // namespace strobe::importers
