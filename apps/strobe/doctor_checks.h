// What `strobe doctor` looks at: each capability is tried, not guessed.
#pragma once

#include <string>
#include <vector>

namespace strobe::app {

enum class Health {
  kWorks,
  kAdvice,   // works, but figures would be better otherwise
  kMissing,  // not there; nothing that was asked for is broken
  kBroken,   // there, and does not work
};
const char* to_string(Health health);  // "works", "advice", "missing", "broken"

struct Check {
  std::string name;
  Health health = Health::kWorks;
  bool needed = false;  // nothing useful runs without it
  std::string detail;   // what was found
  std::string remedy;   // how to get or mend it; empty where there is nothing to do
};

// Each engine runs a small network whose result is known; at least one must.
std::vector<Check> check_engines();
// The media plugin decodes, draws and encodes; fonts; cameras.
std::vector<Check> check_media();
// The recorder writes and is read back; where its files lie.
std::vector<Check> check_recorder();
// Whether work on a GPU can be collected, and why not.
std::vector<Check> check_gpu();
// Cores, governor, clock, virtual machine, what else runs.
std::vector<Check> check_machine();
// Topics of ROS 2, the server of `strobe view`: what may have been left out of the build.
std::vector<Check> check_parts();
// plotly.min.js, and a browser for looking at reports.
std::vector<Check> check_report();

}  // namespace strobe::app
