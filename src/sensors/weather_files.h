// Sweeps in files, weather on them. A file is an array of little-endian 32-bit floats without a header, 5 to a point
// (nuScenes .pcd.bin: x, y, z, intensity 0..255, ring) or 4 (KITTI .bin: x, y, z, reflectance 0..1).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/weather.h"

namespace strobe::sensors {

struct SweepFile {
  std::vector<float> values;
  int columns = 4;
  std::string layout;  // how it was read and why: "5 floats a point (nuScenes), by its name"
  PointSweep points() { return {values, columns, columns == 5 ? 255.0F : 1.0F}; }
};

// columns: 4, 5, or 0 to find out: by the name (.pcd.bin), by what divides the size, else by which reading gives
// intensities in their range. Errors: kBadData (empty, not a whole number of points, neither reading makes sense),
// kUsage (other columns).
Result<SweepFile> parse_sweep(std::string_view bytes, const std::string& name, int columns);

struct WeatherJob {
  std::filesystem::path input, output;
  uint64_t frame = 0;
  int columns = 0;
  bool calibrate = false, keep_lost = false;
};
struct WeatherOutcome {
  WeatherSummary summary;
  std::string layout, input_sha256, output_sha256;
  double alpha = 0, max_range_m = 0;
  double seconds = 0;  // of the model alone, without reading and writing
};

// Reads, changes and writes one sweep; hashes only where asked. Errors name the file.
Result<WeatherOutcome> weather_on_file(const WeatherOptions& options, const WeatherJob& job, int threads, bool hashes);

// The jobs of a folder: its *.bin files by name; the frame is the position. Errors: kNotFound (no such folder, none in
// it), kUsage (the output is the input).
Result<std::vector<WeatherJob>> folder_jobs(const std::filesystem::path& input, const std::filesystem::path& output);

// Every job, a file a thread. Outcomes in the order of the jobs. Errors: that of the first job that failed;
// kInterrupted. progress: called with the number that is done, from any thread, one at a time; false stops.
Result<std::vector<WeatherOutcome>> weather_on_files(const WeatherOptions& options, const std::vector<WeatherJob>& jobs,
                                                     int threads, const std::function<bool(size_t)>& progress);

// JSON: what was done with which seed, and for each file its frame, counts and the SHA-256 of its bytes before and
// after.
std::string weather_manifest(const WeatherOptions& options, const std::vector<WeatherJob>& jobs,
                             const std::vector<WeatherOutcome>& outcomes);

// Words as the command line and the manifest have them.
std::string_view word(WeatherKind kind);
std::string_view word(WeatherRules rules);
std::string_view word(WeatherMode mode);
Result<WeatherKind> parse_weather_kind(const std::string& text);
Result<WeatherRules> parse_weather_rules(const std::string& text);
Result<WeatherMode> parse_weather_mode(const std::string& text);

}  // namespace strobe::sensors
