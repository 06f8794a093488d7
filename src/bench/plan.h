// Which processes a benchmark consists of, and how each is started.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::bench {

struct PlanOptions {
  int processes = 1, gpus = 1, gpu_offset = 0;
  std::filesystem::path output_dir;
  std::string warmup = "1", rules = "strobe", arrivals;
  std::vector<std::string> command;   // as the user gave it
  std::vector<std::string> recorder;  // words before the command that record it; "{}" becomes the process's folder
};

// This process as one of several that MPI or Slurm started.
struct Rank {
  int rank = 0, size = 1, local = 0;
  std::string run;  // names the run among those of the machine; empty where the launcher tells none
};
// Of Open MPI, of PMI or PMIx (MPICH, Intel MPI, ...), of a Slurm step. Nothing outside one, or where it has one task.
std::optional<Rank> rank_of_environment();

struct PlannedProcess {
  // gpu counts from 0; device adds the offset, and is the number of what is visible where that has one.
  int process = 0, gpu = 0, device = 0;
  std::string visible = {};  // what it gets as CUDA_VISIBLE_DEVICES
  std::filesystem::path folder = {};
  std::vector<std::string> command = {};
  std::map<std::string, std::string> environment = {};  // what is added to ours
  bool recorded = false;

  std::string name() const { return "proc_" + std::to_string(process) + "_gpu_" + std::to_string(gpu); }
};

// One process for each of `processes` on each of `gpus`; of a rank its own one, on the GPU of its place on the node.
// Where this process's environment has CUDA_VISIBLE_DEVICES, GPUs are counted among those that it names, of a rank with
// one there it is that one. A first word that is a Python file gets python3 before it. Errors: kUsage (counts; GPUs
// that the environment does not leave; no command; an output folder among the command's arguments), kNotFound (no such
// program).
Result<std::vector<PlannedProcess>> plan_processes(const PlanOptions& options, const std::optional<Rank>& rank);

// The number among NVML's and nvidia-smi's of what CUDA_VISIBLE_DEVICES calls so; nothing where NVML knows none.
std::optional<int> gpu_number(const std::string& visible);

// Where the shell would find a program; nothing where it is none.
std::optional<std::filesystem::path> find_program(const std::string& word);

}  // namespace strobe::bench
