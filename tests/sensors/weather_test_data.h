// Tables of reference numbers and the real sweep, as weather's tests use them.
#pragma once

#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "support/test_data.h"

namespace strobe::sensors::test {

inline const auto kWeatherExtinction = "sensors/weather_extinction.csv";
inline const auto kWeatherMie = "sensors/weather_mie.csv";
inline const auto kWeatherReference = "sensors/weather_reference.csv";
inline const auto kRealSweep =
    "sensors/nuscenes/samples/LIDAR_TOP/n015-2018-07-24-11-22-45+0800__LIDAR_TOP__1532402927647951.pcd.bin";

using Row = std::map<std::string, std::string>;

inline double number(const Row& row, const std::string& column) {
  return std::stod(row.at(column));
}

inline std::vector<Row> read_table(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::string> names;
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    std::istringstream words(line);
    std::vector<std::string> cells;
    for (std::string cell; std::getline(words, cell, ',');) cells.push_back(cell);
    if (names.empty()) {
      names = cells;
      continue;
    }
    cells.resize(names.size());
    Row row;
    for (size_t i = 0; i < names.size(); ++i) row[names[i]] = cells[i];
    rows.push_back(row);
  }
  return rows;
}

inline std::vector<float> read_floats(const std::filesystem::path& path) {
  const std::string bytes = *read_file(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace strobe::sensors::test
