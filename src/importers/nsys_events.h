// The events of an Nsight Systems export become ranges, marks and device operations.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "importers/nsys_file.h"
#include "importers/nsys_places.h"
#include "strobe/trace/timeline.h"

namespace strobe::importers {

// Times stay those of the file until finish() makes the first one 0.
class NsysEvents {
 public:
  NsysEvents(NsysFile& file, trace::Timeline& timeline, NsysPlaces& places)
      : file_(file), timeline_(timeline), places_(places) {}

  void read();
  bool empty() const { return last_ns_ < first_ns_; }
  int64_t first_ns() const { return empty() ? 0 : first_ns_; }
  void finish();

  // Tables that read() knows.
  static const std::initializer_list<const char*> kTables;

 private:
  void read_nvtx_names();
  void read_nvtx();
  void read_nvtx_row(const NsysRow& row);
  using Value = std::variant<int64_t, double, trace::StringId>;
  using Add = std::function<void(const char* key, Value value)>;
  static void read_nvtx_payload(const NsysRow& row, const Add& add);
  // Category and domain of a range or mark.
  std::pair<trace::StringId, trace::StringId> category_of(const NsysRow& row);
  void read_calls(const char* table, trace::RangeKind kind);
  void read_overhead(const char* table);
  void read_kernels();
  void read_copies();
  void read_sets();
  void read_recorded_events();
  void read_syncs();
  void read_graphs();

  // False for a time that cannot be; it is counted.
  bool see(int64_t time_ns);
  // A row of ranges; kNone where its times cannot be. No end: it was open.
  int32_t add_range(trace::RangeKind kind, trace::StringId name, int32_t lane, const NsysRow& row, int start_column);
  // A device's operation, of a row that begins with kDeviceColumns; range kNone where its times cannot be.
  trace::DeviceOp add_op(trace::RangeKind kind, trace::StringId name, const NsysRow& row);
  int32_t process_of(const NsysRow& row, int column);
  void add_argument(int32_t range, const char* key, Value value);

  NsysFile& file_;
  trace::Timeline& timeline_;
  NsysPlaces& places_;
  int64_t first_ns_ = INT64_MAX, last_ns_ = INT64_MIN;
  std::map<std::pair<int32_t, int64_t>, std::string> domains_;               // by process and id
  std::map<std::tuple<int32_t, int64_t, int64_t>, std::string> categories_;  // by process, domain and id
  std::map<std::pair<int32_t, int64_t>, std::pair<int32_t, int64_t>>
      recorded_;  // stream and call, by process and event
};

}  // namespace strobe::importers
