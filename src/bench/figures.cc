#include "bench/figures.h"

#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/mean.h"

namespace strobe::bench {
namespace {

// What a level above batches sums up.
struct Totals {
  int64_t items = 0, items_minus_warmup = 0;
  double warmup_cpu_ms = 0, warmup_gpu_ms = 0;
};

struct Node {
  std::string name;
  const RangeTime* range = nullptr;  // null: only a name on the way
  std::vector<std::unique_ptr<Node>> children;
  std::unordered_map<std::string_view, Node*> by_name;
  Json figures = Json::object();

  Node& child(std::string_view child_name) {
    if (const auto found = by_name.find(child_name); found != by_name.end()) return *found->second;
    children.push_back(std::make_unique<Node>());
    Node& made = *children.back();
    made.name = child_name;
    by_name.emplace(made.name, &made);
    return made;
  }
};

Node& node_at(Node& root, std::string_view path) {
  Node* at = &root;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    at = &at->child(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
  }
  return *at;
}

Json to_json(const Node& node) {
  Json out = Json::object();
  auto& members = out.get_ref<Json::object_t&>();
  members.reserve(node.children.size() + node.figures.size());  // a member that moves is copied with all below it
  for (const auto& child : node.children) members.emplace_back(child->name, to_json(*child));
  for (const auto& [key, value] : node.figures.items()) members.emplace_back(key, value);
  return out;
}

void add_per_item(Json& figures, const RangeTime& range, int64_t items) {
  figures["cpu_time_per_item"] = items > 0 ? round_ms(round_ms(range.cpu_ms) / static_cast<double>(items)) : 0.0;
  figures["gpu_time_per_item"] = items > 0 ? round_ms(round_ms(range.gpu_ms) / static_cast<double>(items)) : 0.0;
}

bool is_below(std::string_view path, std::string_view above, Rules rules) {
  return rules == Rules::kOriginal ? path.starts_with(above) : is_at_or_below(path, above);
}

void add_minus_warmup(Node& level, const Totals& totals) {
  Json& figures = level.figures;
  const auto per_item = [&totals](double ms) {
    return totals.items_minus_warmup > 0 ? round_ms(ms / static_cast<double>(totals.items_minus_warmup)) : 0.0;
  };
  // Batches right below obj_name, which has no time of its own.
  if (level.range != nullptr) {
    const double cpu_ms = round_ms(round_ms(level.range->cpu_ms) - totals.warmup_cpu_ms);
    const double gpu_ms = round_ms(round_ms(level.range->gpu_ms) - totals.warmup_gpu_ms);
    figures["cpu_time_minus_warmup"] = cpu_ms;
    figures["gpu_time_minus_warmup"] = gpu_ms;
    figures["cpu_time_minus_warmup_per_item"] = per_item(cpu_ms);
    figures["gpu_time_minus_warmup_per_item"] = per_item(gpu_ms);
  }
  figures["total_items_minus_warmup"] = totals.items_minus_warmup;
}

void index_paths(const Json& data, const std::string& path, std::unordered_map<std::string, const Json*>& by_path) {
  for (const auto& [key, value] : data.items()) {
    if (!value.is_object()) continue;
    const std::string below = path.empty() ? key : path + "/" + key;
    by_path.emplace(below, &value);
    index_paths(value, below, by_path);
  }
}

}  // namespace

double round_ms(double ms) {
  return std::nearbyint(ms * kMsDigits) / kMsDigits;
}

std::map<std::string, int64_t> total_batches(const RangeTimes& ranges) {
  std::map<std::string, int64_t> totals;
  for (const auto& range : ranges)
    if (range.closed_batch() && *range.batch->items > 0) ++totals[std::string(parent_path(range.path))];
  return totals;
}

bool counts(int64_t index, int64_t total, const Warmup& warmup) {
  return index + 1 > warmup.front && index + 1 + warmup.back <= total;
}

Json data_of(const RangeTimes& ranges, const Warmup& warmup, Rules rules) {
  const auto batches = total_batches(ranges);
  Node root;
  std::map<std::string, Totals> levels;
  for (const auto& range : ranges) {
    Node& node = node_at(root, range.path);
    node.range = &range;
    Json& figures = node.figures = Json::object();
    figures["cpu_time"] = round_ms(range.cpu_ms);
    figures["gpu_time"] = round_ms(range.gpu_ms);
    if (range.closed_batch()) {
      const int64_t items = *range.batch->items;
      figures["total_items"] = items;
      Totals& level = levels[std::string(parent_path(range.path))];
      level.items += items;
      if (items <= 0) continue;
      add_per_item(figures, range, items);
      if (counts(range.batch->index, batches.at(std::string(parent_path(range.path))), warmup)) {
        level.items_minus_warmup += items;
      } else {
        level.warmup_cpu_ms += round_ms(range.cpu_ms);
        level.warmup_gpu_ms += round_ms(range.gpu_ms);
      }
    } else if (!range.inside && !range.batch) {
      int64_t items = 0;
      if (const auto own = levels.find(range.path); own != levels.end()) {
        items = own->second.items;
      } else {
        for (const auto& [path, level] : levels)
          if (is_below(path, range.path, rules)) items += level.items;
      }
      add_per_item(figures, range, items);
      figures["total_items"] = items;
    }
  }
  for (const auto& [path, level] : levels) add_minus_warmup(node_at(root, path), level);
  return to_json(root);
}

Json mean_data_of(const Json& data, const RangeTimes& ranges, const Warmup& warmup, Rules rules) {
  const auto batches = total_batches(ranges);
  std::unordered_map<std::string, const Json*> by_path;
  index_paths(data, "", by_path);
  std::vector<std::string> order;
  std::unordered_map<std::string, MeanOfFigures> means;
  for (const auto& range : ranges) {
    if (!range.closed_batch() || *range.batch->items <= 0) continue;
    const std::string level(parent_path(range.path));
    if (!counts(range.batch->index, batches.at(level), warmup)) continue;
    const auto [mean, is_new] = means.try_emplace(level);
    if (is_new) order.push_back(level);
    mean->second.add(*by_path.at(range.path));
  }
  Json out = Json::object();
  for (const auto& level : order) out[level] = means.at(level).mean(rules);
  return out;
}

Json benchmark_of(const std::string& obj_name, const RangeTimes& ranges, const Warmup& warmup, Rules rules, Json meta) {
  Json out;
  out["data"] = data_of(ranges, warmup, rules);
  out["mean_data"] = mean_data_of(out["data"], ranges, warmup, rules);
  Json& own = out["meta"];
  own["obj_name"] = obj_name;
  own["measurement_unit"] = "milliseconds";
  own["total_batches"] = Json::object();
  for (const auto& [path, count] : total_batches(ranges)) own["total_batches"][path] = count;
  Json batches = Json::object();
  auto& members = batches.get_ref<Json::object_t&>();
  members.reserve(ranges.size());
  for (const auto& range : ranges)
    if (range.batch)
      members.emplace_back(range.path,
                           Json::array({range.batch->index, range.batch->items ? Json(*range.batch->items) : Json()}));
  if (meta.is_object())
    for (auto& [key, value] : meta.items()) own[key] = value;
  Json& strobe = own["strobe"];
  if (!strobe.is_object()) strobe = Json::object();
  strobe["warmup"] = {{"front", warmup.front}, {"back", warmup.back}, {"rule", warmup.automatic ? "MSER-5" : "count"}};
  strobe["rules"] = rules == Rules::kOriginal ? "original" : "strobe";
  strobe["batches"] = std::move(batches);
  return out;
}

}  // namespace strobe::bench
