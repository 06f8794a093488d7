#include "sensors/nuscenes_splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/file.h"

namespace strobe::sensors {

namespace {

// First and last number of runs of scenes. Published with the data set (https://www.nuscenes.org, "splits"); train is
// what is left of trainval.
struct Run {
  int first, last;
};
constexpr Run kVal[] = {{3, 3},     {12, 18},   {35, 36},   {38, 39},   {92, 110},   {221, 221}, {268, 278},
                        {329, 332}, {344, 346}, {519, 524}, {552, 565}, {625, 627},  {629, 630}, {632, 638},
                        {770, 771}, {775, 775}, {777, 778}, {780, 784}, {794, 800},  {802, 802}, {904, 917},
                        {919, 931}, {962, 963}, {966, 969}, {971, 972}, {1059, 1073}};
constexpr Run kMiniVal[] = {{103, 103}, {916, 916}};
constexpr Run kMiniTrain[] = {{61, 61},   {553, 553},   {655, 655},   {757, 757},
                              {796, 796}, {1077, 1077}, {1094, 1094}, {1100, 1100}};

bool is_in(std::span<const Run> runs, std::string_view scene) {
  return std::ranges::any_of(runs, [scene](const Run& run) {
    for (int i = run.first; i <= run.last; ++i)
      if (scene == fmt::format("scene-{:04}", i)) return true;
    return false;
  });
}

}  // namespace

Result<std::vector<NuScenesSplit>> nuscenes_splits(const NuScenes& database) {
  std::vector<NuScenesSplit> splits;
  const auto add = [&](std::string name, auto&& belongs) {
    NuScenesSplit split{std::move(name), std::vector<bool>(database.scenes.size())};
    for (size_t i = 0; i < database.scenes.size(); ++i) split.scenes[i] = belongs(database.scenes[i].name);
    if (std::ranges::find(split.scenes, true) != split.scenes.end()) splits.push_back(std::move(split));
  };
  const std::string& version = database.version();
  if (version.ends_with("trainval")) {
    add("val", [](std::string_view scene) { return is_in(kVal, scene); });
    add("train", [](std::string_view scene) { return !is_in(kVal, scene); });
  } else if (version.ends_with("mini")) {
    add("mini_val", [](std::string_view scene) { return is_in(kMiniVal, scene); });
    add("mini_train", [](std::string_view scene) { return is_in(kMiniTrain, scene); });
  } else if (version.ends_with("test")) {
    add("test", [](std::string_view) { return true; });
  }
  const std::filesystem::path own = database.root() / version / "splits.json";
  if (std::error_code absent; std::filesystem::exists(own, absent)) {
    STROBE_ASSIGN(const std::string text, read_file(own));
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return bad_data(own.string() + ": expected an object {\"split\": [\"scene name\", ...]}");
    for (const auto& [name, scenes] : json.items()) {
      if (!scenes.is_array())
        return bad_data(fmt::format("{}: \"{}\": expected a list of scene names", own.string(), name));
      add(name, [&list = scenes](std::string_view scene) {
        return std::any_of(list.begin(), list.end(), [&](const nlohmann::json& one) {
          return one.is_string() && one.get_ref<const std::string&>() == scene;
        });
      });
    }
  }
  add("all", [](std::string_view) { return true; });
  return splits;
}

}  // namespace strobe::sensors
