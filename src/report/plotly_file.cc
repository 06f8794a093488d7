#include "report/plotly_file.h"

#include <cstdlib>

namespace strobe::report {

namespace fs = std::filesystem;

std::vector<fs::path> plotly_places(const std::string& given) {
  if (!given.empty()) return {given};
  std::vector<fs::path> places;
  if (const char* from_environment = std::getenv("STROBE_PLOTLY_JS"); from_environment && *from_environment)
    places.emplace_back(from_environment);
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (!code) places.push_back(program.parent_path().parent_path() / "share/strobe/plotly.min.js");
  return places;
}

Result<fs::path> find_plotly(const std::string& given) {
  std::string looked;
  for (const fs::path& place : plotly_places(given)) {
    std::error_code ignored;
    if (fs::is_regular_file(place, ignored)) return place;
    looked.append(looked.empty() ? "" : ", ").append(place.string());
  }
  return not_found("plotly.min.js, which draws the report's plots, was not found (looked at " + looked +
                   "); it is inside the Python wheel plotly: run `pip install plotly`, then set STROBE_PLOTLY_JS to "
                   "its plotly/package_data/plotly.min.js, or build with `make`, which does this");
}

}  // namespace strobe::report
