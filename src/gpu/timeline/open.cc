#include "gpu/timeline/open.h"

#include "gpu/timeline/gpu_timeline.h"
#include "trace/open.h"
#include "trace/spool_import.h"

namespace strobe::gpu {

Result<trace::Timeline> import_folder(const std::filesystem::path& folder) {
  STROBE_ASSIGN(trace::Timeline timeline, trace::import_spool(folder));
  STROBE_TRY(add_gpu_logs(timeline, folder));
  return timeline;
}

Result<trace::Timeline> open_trace(const std::filesystem::path& path, trace::StoreParts parts) {
  return trace::open_trace(path, parts, import_folder);
}

}  // namespace strobe::gpu
