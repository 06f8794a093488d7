// SQLite exports of Nsight Systems (`nsys export --type sqlite`), schema 3.1 and later.
#pragma once

#include <filesystem>

#include "importers/importer.h"

namespace strobe::importers {

// Ranges (NVTX, CUDA API, OS runtime, cuDNN, cuBLAS, overhead of the tool), marks, and what devices did. Names of API
// calls lose their version ("cudaLaunchKernel_v7000"); operators of PyTorch have their numbers as arguments instead of
// in their names. Facts: "nsys.*", and of GPUs "gpu.N.*" and "gpu.of.PID.DEVICE" = N; of the machine's environment,
// folders and other processes nothing. Event tables that have no place in a timeline are named in fact
// "nsys.not_imported". Damaged or cut files give what can be read. Errors: kNotFound, kIo, kBadData (not SQLite, not
// such an export, nothing readable in it).
Result<trace::Timeline> import_nsys(const std::filesystem::path& path, const ImportOptions& options);

}  // namespace strobe::importers
