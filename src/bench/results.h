// What the processes of a benchmark left behind: read, finished, summed up.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "bench/figures.h"
#include "bench/read.h"

namespace strobe::bench {

struct ProcessResult {
  std::string name;  // "proc_0_gpu_0"
  std::filesystem::path folder;
  ReadBenchmark read;
};

// folder/benchmark.json, with the times of folder/trace.sqlite where the program could not tell them (CV-CUDA's own
// CvCudaPerf) and with its device work where the program ran on a GPU. Errors: kNotFound (the program wrote none),
// kBadData.
Result<ProcessResult> read_process(const std::filesystem::path& folder);

// Makes the figures of each again with this warm-up and writes them; of an automatic one the largest of all processes
// holds for all, and comes back. settled as resolve().
Result<Warmup> finish_processes(std::vector<ProcessResult>& processes, const Warmup& wanted, Rules rules,
                                bool* settled);

// "mean_all_batches" and "mean_data" of the written files.
Result<Json> mean_of_processes(const std::vector<ProcessResult>& processes, Rules rules);

// A finished run: its folder (with benchmark_mean.json and the processes' folders in it) or that file.
struct Run {
  std::vector<ProcessResult> processes;
  Warmup warmup;
};
bool is_run(const std::filesystem::path& path);
// Errors: kNotFound, kBadData.
Result<Run> read_run(const std::filesystem::path& path);

// The batches' times of one stage: those that count, by process and index.
struct StageSeries {
  std::string level;  // the path above the batches
  std::string stage;  // below the batch; empty: the batch itself
  std::vector<double> cpu_ms, gpu_ms;
  int64_t items = 0;
  size_t processes = 0;
};
// In the order of the files.
std::vector<StageSeries> stage_series(const std::vector<ProcessResult>& processes, const Warmup& warmup);

// A line for each level that a warm-up leaves no batch of, in some process: it then has no figures.
std::vector<std::string> levels_left_empty(const std::vector<ProcessResult>& processes, const Warmup& warmup);

// One row a stage: level, stage, mean_ms, ci95_low_ms, ci95_high_ms (moving-block bootstrap of the mean; missing below
// 10 batches), p50_ms, p99_ms, ms_per_item, gpu_ms (where any is above 0), batches, processes.
Table stage_table(const std::vector<ProcessResult>& processes, const Warmup& warmup);
// The latencies of open-loop runs, one row a process; nothing where there were none.
std::optional<Table> latency_table(const std::vector<ProcessResult>& processes);

}  // namespace strobe::bench
