// Shared objects that are opened at first use: engines and media link large libraries that would cost every start of
// the program tens of milliseconds.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe {

// Where plugins are looked for, in this order: the folders of STROBE_PLUGIN_DIR (separated by ':'), then
// ../lib/strobe beside the running program's folder.
std::vector<std::filesystem::path> plugin_folders();

// Paths of the plugins whose file name is prefix + NAME + ".so", e.g. "libstrobe_engine_"; sorted by file name, and
// of two with the same file name only the one that load_plugin would take.
std::vector<std::filesystem::path> find_plugins(const std::string& prefix);

// Opens the plugin, given by file name ("libstrobe_media.so") or by path, and returns the address of symbol. It stays
// open until the program ends, and opening it again is cheap. May be called from any thread.
// Errors: kNotFound (no such file: says where it was looked for), kEngine (the loader's own words).
Result<void*> load_plugin(const std::filesystem::path& plugin, const std::string& symbol);

}  // namespace strobe
