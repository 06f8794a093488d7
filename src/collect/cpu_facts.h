// What /proc/cpuinfo and sysfs say of the processor.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace strobe::collect {

// The "cpu.*" facts and, where the CPU shows it, "host.virtualised"; see machine.h for the keys.
std::map<std::string, std::string> cpu_facts(const std::filesystem::path& root);

}  // namespace strobe::collect
