#include "tenants/experiment.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/suggest.h"
#include "base/tenant_words.h"
#include "base/yaml/values.h"
#include "tenants/experiment_grid.h"
#include "tenants/spin_task.h"
#include "tenants/units.h"

namespace strobe::tenants {

namespace fs = std::filesystem;

namespace {

using yaml::wrong;

constexpr size_t kMostCells = 10000;
constexpr size_t kMostTenants = 64;

// A value's own error, at its place.
template <typename T>
Result<void> store(const YAML::Node& node, Result<T> value, T& into) {
  if (!value) return wrong(node, value.error().message());
  into = std::move(*value);
  return {};
}

Result<void> read_duration(const YAML::Node& node, double scale, double& into) {
  STROBE_ASSIGN(const std::string text, yaml::text(node));
  auto seconds = parse_duration(text);
  if (!seconds) return wrong(node, seconds.error().message());
  into = *seconds * scale;
  return {};
}

template <typename T>
Result<void> read_word(const YAML::Node& node, const std::vector<std::pair<std::string, T>>& words, T& into) {
  STROBE_ASSIGN(const std::string text, yaml::text(node));
  std::vector<std::string> names;
  for (const auto& [name, value] : words) {
    if (name == text) {
      into = value;
      return {};
    }
    names.push_back(name);
  }
  return wrong(node, fmt::format("\"{}\"; {}", text, suggest(text, names)));
}

using Setter = std::function<Result<void>(const YAML::Node&)>;
using Setters = std::map<std::string, Setter>;

// Every key of a map through its setter.
Result<void> read_map(const YAML::Node& node, const std::string& what, const Setters& setters) {
  STROBE_ASSIGN(const auto entries, yaml::entries(node, what));
  for (const auto& [key, value] : entries) {
    const auto found = setters.find(key.Scalar());
    if (found == setters.end()) {
      std::vector<std::string> names;
      for (const auto& [name, setter] : setters) names.push_back(name);
      return wrong(key, fmt::format("{}: no key '{}'; {}", what, key.Scalar(), suggest(key.Scalar(), names)));
    }
    if (auto read = found->second(value); !read) {
      Error error = std::move(read).error();
      return error;
    }
  }
  return {};
}

class SpecReader {
 public:
  explicit SpecReader(fs::path base) : base_(std::move(base)) {}

  // A whole document without its grid.
  Result<CellSpec> read(const YAML::Node& root) const {
    CellSpec spec;
    YAML::Node tenants, defaults;
    const auto ignore = [](const YAML::Node&) -> Result<void> { return {}; };
    const Setters setters = {
        {"name", ignore},
        {"description", ignore},
        {"grid", ignore},
        {"repeat", ignore},
        {"policy",
         [&](const YAML::Node& node) -> Result<void> {
           STROBE_ASSIGN(const std::string text, yaml::text(node));
           return store(node, parse_policy(text), spec.policy);
         }},
        {"isolation",
         [&](const YAML::Node& node) {
           return read_word<Isolation>(node, {{"threads", Isolation::kThreads}, {"processes", Isolation::kProcesses}},
                                       spec.isolation);
         }},
        {"duration", [&](const YAML::Node& node) { return read_duration(node, 1, spec.duration_s); }},
        {"warmup", [&](const YAML::Node& node) { return read_duration(node, 1, spec.warmup_s); }},
        {"hang_timeout", [&](const YAML::Node& node) { return read_duration(node, 1, spec.hang_s); }},
        {"time_limit", [&](const YAML::Node& node) { return read_duration(node, 1, spec.time_limit_s); }},
        {"seed", [&](const YAML::Node& node) { return yaml::whole(node, 0, INT64_MAX, spec.seed); }},
        {"mps", [&](const YAML::Node& node) { return yaml::flag(node, spec.mps.emplace()); }},
        {"defaults",
         [&](const YAML::Node& node) -> Result<void> {
           defaults = node;
           return {};
         }},
        {"tenants",
         [&](const YAML::Node& node) -> Result<void> {
           tenants = node;
           return {};
         }},
    };
    STROBE_TRY(read_map(root, "the file", setters));
    if (spec.duration_s <= 0) return wrong(root, "duration: expected more than 0");
    if (spec.mps.value_or(false) && spec.isolation == Isolation::kThreads)
      return wrong(root["mps"], "mps: expected isolation: processes; threads of one process are one client of it");
    if (spec.hang_s <= 0) return wrong(root, "hang_timeout: expected more than 0");
    if (!tenants.IsDefined() || !tenants.IsSequence() || tenants.size() == 0)
      return wrong(root, "tenants: expected a list of at least one tenant (- name: ...)");
    TenantSpec standard;
    if (defaults.IsDefined() && !defaults.IsNull()) STROBE_TRY(read_tenant(defaults, "defaults", standard));
    std::set<std::string> names;
    for (const auto& node : tenants) {
      TenantSpec tenant = standard;
      STROBE_TRY(read_tenant(node, fmt::format("tenant {}", spec.tenants.size()), tenant));
      if (tenant.name.empty()) return wrong(node, fmt::format("tenant {}: no name", spec.tenants.size()));
      if (tenant.model.empty()) return wrong(node, fmt::format("tenant {}: no model", tenant.name));
      if (!names.insert(tenant.name).second)
        return wrong(node, fmt::format("a second tenant is named {}", tenant.name));
      if (1e-3 * tenant.offset_ms >= spec.warmup_s + spec.duration_s)
        return wrong(node,
                     fmt::format("tenant {}: offset: expected less than warmup and duration together ({:g} s); no "
                                 "frame would be due",
                                 tenant.name, spec.warmup_s + spec.duration_s));
      spec.tenants.push_back(std::move(tenant));
      if (spec.tenants.size() > kMostTenants) return wrong(node, fmt::format("more than {} tenants", kMostTenants));
    }
    return spec;
  }

 private:
  Result<void> read_tenant(const YAML::Node& node, const std::string& what, TenantSpec& tenant) const {
    return read_map(
        node, what,
        {
            {"name",
             [&](const YAML::Node& value) -> Result<void> {
               STROBE_ASSIGN(tenant.name, yaml::text(value));
               if (!yaml::is_name(tenant.name))
                 return wrong(value, fmt::format("name '{}': expected letters, digits, _ and -", tenant.name));
               for (const char* taken : tenant_words::kTakenNames)
                 if (tenant.name == taken)
                   return wrong(value, fmt::format("name '{}': blame has another meaning for it", tenant.name));
               for (const char* taken : {"all", "defaults"})
                 if (tenant.name == taken)
                   return wrong(value,
                                fmt::format("name '{}': keys of a grid have another meaning for it", tenant.name));
               return {};
             }},
            {"source", [&](const YAML::Node& value) { return read_source(value, tenant.source); }},
            {"model",
             [&](const YAML::Node& value) -> Result<void> {
               STROBE_ASSIGN(tenant.model, yaml::text(value));
               if (!is_spin(tenant.model) && is_path(tenant.model)) tenant.model = resolved(tenant.model);
               return {};
             }},
            {"weights",
             [&](const YAML::Node& value) -> Result<void> {
               STROBE_ASSIGN(const std::string path, yaml::text(value));
               tenant.weights = resolved(path);
               return {};
             }},
            {"engine", [&](const YAML::Node& value) { return yaml::words(value, tenant.engine); }},
            {"device", [&](const YAML::Node& value) { return yaml::words(value, tenant.device); }},
            {"cores", [&](const YAML::Node& value) { return yaml::words(value, tenant.cores); }},
            {"threads", [&](const YAML::Node& value) { return yaml::whole(value, 1, 1024, tenant.threads); }},
            {"priority",
             [&](const YAML::Node& value) { return yaml::whole(value, -1000000, 1000000, tenant.priority); }},
            {"nice", [&](const YAML::Node& value) { return yaml::whole(value, -20, 19, tenant.nice.emplace()); }},
            {"realtime", [&](const YAML::Node& value) { return yaml::whole(value, 1, 99, tenant.realtime.emplace()); }},
            {"rate",
             [&](const YAML::Node& value) -> Result<void> {
               STROBE_ASSIGN(const std::string text, yaml::text(value));
               return store(value, parse_rate(text), tenant.rate_hz);
             }},
            {"batch", [&](const YAML::Node& value) { return yaml::whole(value, 1, 1024, tenant.batch); }},
            {"offset", [&](const YAML::Node& value) { return read_duration(value, 1e3, tenant.offset_ms); }},
            {"jitter", [&](const YAML::Node& value) { return read_duration(value, 1e3, tenant.jitter_ms); }},
            {"deadline", [&](const YAML::Node& value) { return read_duration(value, 1e3, tenant.deadline_ms); }},
            {"queue", [&](const YAML::Node& value) { return yaml::whole(value, 1, 100000, tenant.queue); }},
            {"drop",
             [&](const YAML::Node& value) {
               return read_word<QueueDrop>(
                   value,
                   {{"oldest", QueueDrop::kOldest}, {"newest", QueueDrop::kNewest}, {"never", QueueDrop::kNever}},
                   tenant.drop);
             }},
            {"score", [&](const YAML::Node& value) { return yaml::fraction(value, tenant.score_threshold); }},
            {"memory_limit",
             [&](const YAML::Node& value) -> Result<void> {
               STROBE_ASSIGN(const std::string text, yaml::text(value));
               return store(value, parse_bytes(text), tenant.memory_limit);
             }},
            {"layers", [&](const YAML::Node& value) { return yaml::flag(value, tenant.layers); }},
            {"mps_share", [&](const YAML::Node& value) { return yaml::whole(value, 1, 100, tenant.mps_share); }},
            {"mps_priority",
             [&](const YAML::Node& value) {
               return read_word<bool>(value, {{"normal", false}, {"below", true}}, tenant.mps_below);
             }},
            {"fault", [&](const YAML::Node& value) { return read_fault(value, tenant.fault); }},
        });
  }

  Result<void> read_source(const YAML::Node& node, SourceSpec& source) const {
    if (node.IsScalar()) {
      if (!read_kind(node.Scalar(), source)) {
        source.path = resolved(node.Scalar());
        source.kind = kind_of(source.path);
      }
      return {};
    }
    bool kind_is_told = false;
    STROBE_TRY(read_map(
        node, "source",
        {
            {"kind",
             [&](const YAML::Node& value) {
               kind_is_told = true;
               return read_word<SourceSpec::Kind>(value,
                                                  {{"synthetic", SourceSpec::Kind::kSynthetic},
                                                   {"media", SourceSpec::Kind::kMedia},
                                                   {"sweeps", SourceSpec::Kind::kSweeps},
                                                   {"nuscenes", SourceSpec::Kind::kNuscenes},
                                                   {"mcap", SourceSpec::Kind::kMcap},
                                                   {"ros2", SourceSpec::Kind::kRos2}},
                                                  source.kind);
             }},
            {"path",
             [&](const YAML::Node& value) -> Result<void> {
               STROBE_ASSIGN(const std::string path, yaml::text(value));
               if (read_kind(path, source)) {  // "source: synthetic", one of whose other keys is set
                 kind_is_told = true;
               } else {
                 source.path = resolved(path);
               }
               return {};
             }},
            {"topic",
             [&](const YAML::Node& value) -> Result<void> {
               kind_is_told = true;
               source.kind = SourceSpec::Kind::kRos2;
               STROBE_ASSIGN(source.path, yaml::text(value));
               return {};
             }},
            {"domain", [&](const YAML::Node& value) { return yaml::whole(value, 0, 232, source.domain); }},
            {"reliable", [&](const YAML::Node& value) { return yaml::flag(value, source.reliable); }},
            {"scene", [&](const YAML::Node& value) { return yaml::words(value, source.scene); }},
            {"channels", [&](const YAML::Node& value) { return yaml::list(value, source.channels); }},
            {"weather",
             [&](const YAML::Node& value) -> Result<void> {
               std::string ignored;
               return read_word<std::string>(value, {{"none", ""}, {"rain", "rain"}, {"snow", "snow"}, {"fog", "fog"}},
                                             source.weather);
             }},
            {"weather_rate",
             [&](const YAML::Node& value) { return yaml::number(value, 0, 1000, source.weather_rate); }},
            {"frames", [&](const YAML::Node& value) { return yaml::whole(value, 0, INT64_MAX, source.most_frames); }},
        }));
    if (!kind_is_told && !source.path.empty()) source.kind = kind_of(source.path);
    if (source.kind != SourceSpec::Kind::kSynthetic && source.path.empty()) return wrong(node, "source: no path");
    return {};
  }

  // "synthetic" and "ros2:/TOPIC", which are no files. Whether it was one of them.
  static bool read_kind(const std::string& text, SourceSpec& source) {
    constexpr std::string_view kTopic = "ros2:";
    if (text == "synthetic") {
      source.kind = SourceSpec::Kind::kSynthetic;
    } else if (text.starts_with(kTopic)) {
      source.kind = SourceSpec::Kind::kRos2;
      source.path = text.substr(kTopic.size());
    } else {
      return false;
    }
    return true;
  }

  Result<void> read_fault(const YAML::Node& node, FaultSpec& fault) const {
    STROBE_TRY(
        read_map(node, "fault",
                 {{"kind",
                   [&](const YAML::Node& value) {
                     return read_word<FaultSpec::Kind>(value,
                                                       {{"none", FaultSpec::Kind::kNone},
                                                        {"crash", FaultSpec::Kind::kCrash},
                                                        {"hang", FaultSpec::Kind::kHang},
                                                        {"exit", FaultSpec::Kind::kExit},
                                                        {"leak", FaultSpec::Kind::kLeak},
                                                        {"sensor-stops", FaultSpec::Kind::kSensorStops},
                                                        {"sensor-repeats", FaultSpec::Kind::kSensorRepeats}},
                                                       fault.kind);
                   }},
                  {"after", [&](const YAML::Node& value) { return yaml::whole(value, 0, INT64_MAX, fault.after); }}}));
    if (fault.kind != FaultSpec::Kind::kNone && fault.after == 0)
      return wrong(node, "fault: expected after: FRAMES, at least 1");
    return {};
  }

  // A model that is a file, and no name of a built-in one.
  static bool is_path(const std::string& model) {
    static const std::set<std::string> kFiles = {".onnx", ".xml", ".pt", ".pt2", ".engine", ".plan", ".cfg", ".json"};
    return model.find('/') != std::string::npos || kFiles.contains(fs::path(model).extension().string());
  }

  // ${NAME} is taken from the environment, so that a file need not know where data lies.
  std::string resolved(const std::string& path) const {
    std::string text;
    for (size_t i = 0; i < path.size(); ++i) {
      const size_t end = path.compare(i, 2, "${") == 0 ? path.find('}', i) : std::string::npos;
      if (end == std::string::npos) {
        text += path[i];
        continue;
      }
      const char* value = std::getenv(path.substr(i + 2, end - i - 2).c_str());
      text += value != nullptr ? value : path.substr(i, end - i + 1);
      i = end;
    }
    if (text.empty() || text.find("://") != std::string::npos || fs::path(text).is_absolute()) return text;
    return (base_ / text).lexically_normal().string();
  }

  static SourceSpec::Kind kind_of(const std::string& path) {
    std::error_code ignored;
    if (path.ends_with(".mcap")) return SourceSpec::Kind::kMcap;
    if (path.ends_with(".bin")) return SourceSpec::Kind::kSweeps;
    for (const auto& entry : fs::directory_iterator(path, ignored)) {
      if (entry.path().filename().string().starts_with("v1.0-")) return SourceSpec::Kind::kNuscenes;
      if (entry.path().extension() == ".bin") return SourceSpec::Kind::kSweeps;
    }
    return SourceSpec::Kind::kMedia;
  }

  fs::path base_;
};

// What may stand in a folder's name; the rest becomes '-'.
std::string folder_word(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 &&
        std::string_view("._-+=,").find(c) == std::string_view::npos)
      c = '-';
  return text.substr(0, 60);
}

std::string folder_of(int64_t index, const std::vector<std::pair<std::string, std::string>>& factors) {
  std::string name = fmt::format("{:03}", index);
  for (const auto& [key, value] : factors) name += "_" + folder_word(key) + "=" + folder_word(value);
  return name.substr(0, 200);
}

Result<Experiment> read(const YAML::Node& root, const fs::path& base) {
  if (!root.IsMap()) return wrong(root, "expected keys and values: tenants: [...]");
  const SpecReader reader(base);
  STROBE_ASSIGN(const CellSpec alone, reader.read(root));  // errors at their place in the file
  (void)alone;
  Experiment experiment;
  if (root["name"].IsDefined()) STROBE_TRY(yaml::words(root["name"], experiment.name));
  if (root["description"].IsDefined()) STROBE_TRY(yaml::words(root["description"], experiment.description));
  int64_t repeats = 1;
  if (root["repeat"].IsDefined()) STROBE_TRY(yaml::whole(root["repeat"], 1, 10000, repeats));
  std::vector<Axis> axes;
  if (root["grid"].IsDefined() && !root["grid"].IsNull()) {
    STROBE_ASSIGN(axes, read_grid(root["grid"]));
  }
  size_t count = static_cast<size_t>(repeats);
  for (const Axis& axis : axes) {
    experiment.axes.push_back(axis.name);
    count *= axis.settings.size();
    if (count > kMostCells) return wrong(root["grid"], fmt::format("the grid has more than {} cells", kMostCells));
  }
  // The last axis turns fastest; repetitions follow each other last of all, so that a drift of the machine meets all.
  for (size_t i = 0; i < count; ++i) {
    Cell cell;
    cell.index = static_cast<int64_t>(i);
    YAML::Node document = YAML::Clone(root);
    size_t rest = i % (count / static_cast<size_t>(repeats));
    const int64_t repeat = static_cast<int64_t>(i / (count / static_cast<size_t>(repeats)));
    std::vector<const Setting*> chosen(axes.size());
    for (size_t a = axes.size(); a-- > 0;) {
      chosen[a] = &axes[a].settings[rest % axes[a].settings.size()];
      rest /= axes[a].settings.size();
    }
    for (size_t a = 0; a < axes.size(); ++a) {
      cell.factors.emplace_back(axes[a].name, chosen[a]->label);
      for (const auto& [key, value] : chosen[a]->values)
        if (auto applied = apply_setting(document, key, value); !applied)
          return wrong(chosen[a]->place, fmt::format("grid: {}: {}", axes[a].name, applied.error().message()));
    }
    if (repeats > 1) cell.factors.emplace_back("repeat", std::to_string(repeat));
    for (const char* key : {"grid", "repeat", "name", "description"}) document.remove(key);
    cell.settings = YAML::Dump(document);
    auto spec = reader.read(document);
    if (!spec) {
      std::string which;
      for (const auto& [key, value] : cell.factors) which += fmt::format(" {}={}", key, value);
      // "3:5: message"; of a value whose place is not known, " message": then the grid's place.
      const std::string message = spec.error().message();
      const size_t end = message.find_first_not_of("0123456789:");
      if (end == 0 || end == std::string::npos) return wrong(root["grid"], fmt::format("cell{}:{}", which, message));
      return bad_data(fmt::format("{} cell{}:{}", message.substr(0, end), which, message.substr(end)));
    }
    cell.spec = std::move(*spec);
    cell.spec.seed += static_cast<uint64_t>(repeat);
    cell.settings += fmt::format("\n# seed {}\n", cell.spec.seed);
    cell.folder = folder_of(cell.index, cell.factors);
    experiment.cells.push_back(std::move(cell));
  }
  return experiment;
}

}  // namespace

Result<Experiment> read_experiment(const std::string& text, const fs::path& base,
                                   const std::vector<std::string>& changes) {
  try {
    YAML::Node root = YAML::Load(text);
    auto experiment = read(root, base);
    for (const std::string& change : changes) {
      if (!experiment) break;
      STROBE_TRY(apply_change(root, change));
      experiment = read(root, base);
      if (experiment) continue;
      // No place of the file: what is wrong does not stand in it.
      const std::string message = experiment.error().message();
      return usage_error("'" + change +
                         "': " + message.substr(std::min(message.size(), message.find_first_not_of("0123456789: "))));
    }
    return experiment;
  } catch (const YAML::Exception& fault) {
    return yaml::wrong_at(fault.mark, fault.msg);
  }
}

}  // namespace strobe::tenants
