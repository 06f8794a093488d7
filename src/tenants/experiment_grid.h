// What a grid changes in an experiment's document: keys of the file ("policy") and of its tenants ("lidar.rate").
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <utility>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::tenants {

// What a grid's value does, and how it is called.
struct Setting {
  std::string label;
  std::vector<std::pair<std::string, YAML::Node>> values;
  YAML::Node place;
};
struct Axis {
  std::string name;
  std::vector<Setting> settings;
};

// Errors: kBadData with the place.
Result<std::vector<Axis>> read_grid(const YAML::Node& grid);

// One setting of a grid's value: "policy" or "lidar.rate". Errors: kBadData (no such tenant).
Result<void> apply_setting(YAML::Node root, const std::string& key, const YAML::Node& value);

// "lidar.rate=5": in the grid, where it goes through that key. Errors: kUsage.
Result<void> apply_change(YAML::Node root, const std::string& change);

}  // namespace strobe::tenants
