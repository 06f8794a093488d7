// Rows of nvprof's tables: cells with units to base units, rows to tables and ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "strobe/trace/timeline.h"

namespace strobe::importers::nvprof {

std::string_view trimmed(std::string_view text);
// Cells stand two or more spaces apart (a tab counts as two); the last of `most` cells takes the rest of the line.
std::vector<std::string_view> split_cells(std::string_view line, size_t most);

std::optional<int64_t> whole_number(std::string_view text);
std::optional<double> share(std::string_view text);      // "58.21%" -> 0.5821
std::optional<int64_t> time_ns(std::string_view text);   // "1.5ms" -> 1500000
std::optional<int64_t> bytes_of(std::string_view text);  // "1.5KB" -> 1536: nvprof's K is 1024

struct Row {
  const std::vector<std::string>& columns;
  std::vector<std::string_view> cells;
  // Empty where the row has no such cell.
  std::string_view cell(std::string_view column) const;
  bool complete() const { return cells.size() == columns.size(); }
};

class Builder {
 public:
  void process(int32_t pid, std::string_view command);
  void warning(std::string_view text);
  void fault(const std::string& kind) { ++timeline_.losses.faults[kind]; }

  // Each takes a row; false: it is none (nothing is kept of it).
  bool summary(int32_t pid, const std::string& group, const Row& row);
  bool dependency(int32_t pid, const Row& row);
  bool counted(int32_t pid, bool metrics, const std::string& device, const std::string& kernel, const Row& row);
  bool unified_memory(int32_t pid, const std::string& device, const Row& row);
  bool traced(int32_t pid, const Row& row);
  void available(const std::string& what, const std::string& device, const std::string& domain, std::string_view name,
                 std::string_view description);

  trace::Timeline finish();

 private:
  Table& table(const std::string& title, const std::vector<Column>& columns);
  int32_t stream_lane(int32_t pid, const Row& row, int32_t stream);
  int32_t thread_lane(int32_t pid);

  trace::Timeline timeline_;
  std::map<std::string, size_t> tables_;  // title -> index
  std::map<std::string, int32_t> devices_;
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, int32_t> streams_;  // pid, device, context, stream
  std::map<int32_t, int32_t> threads_;
  size_t warnings_ = 0;
};

}  // namespace strobe::importers::nvprof
