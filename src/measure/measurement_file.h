// measurements.csv: one line a measurement, appended and flushed to the disk as soon as it is known, so that whatever
// ends the run costs at most the measurement that was under way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/profile_config.h"
#include "strobe/base/result.h"

namespace strobe::measure {

// What is measured: equal for the same measurement of a later call.
struct MeasurementKey {
  std::string net;
  int level = 0;
  int64_t batch = 1;
  Quantity quantity = Quantity::kMemory;
  Stage stage = Stage::kTraining;
  std::string engine;
  std::string device;
  int threads = 1;
  bool operator==(const MeasurementKey&) const = default;
};

struct MeasurementRow {
  MeasurementKey key;
  bool passed = false;
  std::string error;  // why not; on one line
  // The rest only where it passed. Memory in MiB, latency in ms.
  double mean = 0, median = 0, p5 = 0, p95 = 0, half_width = 0;
  int64_t repetitions = 0, warmup = 0;
  bool stationary = true;  // false: the warm-up ran out of time
  bool disturbed = false;
  int attempts = 1;
  double others_share = 0, stolen_share = 0, wait_share = 0;  // measure/interference.h
  int64_t involuntary_switches = 0;
  // On a GPU (gpu/device_watch.h); below 0: not told, or on the CPU.
  double gpu_others_share = -1, gpu_throttled_share = -1, gpu_clock_mhz = -1, gpu_clock_spread = -1;
  // Of the process, MiB: resident before the network was opened; peak with loading; grown allocations of malloc after
  // the last step. On a GPU: used by everyone before; the most that the framework's allocator reserved; the most that
  // its tensors held. 0 in rows of latency; below 0: not told.
  double before_mib = 0, peak_mib = 0, allocated_mib = 0;
  double limit_mib = 0;  // the network and its steps may take, of the device's memory on a GPU; below 0: no limit
  double seconds = 0;    // of the measurement, with loading
};

std::string measurement_header();                         // one line
std::string measurement_line(const MeasurementRow& row);  // one line
// A line of such a file that is of this tool: key, passed and seconds. Errors: kBadData.
Result<MeasurementRow> parse_measurement_line(std::string_view line);

class MeasurementFile {
 public:
  // Reads what is there; nothing is changed before the first append(). What is after the last end of a line was torn by
  // a crash and is dropped. A file of a version without the columns of GPUs is taken, and gets them, empty. Errors:
  // kBadData (a file with other columns: which; a line that is none of ours: which one), kIo.
  static Result<MeasurementFile> open(const std::filesystem::path& path);
  MeasurementFile(MeasurementFile&& other) noexcept;
  MeasurementFile& operator=(MeasurementFile&&) = delete;
  ~MeasurementFile();

  const std::vector<MeasurementRow>& rows() const { return rows_; }  // those that were there, and appended ones
  const MeasurementRow* find(const MeasurementKey& key) const;
  // On the disk when it returns. Errors: kIo.
  Result<void> append(const MeasurementRow& row);

 private:
  MeasurementFile() = default;
  Result<void> begin();
  int fd_ = -1;                      // from the first append on
  std::optional<std::string> text_;  // of the file until then, where it is to be another one
  std::filesystem::path path_;
  std::vector<MeasurementRow> rows_;
};

}  // namespace strobe::measure
