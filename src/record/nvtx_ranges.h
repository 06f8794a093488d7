// Ranges for whatever tool listens to NVTX; without one a call costs a load and a branch.
#pragma once

#include <cstdint>
#include <string_view>

namespace strobe::record {

// An NVTX domain, made once per name and never freed; null: the default domain.
using NvtxDomain = void*;
NvtxDomain nvtx_domain(std::string_view name);
void nvtx_push(NvtxDomain domain, const char* message, uint32_t argb, std::string_view category);
void nvtx_pop(NvtxDomain domain);

}  // namespace strobe::record
