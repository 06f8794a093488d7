#include "bench/mean.h"

#include "bench/figures.h"

namespace strobe::bench {

void MeanOfFigures::add(const Json& figures) {
  root_.is_object = true;
  if (figures.is_object()) add(root_, figures);
}

void MeanOfFigures::add(Node& node, const Json& figures) {
  for (const auto& [key, value] : figures.items()) {
    if (!value.is_object() && !value.is_number()) continue;
    Node*& child = node.by_key[key];
    if (child == nullptr) {
      node.children.push_back(std::make_unique<Node>());
      child = node.children.back().get();
      child->key = key;
      child->is_object = value.is_object();
    }
    if (child->is_object != value.is_object()) continue;
    if (child->is_object) {
      add(*child, value);
    } else {
      child->sum += value.get<double>();
      ++child->count;
    }
  }
}

Json MeanOfFigures::mean(Rules rules) const {
  return mean(root_, rules, 0);
}

Json MeanOfFigures::mean(const Node& node, Rules rules, int64_t divide_by) {
  Json out = Json::object();
  auto& members = out.get_ref<Json::object_t&>();
  for (const auto& child : node.children) {
    if (child->is_object) {
      members.emplace_back(child->key, mean(*child, rules, divide_by));
      continue;
    }
    const int64_t own = child->count;
    if (rules == Rules::kOriginal && divide_by == 0) divide_by = own;
    members.emplace_back(child->key,
                         round_ms(child->sum / static_cast<double>(rules == Rules::kOriginal ? divide_by : own)));
  }
  return out;
}

}  // namespace strobe::bench
