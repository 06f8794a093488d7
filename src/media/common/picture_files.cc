#include "media/common/picture_files.h"

#include <algorithm>
#include <filesystem>

#include "media/common/input_kind.h"
#include "media/common/natural_order.h"

namespace strobe::media {

namespace fs = std::filesystem;

Result<std::vector<std::string>> list_pictures(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (has_picture_extension(it->path().string()) && !it->path().filename().string().starts_with(".")) {
      paths.push_back(it->path().string());
    }
  }
  if (failed) return io_error(folder + ": cannot be read: " + failed.message());
  if (paths.empty()) return not_found(folder + ": no pictures in this folder (.jpg, .png, .bmp, ...)");
  std::sort(paths.begin(), paths.end(), natural_less);
  return paths;
}

}  // namespace strobe::media
