#include "tenants/experiment_grid.h"

#include <fmt/format.h>

#include <set>

#include "base/suggest.h"
#include "base/yaml/values.h"

namespace strobe::tenants {

using yaml::wrong;

Result<void> apply_setting(YAML::Node root, const std::string& key, const YAML::Node& value) {
  const size_t dot = key.find('.');
  if (dot == std::string::npos) {
    root[key] = value;
    return {};
  }
  const std::string tenant = key.substr(0, dot), rest = key.substr(dot + 1);
  const auto set = [&](YAML::Node node) {
    const size_t next = rest.find('.');
    if (next == std::string::npos) {
      node[rest] = value;
      return;
    }
    YAML::Node inner = node[rest.substr(0, next)];
    if (inner.IsScalar()) {  // "source: PATH", one of whose other keys is set
      const std::string path = inner.Scalar();
      node[rest.substr(0, next)] = YAML::Node(YAML::NodeType::Map);
      node[rest.substr(0, next)]["path"] = path;
    }
    node[rest.substr(0, next)][rest.substr(next + 1)] = value;
  };
  if (tenant == "defaults" || tenant == "all") {
    if (tenant == "defaults") {
      set(root["defaults"]);
      return {};
    }
    for (auto node : root["tenants"]) set(node);
    return {};
  }
  std::vector<std::string> names;
  for (auto node : root["tenants"]) {
    if (!node.IsMap() || !node["name"].IsDefined() || !node["name"].IsScalar()) continue;
    names.push_back(node["name"].Scalar());
    if (names.back() == tenant) {
      set(node);
      return {};
    }
  }
  names.emplace_back("all");
  return bad_data(fmt::format("no tenant '{}'; {}", tenant, suggest(tenant, names)));
}

Result<void> apply_change(YAML::Node root, const std::string& change) {
  const size_t equals = change.find('=');
  if (equals == std::string::npos || equals == 0) return usage_error("'" + change + "': expected KEY=VALUE");
  const std::string key = change.substr(0, equals);
  YAML::Node value;
  try {
    value = YAML::Load(change.substr(equals + 1));
  } catch (const YAML::Exception& fault) {
    return usage_error("'" + change + "': " + fault.msg);
  }
  if (!root.IsMap()) return {};  // told when it is read
  YAML::Node grid = root["grid"];
  if (grid.IsDefined() && grid.IsMap() && grid[key].IsDefined()) {
    YAML::Node only(YAML::NodeType::Sequence);
    if (!value.IsSequence()) only.push_back(value);
    grid[key] = value.IsSequence() ? value : only;
    return {};
  }
  auto applied = apply_setting(root, key, value);
  if (!applied) return usage_error("'" + change + "': " + applied.error().message());
  return {};
}

Result<std::vector<Axis>> read_grid(const YAML::Node& grid) {
  std::vector<Axis> axes;
  STROBE_ASSIGN(const auto entries, yaml::entries(grid, "grid"));
  for (const auto& [key, value] : entries) {
    if (!value.IsSequence() || value.size() == 0)
      return wrong(value.IsDefined() && !value.IsNull() ? value : key,
                   fmt::format("grid: {}: expected a list of values", key.Scalar()));
    Axis axis{key.Scalar(), {}};
    std::set<std::string> labels;
    for (const auto& entry : value) {
      const YAML::Node item = entry;
      Setting setting;
      setting.place = item;
      if (item.IsMap()) {
        STROBE_ASSIGN(const auto settings, yaml::entries(item, "grid: " + axis.name));
        std::string all;
        for (const auto& [inner, to] : settings) {
          if (inner.Scalar() == "name" && to.IsScalar()) {
            setting.label = to.Scalar();
            continue;
          }
          setting.values.emplace_back(inner.Scalar(), to);
          all += (all.empty() ? "" : ",") + inner.Scalar() + "=" + (to.IsScalar() ? to.Scalar() : "...");
        }
        if (setting.label.empty()) setting.label = all;
      } else if (item.IsScalar()) {
        setting.label = item.Scalar();
        setting.values.emplace_back(axis.name, item);
      } else {
        return wrong(item, fmt::format("grid: {}: expected a value, or keys and values", axis.name));
      }
      if (!labels.insert(setting.label).second)
        return wrong(item, fmt::format("grid: {}: '{}' stands here twice", axis.name, setting.label));
      axis.settings.push_back(std::move(setting));
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace strobe::tenants
