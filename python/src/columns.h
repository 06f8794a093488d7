// Columns of a timeline as they lie in memory: what NumPy and Arrow get without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/trace/timeline.h"

namespace strobe::python {

// What the codes of a text column stand for: the timeline's own strings, or a fixed list.
class Texts {
 public:
  explicit Texts(std::shared_ptr<const trace::Timeline> timeline) : timeline_(std::move(timeline)) {}
  explicit Texts(std::vector<std::string> list) : list_(std::move(list)) {}
  size_t size() const { return timeline_ ? timeline_->strings.size() : list_.size(); }
  std::string_view operator[](size_t code) const {
    return timeline_ ? timeline_->strings[static_cast<trace::StringId>(code)] : std::string_view(list_[code]);
  }
  int64_t find(std::string_view text) const;  // -1: not there

 private:
  std::shared_ptr<const trace::Timeline> timeline_;
  std::vector<std::string> list_;
};

enum class ColumnType : uint8_t { kInt64, kInt32, kUint32, kUint8, kBool, kDouble, kText, kText8 };

struct ColumnView {
  std::string name;
  ColumnType type = ColumnType::kInt64;  // texts: codes of 4 bytes or of 1
  const void* data = nullptr;
  std::shared_ptr<const void> owner;  // of data
  std::shared_ptr<const Texts> texts;
};

struct Columns {
  std::string title;
  size_t rows = 0;
  std::vector<ColumnView> list;
};

// Only the texts that occur, in the order of their codes, and the column in terms of them.
struct CompactTexts {
  std::vector<int32_t> codes;
  std::vector<uint32_t> used;
};
template <typename Code>
CompactTexts compact(const Code* codes, size_t count, size_t text_count) {
  std::vector<int32_t> place(text_count, -1);
  CompactTexts result;
  for (size_t i = 0; i < count; ++i)
    if (codes[i] < text_count) place[codes[i]] = 0;
  for (size_t code = 0; code < text_count; ++code) {
    if (place[code] < 0) continue;
    place[code] = static_cast<int32_t>(result.used.size());
    result.used.push_back(static_cast<uint32_t>(code));
  }
  result.codes.resize(count);
  for (size_t i = 0; i < count; ++i) result.codes[i] = codes[i] < text_count ? place[codes[i]] : -1;
  return result;
}
CompactTexts compact(const ColumnView& column, size_t rows);

using SharedTimeline = std::shared_ptr<const trace::Timeline>;

Columns range_columns(const SharedTimeline& timeline);
Columns kernel_columns(const SharedTimeline& timeline);
Columns memcpy_columns(const SharedTimeline& timeline);
Columns api_call_columns(const SharedTimeline& timeline);
Columns argument_columns(const SharedTimeline& timeline);
Columns mark_columns(const SharedTimeline& timeline);
Columns mark_argument_columns(const SharedTimeline& timeline);
Columns flow_columns(const SharedTimeline& timeline);
Columns counter_columns(const SharedTimeline& timeline);
Columns frame_columns(const SharedTimeline& timeline);
Columns lane_columns(const SharedTimeline& timeline);
Columns process_columns(const SharedTimeline& timeline);

}  // namespace strobe::python
