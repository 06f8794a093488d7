#include "bench/plan.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "gpu/nvml.h"

namespace strobe::bench {
namespace {

namespace fs = std::filesystem;

std::optional<int> whole_number(std::string_view digits) {
  int value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (failed != std::errc{} || end != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<int> number_in(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::nullopt : whole_number(text);
}

std::string text_in(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : text;
}

bool is_python_file(const std::string& word) {
  return word.ends_with(".py");
}

// of_python: argparse takes "-oDIR" and "-o=DIR" for "-o DIR", too.
bool is_output_option(const std::string& word, bool of_python) {
  return word == "-o" || word == "--output_dir" || word.starts_with("--output_dir=") ||
         (of_python && word.starts_with("-o"));
}

Result<std::vector<std::string>> words_of(const std::vector<std::string>& command) {
  if (command.empty()) return usage_error("no program to benchmark; expected it after --");
  const auto script = std::ranges::find_if(command, is_python_file);
  for (size_t i = 1; i < command.size(); ++i)
    if (is_output_option(command[i], command.begin() + static_cast<std::ptrdiff_t>(i) > script))
      return usage_error("'" + command[i] +
                         "' among the program's arguments: each process gets an --output_dir of its " +
                         "own; say the folder before --");
  std::vector<std::string> words;
  if (is_python_file(command[0])) {
    std::error_code failed;
    if (!fs::is_regular_file(command[0], failed)) return not_found(command[0] + ": no such script");
    words.emplace_back("python3");
  }
  words.insert(words.end(), command.begin(), command.end());
  if (!find_program(words[0])) return not_found(words[0] + ": no such program");
  return words;
}

// A scheduler, or the user, may have left some GPUs only.
Result<std::string> visible_to(int device, bool is_rank) {
  const char* const name = "CUDA_VISIBLE_DEVICES";
  if (std::getenv(name) == nullptr) return std::to_string(device);
  const std::string all = text_in(name);
  std::vector<std::string> entries;
  std::istringstream list(all);
  for (std::string entry; std::getline(list, entry, ',');) {
    std::erase(entry, ' ');
    entries.push_back(entry);
  }
  if (entries.empty()) return std::string();
  if (is_rank && entries.size() == 1) return entries[0];
  if (static_cast<size_t>(device) < entries.size()) return entries[static_cast<size_t>(device)];
  return usage_error("GPU " + std::to_string(device) + " (--gpu_offset_id, --num_gpus): CUDA_VISIBLE_DEVICES leaves " +
                     std::to_string(entries.size()) + (entries.size() == 1 ? " device" : " devices") + ", '" + all +
                     "'; GPUs are counted among them, from 0");
}

}  // namespace

std::optional<int> gpu_number(const std::string& visible) {
  if (const auto number = whole_number(visible)) return number;
  const auto nvml = gpu::Nvml::open();
  if (!nvml) return std::nullopt;
  const auto devices = nvml->devices(visible.c_str(), nullptr);
  return devices ? std::optional(static_cast<int>(devices->list.front().index)) : std::nullopt;
}

std::optional<fs::path> find_program(const std::string& word) {
  const auto runs = [](const fs::path& path) {
    std::error_code failed;
    return fs::is_regular_file(path, failed) && ::access(path.c_str(), X_OK) == 0;
  };
  if (word.find('/') != std::string::npos) return runs(word) ? std::optional<fs::path>(word) : std::nullopt;
  const std::string folders = text_in("PATH");
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const fs::path folder = end == at ? fs::path(".") : fs::path(folders.substr(at, end - at));
    if (runs(folder / word)) return folder / word;
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<Rank> rank_of_environment() {
  struct Launcher {
    const char *rank, *size, *local, *run;
  };
  // A Slurm batch script has SLURM_PROCID, too; only a step has a number of tasks of its own.
  static constexpr Launcher kLaunchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_NAMESPACE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_JOB_ID"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_ID"},
  };
  for (const auto& launcher : kLaunchers) {
    const auto rank = number_in(launcher.rank), size = number_in(launcher.size);
    if (!rank || !size || *size < 2 || *rank >= *size) continue;
    Rank found{.rank = *rank, .size = *size, .local = number_in(launcher.local).value_or(*rank), .run = {}};
    if (std::string_view(launcher.rank) == "OMPI_COMM_WORLD_RANK") found.run = text_in("PMIX_NAMESPACE");
    if (std::string_view(launcher.rank) == "SLURM_PROCID")
      found.run = text_in("SLURM_JOB_ID") + "." + text_in("SLURM_STEP_ID");
    return found;
  }
  return std::nullopt;
}

Result<std::vector<PlannedProcess>> plan_processes(const PlanOptions& options, const std::optional<Rank>& rank) {
  constexpr int kMost = 4096;
  const auto check = [](const char* flag, int value, int least) -> Result<void> {
    if (value >= least && value <= kMost) return {};
    return usage_error(std::string(flag) + " " + std::to_string(value) + ": expected " + std::to_string(least) +
                       " to " + std::to_string(kMost));
  };
  STROBE_TRY(check("--num_processes", options.processes, 1));
  STROBE_TRY(check("--num_gpus", options.gpus, 1));
  STROBE_TRY(check("--gpu_offset_id", options.gpu_offset, 0));
  if (rank && options.processes != 1)
    return usage_error("--num_processes " + std::to_string(options.processes) + ": under MPI or Slurm each of the " +
                       std::to_string(rank->size) + " tasks is one process");
  STROBE_ASSIGN(const auto words, words_of(options.command));
  std::vector<PlannedProcess> planned;
  const auto add = [&](int process, int gpu) -> Result<void> {
    PlannedProcess one{.process = process, .gpu = gpu, .device = options.gpu_offset + gpu};
    STROBE_ASSIGN(one.visible, visible_to(one.device, rank.has_value()));
    // As without such an environment both are one number, where what is visible has one.
    if (!one.visible.empty()) one.device = whole_number(one.visible).value_or(0);
    one.folder = options.output_dir / one.name();
    one.recorded = !options.recorder.empty();
    for (std::string word : options.recorder) {
      if (const size_t hole = word.find("{}"); hole != std::string::npos) word.replace(hole, 2, one.folder.string());
      one.command.push_back(std::move(word));
    }
    one.command.insert(one.command.end(), words.begin(), words.end());
    one.command.insert(one.command.end(),
                       {"--device_id", std::to_string(one.device), "--output_dir", one.folder.string()});
    one.environment = {{"CUDA_VISIBLE_DEVICES", one.visible},
                       {"BENCHMARK_PY", "1"},
                       {"STROBE_BENCH_WARMUP", options.warmup},
                       {"STROBE_BENCH_RULES", options.rules}};
    if (!options.arrivals.empty()) one.environment["STROBE_BENCH_ARRIVALS"] = options.arrivals;
    planned.push_back(std::move(one));
    return {};
  };
  if (rank) {
    STROBE_TRY(add(rank->rank, rank->local % options.gpus));
    return planned;
  }
  for (int gpu = 0; gpu < options.gpus; ++gpu)
    for (int process = 0; process < options.processes; ++process) STROBE_TRY(add(process, gpu));
  return planned;
}

}  // namespace strobe::bench
