// The border between dds.cc, which everyone links, and the plugin that holds the DDS library.
#pragma once

#include <memory>

#include "sensors/dds.h"

namespace strobe::sensors {

// Raised with every change of dds.h; a plugin of another value is refused.
inline constexpr int kDdsAbi = 1;

// Names and numbers are resolved by the facade, so that the plugin is about the library alone.
struct DdsSettings {
  int domain = 0;
  DdsTransport transport = DdsTransport::kAll;
  bool this_host_only = false;
};

}  // namespace strobe::sensors

// What the plugin exports.
extern "C" {
using strobe_dds_abi_fn = int (*)();
using strobe_dds_join_fn =
    strobe::Result<std::shared_ptr<strobe::sensors::DdsParticipant>>* (*)(const strobe::sensors::DdsSettings*);
}
