#include "models/coco.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/file.h"
#include "models/zoo.h"

namespace strobe::models {

namespace {

using nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

std::optional<int64_t> as_integer(const json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  return std::nullopt;
}

// One element of one of the lists, and its place for errors.
struct Element {
  const json& object;
  std::string_view list;
  size_t index;

  Error wrong(std::string_view key, std::string_view expected) const {
    const std::string place = list.empty() ? fmt::format("[{}]", index) : fmt::format("{}[{}]", list, index);
    return bad_data(fmt::format("{}: {}: expected {}", place, key, expected));
  }
  const json* find(const char* key) const {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  Result<int64_t> integer(const char* key, std::optional<int64_t> absent = std::nullopt) const {
    const json* value = find(key);
    if (value == nullptr && absent) return *absent;
    const auto number = value == nullptr ? std::nullopt : as_integer(*value);
    if (!number) return wrong(key, "an integer");
    return *number;
  }
  Result<std::optional<double>> number(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return std::optional<double>();
    if (!value->is_number() || !std::isfinite(value->get<double>())) return wrong(key, "a number");
    return std::optional(value->get<double>());
  }
  Result<std::string> text(const char* key) const {
    const json* value = find(key);
    if (value == nullptr || !value->is_string()) return wrong(key, "a text");
    return value->get<std::string>();
  }
};

Result<CocoImage> parse_image(const Element& element) {
  CocoImage image;
  STROBE_ASSIGN(image.id, element.integer("id"));
  if (element.find("file_name") != nullptr) {
    STROBE_ASSIGN(image.file_name, element.text("file_name"));
  }
  STROBE_ASSIGN(image.width, element.integer("width", 0));
  STROBE_ASSIGN(image.height, element.integer("height", 0));
  if (element.find("frame_index") != nullptr) {
    STROBE_ASSIGN(image.frame, element.integer("frame_index"));
  }
  STROBE_ASSIGN(image.time_s, element.number("time_s"));
  return image;
}

Result<CocoCategory> parse_category(const Element& element) {
  CocoCategory category;
  STROBE_ASSIGN(category.id, element.integer("id"));
  STROBE_ASSIGN(category.name, element.text("name"));
  return category;
}

Result<CocoAnnotation> parse_annotation(const Element& element) {
  CocoAnnotation annotation;
  STROBE_ASSIGN(annotation.id, element.integer("id", static_cast<int64_t>(element.index) + 1));
  STROBE_ASSIGN(annotation.image_id, element.integer("image_id"));
  STROBE_ASSIGN(annotation.category_id, element.integer("category_id"));
  const json* box = element.find("bbox");
  const auto is_number = [](const json& side) { return side.is_number() && std::isfinite(side.get<double>()); };
  if (box == nullptr || !box->is_array() || box->size() != 4 || !std::all_of(box->begin(), box->end(), is_number))
    return element.wrong("bbox", "[x, y, width, height]");
  annotation.x = (*box)[0].get<double>();
  annotation.y = (*box)[1].get<double>();
  annotation.width = (*box)[2].get<double>();
  annotation.height = (*box)[3].get<double>();
  STROBE_ASSIGN(const std::optional<double> area, element.number("area"));
  annotation.area = area.value_or(annotation.width * annotation.height);
  if (const json* crowd = element.find("iscrowd")) {
    if (!crowd->is_boolean() && !as_integer(*crowd)) return element.wrong("iscrowd", "0 or 1");
    annotation.is_crowd = crowd->is_boolean() ? crowd->get<bool>() : *as_integer(*crowd) != 0;
  }
  STROBE_ASSIGN(annotation.score, element.number("score"));
  return annotation;
}

template <typename T>
Result<std::vector<T>> parse_list(const json& list, std::string_view name, Result<T> (*parse)(const Element&)) {
  std::vector<T> all;
  all.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Element element{list[i], name, i};
    if (!list[i].is_object()) return element.wrong("this element", "an object {...}");
    STROBE_ASSIGN(T parsed, parse(element));
    all.push_back(std::move(parsed));
  }
  return all;
}

template <typename T>
Result<std::unordered_set<int64_t>> unique_ids(const std::vector<T>& all, std::string_view list) {
  std::unordered_set<int64_t> ids;
  for (size_t i = 0; i < all.size(); ++i)
    if (!ids.insert(all[i].id).second)
      return bad_data(fmt::format("{}[{}]: id {} was there before", list, i, all[i].id));
  return ids;
}

Result<const json*> list_of(const json& root, const char* key) {
  const auto found = root.find(key);
  if (found == root.end() || !found->is_array())
    return bad_data(fmt::format("not COCO's format: expected a list \"{}\"", key));
  return &*found;
}

// COCO numbered 91 things and left some out; the numbers of the others stayed.
constexpr int64_t kDropped[] = {12, 26, 29, 30, 45, 66, 68, 69, 71, 83};

}  // namespace

Result<CocoDataset> parse_coco(std::string_view text) {
  const json root = json::parse(text, nullptr, false);
  if (root.is_discarded()) return bad_data("not JSON");
  CocoDataset dataset;
  if (root.is_array()) {
    dataset.is_result_list = true;
    STROBE_ASSIGN(dataset.annotations, parse_list(root, "", parse_annotation));
    return dataset;
  }
  if (!root.is_object()) return bad_data("not COCO's format: expected an object or a list");
  if (const auto info = root.find("info"); info != root.end() && info->is_object()) {
    const auto text_of = [&](const char* key) {
      const auto found = info->find(key);
      return found != info->end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    dataset.description = text_of("description");
    dataset.input = text_of("input");
  }
  STROBE_ASSIGN(const json* images, list_of(root, "images"));
  STROBE_ASSIGN(dataset.images, parse_list(*images, "images", parse_image));
  STROBE_ASSIGN(const json* categories, list_of(root, "categories"));
  STROBE_ASSIGN(dataset.categories, parse_list(*categories, "categories", parse_category));
  STROBE_ASSIGN(const json* annotations, list_of(root, "annotations"));
  STROBE_ASSIGN(dataset.annotations, parse_list(*annotations, "annotations", parse_annotation));

  STROBE_ASSIGN(const auto image_ids, unique_ids(dataset.images, "images"));
  STROBE_ASSIGN(const auto category_ids, unique_ids(dataset.categories, "categories"));
  for (size_t i = 0; i < dataset.annotations.size(); ++i) {
    const CocoAnnotation& annotation = dataset.annotations[i];
    const auto missing = [i](const char* what, int64_t id) {
      return bad_data(fmt::format("annotations[{}]: there is no {} with id {}", i, what, id));
    };
    if (!image_ids.contains(annotation.image_id)) return missing("image", annotation.image_id);
    if (!category_ids.contains(annotation.category_id)) return missing("category", annotation.category_id);
  }
  return dataset;
}

Result<CocoDataset> read_coco(const std::filesystem::path& path) {
  STROBE_ASSIGN(const std::string text, read_file(path));
  auto dataset = parse_coco(text);
  if (!dataset) return std::move(dataset).error().at(path.string());
  return dataset;
}

std::string format_coco(const CocoDataset& dataset) {
  const auto line = [](const OrderedJson& element) {
    return element.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  };
  std::string text =
      "{\"info\": " + line({{"description", dataset.description}, {"version", "1.0"}, {"input", dataset.input}});
  const auto list = [&](std::string_view name, const auto& elements, const auto& object) {
    text += fmt::format(",\n\"{}\": [", name);
    for (size_t i = 0; i < elements.size(); ++i) text += (i == 0 ? "\n" : ",\n") + line(object(elements[i]));
    text += "]";
  };
  list("images", dataset.images, [](const CocoImage& image) {
    OrderedJson object = {
        {"id", image.id}, {"file_name", image.file_name}, {"width", image.width}, {"height", image.height}};
    if (image.frame) object["frame_index"] = *image.frame;
    if (image.time_s) object["time_s"] = *image.time_s;
    return object;
  });
  list("categories", dataset.categories, [](const CocoCategory& category) {
    return OrderedJson{{"id", category.id}, {"name", category.name}};
  });
  list("annotations", dataset.annotations, [](const CocoAnnotation& annotation) {
    OrderedJson object = {{"id", annotation.id},
                          {"image_id", annotation.image_id},
                          {"category_id", annotation.category_id},
                          {"bbox", {annotation.x, annotation.y, annotation.width, annotation.height}},
                          {"area", annotation.area},
                          {"iscrowd", annotation.is_crowd ? 1 : 0}};
    if (annotation.score) object["score"] = *annotation.score;
    return object;
  });
  return text + "\n}\n";
}

std::vector<CocoCategory> coco_categories(const std::vector<std::string>& labels) {
  const bool is_coco = labels == coco_names();
  std::vector<CocoCategory> categories;
  int64_t id = 0;
  for (const std::string& label : labels) {
    do {
      ++id;
    } while (is_coco && std::find(std::begin(kDropped), std::end(kDropped), id) != std::end(kDropped));
    categories.push_back({id, label});
  }
  return categories;
}

}  // namespace strobe::models
