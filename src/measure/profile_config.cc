#include "measure/profile_config.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/suggest.h"
#include "base/yaml/values.h"
#include "engines/loader.h"
#include "measure/gpu_device.h"
#include "models/prune.h"
#include "models/zoo.h"

namespace strobe::measure {

namespace fs = std::filesystem;
using yaml::wrong;

std::string_view to_string(Stage stage) {
  return stage == Stage::kTraining ? "training" : "inference";
}
std::string_view to_string(Quantity quantity) {
  return quantity == Quantity::kMemory ? "memory" : "latency";
}

bool engine_trains(std::string_view engine) {
  return engine.substr(0, engine.find(':')) == "torch";
}

namespace {

constexpr int64_t kMostBatch = 65536, kMostSide = 8192;
constexpr double kDay = 86400;
constexpr size_t kMostItems = 10000;

using Setter = std::function<Result<void>(const YAML::Node&)>;

// One item or several, each once, in the order given.
template <typename T>
Result<void> read_items(const YAML::Node& node, const std::function<Result<T>(const YAML::Node&)>& read,
                        std::vector<T>& into) {
  std::vector<T> items;
  const auto add = [&](const YAML::Node& item) -> Result<void> {
    STROBE_ASSIGN(T value, read(item));
    if (std::find(items.begin(), items.end(), value) != items.end()) return wrong(item, "stands here twice");
    items.push_back(std::move(value));
    return {};
  };
  if (node.IsSequence()) {
    if (node.size() > kMostItems) return wrong(node, fmt::format("expected at most {} items", kMostItems));
    for (const auto& item : node) STROBE_TRY(add(item));
  } else {
    STROBE_TRY(add(node));
  }
  if (items.empty()) return wrong(node, "the list is empty");
  into = std::move(items);
  return {};
}

template <typename T>
Result<T> read_choice(const YAML::Node& node, const std::vector<T>& choices) {
  STROBE_ASSIGN(const std::string text, yaml::text(node));
  std::vector<std::string> names;
  for (const T& choice : choices) {
    const std::string name(to_string(choice));
    if (name == text) return choice;
    names.push_back(name);
  }
  return wrong(node, fmt::format("\"{}\"; {}", text, suggest(text, names)));
}

// A name may stand in a CSV file as it is.
bool is_plain_name(const std::string& text) {
  std::string without_dots = text;
  std::erase(without_dots, '.');
  return yaml::is_name(without_dots) && text.size() <= 60;
}

class Reader {
 public:
  Reader(ProfileConfig& config, fs::path base) : config_(config), base_(std::move(base)) {
    setters_ = {
        {"networks", [this](const YAML::Node& node) { return read_networks(node); }},
        {"levels", [this](const YAML::Node& node) { return read_levels(node); }},
        {"method", [this](const YAML::Node& node) { return read_method(node); }},
        {"seed", [this](const YAML::Node& node) { return yaml::whole(node, 0, INT64_MAX, config_.seed); }},
        {"width", [this](const YAML::Node& node) { return yaml::whole(node, 0, kMostSide, config_.width); }},
        {"height", [this](const YAML::Node& node) { return yaml::whole(node, 0, kMostSide, config_.height); }},
        {"batch_sizes",
         [this](const YAML::Node& node) -> Result<void> {
           const auto batch = [](const YAML::Node& item) { return yaml::whole_number(item, 1, kMostBatch); };
           STROBE_TRY(read_items<int64_t>(node, batch, config_.batch_sizes));
           std::sort(config_.batch_sizes.begin(), config_.batch_sizes.end());
           return {};
         }},
        {"stages",
         [this](const YAML::Node& node) {
           const auto stage = [](const YAML::Node& item) {
             return read_choice<Stage>(item, {Stage::kTraining, Stage::kInference});
           };
           return read_items<Stage>(node, stage, config_.stages);
         }},
        {"quantities",
         [this](const YAML::Node& node) {
           const auto quantity = [](const YAML::Node& item) {
             return read_choice<Quantity>(item, {Quantity::kMemory, Quantity::kLatency});
           };
           return read_items<Quantity>(node, quantity, config_.quantities);
         }},
        {"engines",
         [this](const YAML::Node& node) {
           const auto text = [](const YAML::Node& item) { return yaml::text(item); };
           return read_items<std::string>(node, text, config_.engines);
         }},
        {"device", [this](const YAML::Node& node) { return yaml::words(node, config_.device); }},
        {"threads", [this](const YAML::Node& node) { return yaml::whole(node, 0, 4096, config_.threads); }},
        {"till_first_fail", [this](const YAML::Node& node) { return yaml::flag(node, config_.till_first_fail); }},
        {"repetitions", [this](const YAML::Node& node) { return yaml::whole(node, 2, 100000, config_.repetitions); }},
        {"most_repetitions",
         [this](const YAML::Node& node) { return yaml::whole(node, 2, 100000, config_.most_repetitions); }},
        {"half_width", [this](const YAML::Node& node) { return yaml::number(node, 0, 1, config_.half_width); }},
        {"measure_time", [this](const YAML::Node& node) { return yaml::number(node, 0, kDay, config_.measure_s); }},
        {"warmup_time", [this](const YAML::Node& node) { return yaml::number(node, 0, kDay, config_.warmup_s); }},
        {"attempts", [this](const YAML::Node& node) { return yaml::whole(node, 1, 100, config_.attempts); }},
        {"timeout", [this](const YAML::Node& node) { return yaml::number(node, 0.1, kDay, config_.timeout_s); }},
        {"memory_limit",
         [this](const YAML::Node& node) -> Result<void> {
           config_.memory_limit_mib = 0;
           if (node.IsScalar() && node.Scalar() == "auto") return {};
           if (!yaml::whole(node, 1, int64_t{1} << 30, config_.memory_limit_mib))
             return wrong(node, "memory_limit: expected MiB as a whole number, as 4096, or auto");
           return {};
         }},
        {"calibration", [this](const YAML::Node& node) { return yaml::number(node, 0, 3600, config_.calibration_s); }},
    };
  }

  Result<void> set(const std::string& key, const YAML::Node& key_node, const YAML::Node& value) {
    const auto found = setters_.find(key);
    if (found != setters_.end()) return found->second(value);
    std::vector<std::string> names;
    for (const auto& [name, setter] : setters_) names.push_back(name);
    return wrong(key_node, fmt::format("no key '{}'; {}", key, suggest(key, names)));
  }

 private:
  // A word names a built-in network; what ends as a file does is a file beside the configuration.
  std::string source_of(const std::string& text) const {
    if (models::find_in_zoo(text) != nullptr || fs::path(text).is_absolute() || base_.empty()) return text;
    return (base_ / text).string();
  }

  Result<NetworkChoice> read_network(const YAML::Node& node) const {
    NetworkChoice choice;
    std::string name;
    if (node.IsMap()) {
      STROBE_ASSIGN(const auto entries, yaml::entries(node, "network"));
      for (const auto& [key, value] : entries) {
        if (key.Scalar() == "file") {
          STROBE_ASSIGN(choice.source, yaml::text(value));
        } else if (key.Scalar() == "name") {
          STROBE_ASSIGN(name, yaml::text(value));
        } else if (key.Scalar() == "level") {
          STROBE_ASSIGN(const int64_t level, yaml::whole_number(value, 0, 100));
          choice.level = static_cast<int>(level);
        } else {
          return wrong(key, fmt::format("network: no key '{}'; {}", key.Scalar(),
                                        suggest(key.Scalar(), {"file", "name", "level"})));
        }
      }
    } else {
      STROBE_ASSIGN(choice.source, yaml::text(node));
    }
    if (choice.source.empty()) return wrong(node, "network: expected a built-in name, a file, or {file, name, level}");
    choice.name = name.empty() ? fs::path(choice.source).stem().string() : name;
    if (models::find_in_zoo(choice.source) != nullptr && name.empty()) choice.name = choice.source;
    if (!is_plain_name(choice.name))
      return wrong(node, fmt::format("network: the name \"{}\" may have letters, digits, '.', '_' and '-' only, at "
                                     "most 60; give one (name:)",
                                     choice.name));
    choice.source = source_of(choice.source);
    return choice;
  }

  Result<void> read_networks(const YAML::Node& node) {
    std::vector<NetworkChoice> choices;
    const auto add = [&](const YAML::Node& item) -> Result<void> {
      STROBE_ASSIGN(NetworkChoice choice, read_network(item));
      for (const NetworkChoice& other : choices) {
        if (other.name == choice.name && (other.level == choice.level || !other.level || !choice.level))
          return wrong(item, fmt::format("network '{}' stands here twice", choice.name));
      }
      choices.push_back(std::move(choice));
      return {};
    };
    if (node.IsSequence()) {
      if (node.size() > kMostItems) return wrong(node, fmt::format("expected at most {} items", kMostItems));
      for (const auto& item : node) STROBE_TRY(add(item));
    } else {
      STROBE_TRY(add(node));
    }
    if (choices.empty()) return wrong(node, "the list is empty");
    config_.networks = std::move(choices);
    return {};
  }

  Result<void> read_levels(const YAML::Node& node) {
    std::vector<std::string> words;
    STROBE_TRY(yaml::list(node, words));
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
    auto levels = models::parse_levels(text);
    if (!levels) return wrong(node, levels.error().message());
    config_.levels = std::move(*levels);
    return {};
  }

  Result<void> read_method(const YAML::Node& node) {
    STROBE_ASSIGN(const std::string text, yaml::text(node));
    const auto method = models::parse_prune_method(text);
    if (!method) return wrong(node, method.error().message());
    config_.method = text;
    return {};
  }

  ProfileConfig& config_;
  fs::path base_;
  std::map<std::string, Setter> setters_;
};

}  // namespace

Result<ProfileConfig> read_profile_config(const std::string& text, const fs::path& base) {
  ProfileConfig config;
  try {
    const YAML::Node root = YAML::Load(text);
    Reader reader(config, base);
    STROBE_ASSIGN(const auto entries, yaml::entries(root, "profile"));
    for (const auto& [key, value] : entries) STROBE_TRY(reader.set(key.Scalar(), key, value));
  } catch (const YAML::Exception& fault) {
    return yaml::wrong_at(fault.mark, fault.msg);
  }
  return config;
}

Result<void> set_in_profile(ProfileConfig& config, const std::string& key, const std::string& text) {
  const auto refused = [&](const std::string& why) {
    return usage_error(fmt::format("{} \"{}\": {}", key, text, why));
  };
  YAML::Node value;
  if (text.find(',') == std::string::npos) {
    value = text;
  } else {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      value.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  ProfileConfig changed = config;
  const auto set = Reader(changed, {}).set(key, YAML::Node(key), value);
  if (!set) return refused(set.error().message().substr(set.error().message().find_first_not_of(' ')));
  config = std::move(changed);
  return {};
}

Result<void> check_profile_config(const ProfileConfig& config) {
  if (config.networks.empty()) return usage_error("no network is named (networks:, or --networks)");
  if (config.batch_sizes.empty()) return usage_error("no batch size is named (batch_sizes:, or --batch-sizes)");
  if (config.most_repetitions < config.repetitions)
    return usage_error(
        fmt::format("most_repetitions {} is less than repetitions {}", config.most_repetitions, config.repetitions));
  STROBE_TRY(gpu_number(config.device));
  for (const std::string& engine : config.engines) STROBE_TRY(engines::check_engine(engine));
  const bool trains = std::find(config.stages.begin(), config.stages.end(), Stage::kTraining) != config.stages.end();
  if (trains && std::none_of(config.engines.begin(), config.engines.end(), engine_trains))
    return unsupported(fmt::format("stage training: engine {} only infers; torch trains", joined(config.engines)));
  for (const NetworkChoice& network : config.networks) {
    std::error_code ignored;
    if (models::find_in_zoo(network.source) != nullptr || fs::is_regular_file(network.source, ignored)) continue;
    std::vector<std::string> names;
    for (const models::ZooEntry& entry : models::zoo()) names.emplace_back(entry.name);
    return not_found(fmt::format("network '{}' is no built-in network and no file; {}", network.source,
                                 suggest(network.source, names)));
  }
  return {};
}

}  // namespace strobe::measure
