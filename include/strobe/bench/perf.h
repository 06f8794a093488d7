// Benchmark ranges of a program, in the format of CV-CUDA's samples (docs/bench.md): what its CvCudaPerf is there.
//
//     using strobe::bench::Perf;
//     Perf perf("detect", {.output_dir = out, .device_id = 0});
//     {
//       const Perf::Scope pipeline(perf, "pipeline");
//       for (int64_t i = 0; i < batches; ++i) {
//         Perf::Scope batch(perf, "batch", {}, i);  // named "batch_<i>"; what begins in it is inside this batch
//         {
//           const Perf::Scope stage(perf, "decode");
//           ...
//         }
//         batch.items(8);
//       }
//     }
//     const auto written = perf.finalize();  // output_dir/benchmark.json
//
// Every range also goes to the recorder (strobe/record/annotate.h) and to NVTX, so that `strobe record` and Nsight
// Systems see it. Figures are collected only where the environment has BENCHMARK_PY, which `strobe bench` sets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "strobe/base/result.h"
#include "strobe/bench/arrivals.h"

namespace strobe::bench {

// Ours: each key is averaged by its own count, paths are compared by whole names. Original: the numbers of CV-CUDA's
// benchmark.py, with its faults (docs/bench.md lists them).
enum class Rules : uint8_t { kStrobe, kOriginal };
// "strobe", "original". Errors: kUsage naming both.
Result<Rules> parse_rules(std::string_view name);

// How many batches at the front and at the back of a run do not count.
struct Warmup {
  int64_t front = 1, back = 1;
  bool automatic = false;  // found from the figures (MSER-5 at either end) instead
};
// A count (both ends) or "auto". Errors: kUsage.
Result<Warmup> parse_warmup(std::string_view text);

struct PerfOptions {
  std::string output_dir;
  int device_id = 0;
  std::string device_name = "CPU";
  // A JSON object whose members go into "meta" of the result, over those that are there already: "args",
  // "cvcuda_version", "pytorch_version", "python_version". Errors show in finalize().
  std::string meta = {};
  // Left out: what the environment says (BENCHMARK_PY, STROBE_BENCH_WARMUP, STROBE_BENCH_RULES).
  std::optional<bool> collect = {};
  std::optional<Warmup> warmup = {};
  std::optional<Rules> rules = {};
};

struct RangeStyle {
  std::string_view color = "blue";  // a name as CSS has it, or "#rrggbb"; another one becomes blue
  std::string_view domain = {};
  std::string_view category = {};
};

// Safe from any thread: ranges nest per thread, below obj_name. A path that occurs again on a thread replaces the
// earlier one (so batches are told apart by their index); one that occurs on several threads is averaged over them.
class Perf {
 public:
  Perf(std::string obj_name, PerfOptions options);
  Perf(const Perf&) = delete;
  Perf& operator=(const Perf&) = delete;
  ~Perf();

  bool collecting() const;

  // Errors: kUsage (an empty message, a negative batch index).
  Result<void> push_range(std::string_view message, const RangeStyle& style = {},
                          std::optional<int64_t> batch_index = {});
  // Pops the innermost range of the calling thread, in the domain that it was pushed in. total_items closes a batch and
  // belongs to the pop of a range that was pushed with an index. delete_range takes the range and all below it out of
  // the results; it stays in the timeline. Errors, while collecting: kUsage (no range is open, or none with an index).
  Result<void> pop_range(std::optional<int64_t> total_items = {}, bool delete_range = false);

  // A range until the end of the scope, on one thread. What is wrong with it is said by finalize().
  class Scope {
   public:
    Scope(Perf& perf, std::string_view message, const RangeStyle& style = {}, std::optional<int64_t> batch_index = {});
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();
    void items(int64_t total) { items_ = total; }  // as total_items of pop_range()
    void discard() { delete_ = true; }             // as delete_range

   private:
    Perf& perf_;
    bool open_ = false, delete_ = false;
    std::optional<int64_t> items_;
  };

  // A request of an open-loop load is done: its latency counts from its intended arrival (queueing included).
  void completed(const Arrival& arrival);

  // Writes output_dir/benchmark.json and returns its text; "{}" where nothing is collected. To be called once the other
  // threads are done. Errors: kUsage (ranges are open: says how many and names one; the environment or the meta cannot
  // be read), kIo.
  Result<std::string> finalize();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strobe::bench
