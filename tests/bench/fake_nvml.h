// The stand-in for NVML of tests/gpu, for tests of this room.
#pragma once

#include <filesystem>

#include "support/places.h"

namespace strobe::bench {

// Empty where the room gpu was not built.
inline std::filesystem::path fake_nvml() {
  auto library = std::filesystem::path(test::binaries_folder()).parent_path() / "lib" / "libstrobe_fake_nvml.so";
  return std::filesystem::exists(library) ? library : std::filesystem::path();
}

}  // namespace strobe::bench
