// One tenant at work: a thread that brings its frames at their time, and one that takes them through the model.
#pragma once

#include <filesystem>
#include <string>

#include "strobe/base/result.h"
#include "tenants/board.h"
#include "tenants/device_arbiter.h"
#include "tenants/experiment.h"

namespace strobe::tenants {

struct TenantPlace {
  size_t index = 0;  // of the tenant in the cell
  const CellSpec* cell = nullptr;
  DeviceArbiter* arbiter = nullptr;
  Board::Content* board = nullptr;
  std::filesystem::path predictions;  // one JSON object a line and frame; docs/experiments.md
  const TenantSpec& spec() const { return cell->tenants[index]; }
  TenantStatus& status() const { return board->tenants[index]; }
};

// The run queue that a tenant's threads stand in: "cpu:0-1".
std::string cpu_resource(const TenantSpec& tenant);

// From loading to the end of the stream, on the calling thread and one more; records by docs/tenant-trace.md. How it
// went stands in the status, kDone or kFailed. Never throws.
void run_tenant(const TenantPlace& place);

}  // namespace strobe::tenants
