#include "media/filter.h"

#include "base/plugin.h"
#include "media/backend.h"

namespace strobe::media {

std::string_view filter_of(PrepLevel level) {
  switch (level) {
    case PrepLevel::kSimple:
      return "";
    case PrepLevel::kMedium:
      return "gblur=sigma=0.8";
    case PrepLevel::kComplex:
      return "bilateral=sigmaS=2:sigmaR=0.08,unsharp=5:5:0.8:5:5:0.0,hue=s=1.15";
  }
  return "";
}

Result<double> smoothing_of(PrepLevel level) {
  switch (level) {
    case PrepLevel::kSimple:
      return 0.0;
    case PrepLevel::kMedium:
      return 0.8;
    case PrepLevel::kComplex:
      break;
  }
  return unsupported("prep-level complex has no counterpart on a GPU: its bilateral filter goes from pixel to pixel");
}

Result<std::unique_ptr<PictureFilter>> open_filter(const std::string& description) {
  STROBE_TRY(backend());  // it keeps FFmpeg's log from the terminal
  auto open = load_plugin("libstrobe_filter.so", "strobe_filter_open");
  if (!open) {
    return unsupported("FFmpeg's filters are not built in: install libavfilter-dev and build again (" +
                       open.error().to_string() + ")");
  }
  Result<std::unique_ptr<PictureFilter>> opened = std::unique_ptr<PictureFilter>();
  reinterpret_cast<strobe_filter_open_fn> (*open)(description, &opened);
  return opened;
}

}  // namespace strobe::media
