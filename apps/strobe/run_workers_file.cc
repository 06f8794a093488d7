#include "run_workers_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/suggest.h"
#include "base/yaml/values.h"

namespace strobe::app {

namespace {

constexpr size_t kMostWorkers = 256;
// Flags that the launcher sets itself, or that make no sense for a worker.
constexpr const char* kReserved[] = {"help", "config", "output", "format", "quiet"};

using yaml::Entries;
using yaml::entries;
using yaml::wrong;

Result<std::string> scalar(const YAML::Node& key, const YAML::Node& value) {
  if (!value.IsScalar())
    return wrong(value.IsNull() ? key : value, fmt::format("{}: expected one value", key.Scalar()));
  // What does not survive as an argument or in the environment.
  if (value.Scalar().find('\0') != std::string::npos)
    return wrong(value, fmt::format("{}: has a null character", key.Scalar()));
  return value.Scalar();
}

Result<int> whole_number(const YAML::Node& key, const YAML::Node& value, int least, int most) {
  int number = 0;
  if (!value.IsScalar() || !YAML::convert<int>::decode(value, number) || number < least || number > most)
    return wrong(value, fmt::format("{}: expected a whole number from {} to {}", key.Scalar(), least, most));
  return number;
}

Result<void> check_name(const YAML::Node& node, const std::string& name) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  if (name.empty() || name.size() > 100 || name.front() == '.' || name.front() == '-' ||
      !std::all_of(name.begin(), name.end(), fits) || name.ends_with(".sqlite"))
    return wrong(node, fmt::format("name '{}': expected letters, digits, _ - and . (it names a folder)", name));
  return {};
}

class Reader {
 public:
  explicit Reader(const CLI::App& run_flags) {
    for (const CLI::Option* option : run_flags.get_options()) {
      if (option->get_lnames().empty()) continue;
      const std::string& first = option->get_lnames().front();
      if (std::find(std::begin(kReserved), std::end(kReserved), first) != std::end(kReserved)) continue;
      for (const std::string& name : option->get_lnames()) flags_.emplace(name, option);
    }
  }

  Result<WorkersPlan> read(const YAML::Node& root) {
    WorkersPlan plan;
    STROBE_ASSIGN(const Entries all, entries(root, "the file"));
    YAML::Node workers(YAML::NodeType::Undefined);
    for (const auto& [key, value] : all) {
      if (key.Scalar() == "output") {
        STROBE_ASSIGN(plan.output, scalar(key, value));
      } else if (key.Scalar() == "defaults") {
        STROBE_TRY(read_worker(value, "defaults", defaults_));
      } else if (key.Scalar() == "workers") {
        workers.reset(value);
      } else {
        return wrong(key, fmt::format("no key '{}'; {}", key.Scalar(),
                                      suggest(key.Scalar(), {"output", "defaults", "workers"})));
      }
    }
    if (!workers.IsDefined() || !workers.IsSequence() || workers.size() == 0)
      return wrong(workers.IsDefined() ? workers : root,
                   "workers: expected a list of at least one worker (- name: ...)");
    std::set<std::string> names;
    for (const auto& node : workers) {
      Worker worker = defaults_;
      STROBE_TRY(read_worker(node, fmt::format("worker {}", plan.workers.size()), worker));
      if (!worker.flags.contains("input"))
        return wrong(node, fmt::format("worker {}: no input, neither here nor under defaults", plan.workers.size()));
      for (int copy = 0; copy < worker.count; ++copy) {
        WorkerPlan one = planned(worker, copy, plan.workers.size());
        if (!names.insert(one.name).second) return wrong(node, fmt::format("a second worker is named '{}'", one.name));
        plan.workers.push_back(std::move(one));
        if (plan.workers.size() > kMostWorkers) return wrong(node, fmt::format("more than {} workers", kMostWorkers));
      }
    }
    return plan;
  }

 private:
  struct Worker {
    std::string name, log;
    int count = 1;
    std::map<std::string, std::string> environment;
    std::map<std::string, std::vector<std::string>> flags;  // by the flag's first name: its arguments
  };

  Result<void> read_worker(const YAML::Node& node, const std::string& what, Worker& worker) {
    STROBE_ASSIGN(const Entries all, entries(node, what));
    std::set<std::string> seen;
    for (const auto& [key, value] : all) {
      std::string name = key.Scalar();
      std::replace(name.begin(), name.end(), '_', '-');
      STROBE_ASSIGN(const std::string canonical, read_key(name, key, value, what, worker));
      if (!seen.insert(canonical).second)
        return wrong(key, fmt::format("{}: '{}' stands here twice, under another spelling", what, key.Scalar()));
    }
    return {};
  }

  // Returns the key's one name among its spellings.
  Result<std::string> read_key(const std::string& name, const YAML::Node& key, const YAML::Node& value,
                               const std::string& what, Worker& worker) {
    if (name == "name" && what != "defaults") {
      STROBE_ASSIGN(worker.name, scalar(key, value));
      STROBE_TRY(check_name(value, worker.name));
      return name;
    }
    if (name == "log" && what != "defaults") {
      STROBE_ASSIGN(worker.log, scalar(key, value));
      return name;
    }
    if (name == "count") {
      STROBE_ASSIGN(worker.count, whole_number(key, value, 1, static_cast<int>(kMostWorkers)));
      return name;
    }
    if (name == "env") {
      STROBE_TRY(read_environment(value, what, worker));
      return name;
    }
    const auto flag = flags_.find(name);
    if (flag == flags_.end()) return unknown_key(name, key, what);
    const std::string canonical = flag->second->get_lnames().front();
    STROBE_ASSIGN(worker.flags[canonical], flag_arguments(*flag->second, canonical, key, value));
    return canonical;
  }

  Error unknown_key(const std::string& name, const YAML::Node& key, const std::string& what) const {
    if (name.starts_with("output"))
      return wrong(
          key, fmt::format("{}: a worker writes into its own folder of the output; 'output' stands at the top", what));
    std::vector<std::string> names = {"name", "log", "count", "env"};
    if (what == "defaults") names.erase(names.begin(), names.begin() + 2);
    for (const auto& [known, option] : flags_) names.push_back(known);
    return wrong(key, fmt::format("{}: no key '{}'; {}", what, key.Scalar(), suggest(name, names)));
  }

  static Result<void> read_environment(const YAML::Node& node, const std::string& what, Worker& worker) {
    STROBE_ASSIGN(const Entries all, entries(node, what + ": env"));
    for (const auto& [key, value] : all) {
      const std::string& name = key.Scalar();
      if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos)
        return wrong(key, fmt::format("{}: env: '{}' is no name of a variable", what, name));
      STROBE_ASSIGN(worker.environment[name], scalar(key, value));
    }
    return {};
  }

  static Result<std::vector<std::string>> flag_arguments(const CLI::Option& option, const std::string& name,
                                                         const YAML::Node& key, const YAML::Node& value) {
    std::vector<std::string> arguments;
    if (option.get_items_expected_max() == 0) {
      bool on = false;
      if (!value.IsScalar() || !YAML::convert<bool>::decode(value, on))
        return wrong(value.IsNull() ? key : value, fmt::format("{}: expected true or false", key.Scalar()));
      if (on) arguments.push_back("--" + name);
      return arguments;
    }
    if (!value.IsSequence()) {
      STROBE_ASSIGN(const std::string text, scalar(key, value));
      arguments.push_back("--" + name + "=" + text);
      return arguments;
    }
    if (option.get_items_expected_max() <= 1)
      return wrong(value, fmt::format("{}: expected one value, not a list", key.Scalar()));
    for (const auto& item : value) {
      STROBE_ASSIGN(const std::string text, scalar(key, item));
      arguments.push_back("--" + name + "=" + text);
    }
    return arguments;
  }

  static WorkerPlan planned(const Worker& worker, int copy, size_t index) {
    WorkerPlan plan;
    const std::string copy_suffix = worker.count > 1 ? fmt::format("_{}", copy) : "";
    plan.name = worker.name.empty() ? fmt::format("worker_{}", index) : worker.name + copy_suffix;
    for (const auto& [name, arguments] : worker.flags)
      plan.flags.insert(plan.flags.end(), arguments.begin(), arguments.end());
    if (const auto cores = worker.flags.find("core-bind"); cores != worker.flags.end() && !cores->second.empty())
      plan.cores = cores->second.front().substr(cores->second.front().find('=') + 1);
    plan.environment.assign(worker.environment.begin(), worker.environment.end());
    plan.log = worker.log;
    if (!worker.log.empty() && worker.count > 1) {
      const size_t slash = worker.log.rfind('/') == std::string::npos ? 0 : worker.log.rfind('/') + 1;
      const size_t dot = worker.log.rfind('.');
      plan.log.insert(dot == std::string::npos || dot <= slash ? worker.log.size() : dot, copy_suffix);
    }
    return plan;
  }

  std::map<std::string, const CLI::Option*> flags_;  // by each long name
  Worker defaults_;
};

}  // namespace

Result<WorkersPlan> read_workers(const std::string& text, const CLI::App& run_flags) {
  try {
    return Reader(run_flags).read(YAML::Load(text));
  } catch (const YAML::Exception& fault) {
    return yaml::wrong_at(fault.mark, fault.msg);
  }
}

}  // namespace strobe::app
