// Links: strobe_record
// What one range costs, beside two bare readings of the counter and beside other recorders (peers/recorders_*.cc), in
// time, bytes on disk and memory. Use ratios within one run and the CPU column: with more threads than cores the wall
// clock counts waiting. benchmarks/peers/recorders.sh runs all of it with an LTTng session and prints the ratios.
// A timed run is a burst that fits the rings, so that no range is cheap because it was dropped: `dropped` must be 0.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "peers/recorders.h"
#include "record/layout.h"
#include "strobe/record/annotate.h"

namespace strobe::bench {
namespace {

using record::Category;
using record::Name;
using record::Range;

std::filesystem::path scratch_folder() {
  return std::filesystem::temp_directory_path() / ("strobe-record-bench-" + std::to_string(::getpid()));
}

// Records while it lives.
class Recording {
 public:
  explicit Recording(size_t ring_bytes, bool block_when_full = false) {
    record::Options options;
    options.folder = scratch_folder();
    options.ring_bytes = ring_bytes;
    options.block_when_full = block_when_full;
    const auto started = record::start(options);
    if (!started) std::fprintf(stderr, "%s\n", started.error().to_string().c_str());
  }
  ~Recording() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(scratch_folder(), ignored);
  }
  void stop() {
    if (!record::recording()) return;
    const auto totals = record::stop();
    if (!totals) std::fprintf(stderr, "%s\n", totals.error().to_string().c_str());
    if (totals && totals->dropped > 0)
      std::fprintf(stderr, "invalid run: %llu records dropped\n", static_cast<unsigned long long>(totals->dropped));
  }
};
std::unique_ptr<Recording> current;

void set_up(const benchmark::State& /*state*/) {
  current = std::make_unique<Recording>(16 << 20);
}
void tear_down(const benchmark::State& /*state*/) {
  current.reset();
}
// The names of the benchmarks are those of the tables in docs/benchmarks.md.
template <typename Body>
void recorded(const char* name, Body body) {
  cases(benchmark::RegisterBenchmark(name,
                                     [body](benchmark::State& state) {
                                       // Gives the thread its ring before the clock runs.
                                       record::mark(Name("join"));
                                       body(state);
                                     }))
      ->Setup(set_up)
      ->Teardown(tear_down);
}

void register_costs() {
  cases(benchmark::RegisterBenchmark("two_rdtsc", [](benchmark::State& state) {
    measure(state, [] {
      benchmark::DoNotOptimize(ticks());
      benchmark::ClobberMemory();
      benchmark::DoNotOptimize(ticks());
    });
  }));
  static const Name name("bench");
  static const Name key("batch");
  static const Category category("stage", "bench");
  // A frame id and one integer argument.
  recorded("range_with_int", [](benchmark::State& state) {
    int64_t frame = 0;
    measure(state, [&frame] {
      Range range(name, frame);
      range.arg(key, frame++);
    });
  });
  // The frame id is the only payload.
  recorded("range_with_frame", [](benchmark::State& state) {
    int64_t frame = 0;
    measure(state, [&frame] { const Range range(name, frame++); });
  });
  recorded("range_with_category", [](benchmark::State& state) {
    int64_t frame = 0;
    measure(state, [&frame] { const Range range(name, frame++, category); });
  });
  recorded("range_dynamic_name", [](benchmark::State& state) {
    std::array<std::string, 16> names;
    for (size_t i = 0; i < names.size(); ++i) names[i] = "backbone.layer" + std::to_string(i) + ".conv2d";
    size_t i = 0;
    measure(state, [&] { const Range range(std::string_view{names[i++ % names.size()]}, 1); });
  });
  cases(benchmark::RegisterBenchmark("range_disabled", [](benchmark::State& state) {
    int64_t frame = 0;
    measure(state, [&frame] { const Range range(name, frame++); });
  }));
}

struct SpoolBytes {
  uint64_t file = 0;   // as it is
  uint64_t plain = 0;  // as it would be without compression
};

SpoolBytes spool_bytes() {
  SpoolBytes bytes;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_folder())) {
    if (entry.path().extension() != ".spool") continue;
    bytes.file += entry.file_size();
    bytes.plain += record::kHeaderBytes;
    std::ifstream file(entry.path(), std::ios::binary);
    record::BlockHeader header{};
    for (uint64_t at = record::kHeaderBytes;
         file.seekg(static_cast<std::streamoff>(at)) && file.read(reinterpret_cast<char*>(&header), sizeof header);) {
      at += (sizeof header + header.stored_bytes + 7) / 8 * 8;
      bytes.plain += (sizeof header + header.plain_bytes + 7) / 8 * 8;
    }
  }
  return bytes;
}

// Work of changing length within a few names, as a pipeline has it; the argument is a batch's index.
void bytes_on_disk(benchmark::State& state) {
  constexpr int kRanges = 1'000'000;
  static const std::array<Name, 5> names{Name("read"), Name("prep"), Name("infer"), Name("post"), Name("write")};
  static const Name key("batch_index");
  for (auto _ : state) {
    Recording recording(1 << 20, true);
    std::minstd_rand random(1);
    for (int i = 0; i < kRanges; ++i) {
      Range range(names[static_cast<size_t>(i) % names.size()], i / 5);
      range.arg(key, i / 20);
      for (auto left = random() % 200; left > 0; --left) benchmark::DoNotOptimize(left);
    }
    recording.stop();
    const SpoolBytes bytes = spool_bytes();
    state.counters["bytes_a_range"] = static_cast<double>(bytes.file) / kRanges;
    state.counters["plain_bytes_a_range"] = static_cast<double>(bytes.plain) / kRanges;
  }
}

double resident_mb() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

double cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Memory after a hundredth of a long recording and at its end, and the CPU time of all of it, the drain's included.
void long_recording(benchmark::State& state) {
  constexpr int64_t kRanges = 20'000'000;
  static const Name name("bench");
  static const Name key("batch");
  for (auto _ : state) {
    Recording recording(1 << 20, true);
    double early = 0;
    const double cpu_before = cpu_s();
    for (int64_t i = 0; i < kRanges; ++i) {
      Range range(name, i);
      range.arg(key, i);
      if (i == kRanges / 100) early = resident_mb();
    }
    recording.stop();
    state.counters["resident_mb_early"] = early;
    state.counters["resident_mb_end"] = resident_mb();
    state.counters["cpu_ns_a_range_with_drain"] = (cpu_s() - cpu_before) * 1e9 / static_cast<double>(kRanges);
  }
}

}  // namespace
}  // namespace strobe::bench

int main(int count, char** words) {
  benchmark::Initialize(&count, words);
  if (benchmark::ReportUnrecognizedArguments(count, words)) return 2;
  strobe::bench::register_costs();
  strobe::bench::register_nvtx();
  strobe::bench::register_lttng();
  strobe::bench::register_torch();
  benchmark::RegisterBenchmark("bytes_on_disk", strobe::bench::bytes_on_disk)
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("long_recording", strobe::bench::long_recording)
      ->Iterations(1)
      ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
}
