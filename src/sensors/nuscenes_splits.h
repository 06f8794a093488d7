// Which scenes belong to which part of nuScenes.
#pragma once

#include <string>
#include <vector>

#include "sensors/nuscenes.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

struct NuScenesSplit {
  std::string name;
  std::vector<bool> scenes;  // by row of NuScenes::scenes
};

// The splits that a database can be asked for: those nuScenes publishes for its version (val, train; mini_val,
// mini_train; test), those of its own VERSION/splits.json ({"name": ["scene-0001", ...]}), and all. None is empty.
// Errors: kBadData (splits.json).
Result<std::vector<NuScenesSplit>> nuscenes_splits(const NuScenes& database);

}  // namespace strobe::sensors
