// Means of nested figures: {"a": {"cpu_time": 1}}, {"a": {"cpu_time": 3}} -> {"a": {"cpu_time": 2.0}}.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "strobe/bench/perf.h"

namespace strobe::bench {

class MeanOfFigures {
 public:
  // Anything but numbers and objects is left out, and so is a key that was the other of the two before.
  void add(const nlohmann::ordered_json& figures);
  // Rounded to 3 decimals, keys in the order in which they came. kStrobe: each number over as many as have it.
  // kOriginal: as CV-CUDA's recurse_divide_dict, which goes on dividing by the count of the first number that it met on
  // the way to a key.
  nlohmann::ordered_json mean(Rules rules) const;

 private:
  struct Node {
    std::string key;
    bool is_object = false;
    double sum = 0;
    int64_t count = 0;
    std::vector<std::unique_ptr<Node>> children;
    std::unordered_map<std::string, Node*> by_key;
  };
  static void add(Node& node, const nlohmann::ordered_json& figures);
  static nlohmann::ordered_json mean(const Node& node, Rules rules, int64_t divide_by);

  Node root_;
};

}  // namespace strobe::bench
