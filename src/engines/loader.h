// Opening an engine by name: finds its plugin, checks that it speaks this build's interface, and makes the engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines {

// spec: "NAME" or "NAME:VARIANT", e.g. "torch", "torch:script", "openvino". With a variant, load() takes that one when
// its options name none. May be called from any thread; the engine's libraries stay in the process until it ends.
// Errors: kUsage (unknown name or variant: offers the nearest), kUnsupported (not built: how to get it), kEngine (the
// plugin does not load, or was built against another interface).
Result<std::shared_ptr<Engine>> open_engine(const std::string& spec);

// The same errors as far as they can be told without opening anything: whether the engine is known and built.
Result<void> check_engine(const std::string& spec);

struct EngineStatus {
  std::string name;
  bool built = false;
  std::string path;        // of the plugin; empty when not built
  std::string how_to_get;  // one line; empty for an engine that is built
};
// The engines that Strobe comes with, in its order of preference, then other plugins that were found. Opens none.
std::vector<EngineStatus> list_engines();

}  // namespace strobe::engines
