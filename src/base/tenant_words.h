// The words in which a trace of several tenants is written: by the rooms tenants and simulate, for the room analyze.
// docs/tenant-trace.md says what each one means.
#pragma once

namespace strobe::tenant_words {

// Domains of ranges and marks.
inline constexpr const char* kWindowDomain = "strobe";
inline constexpr const char* kTenantDomain = "strobe.tenant";  // frames, stages, drops; the category is the tenant
inline constexpr const char* kOperationDomain = "strobe.operation";  // the category is the class of the operation
inline constexpr const char* kHolderDomain = "strobe.holder";        // somebody who is no tenant: the category says who

// Names of ranges and marks.
inline constexpr const char* kWindow = "tenants";
inline constexpr const char* kFrame = "frame";
inline constexpr const char* kQueueStage = "queue";
inline constexpr const char* kCommStage = "comm";
inline constexpr const char* kPush = "push";
inline constexpr const char* kDrop = "drop";
inline constexpr const char* kNotSent = "not_sent";

// Keys of arguments.
inline constexpr const char* kCommNs = "comm_ns";
inline constexpr const char* kBlockedNs = "blocked_ns";
inline constexpr const char* kDeadlineNs = "deadline_ns";
inline constexpr const char* kOutcome = "outcome";
inline constexpr const char* kToken = "token";
inline constexpr const char* kStampNs = "stamp_ns";
inline constexpr const char* kResource = "resource";
inline constexpr const char* kWaitedNs = "waited_ns";
inline constexpr const char* kCpuNs = "cpu_ns";
inline constexpr const char* kRunnableNs = "runnable_ns";
inline constexpr const char* kReason = "reason";
inline constexpr const char* kSlice = "slice";
inline constexpr const char* kLateNs = "late_ns";

// Categories of the domain of other holders.
inline constexpr const char* kSystem = "system";
inline constexpr const char* kRecorder = "recorder";

// What blame calls those who are no tenant, or the tenant itself: no names of tenants.
inline constexpr const char* kTakenNames[] = {"self", kSystem, kRecorder, "idle", "unknown"};

// Outcomes of a frame.
inline constexpr const char* kFinished = "finished";
inline constexpr const char* kDropped = "dropped";
inline constexpr const char* kOverwritten = "overwritten";
inline constexpr const char* kFailed = "failed";

// Facts of the run, and the beginnings of those of a tenant, a resource and a pair of classes.
inline constexpr const char* kTenants = "tenants";
inline constexpr const char* kPolicy = "tenants.policy";
inline constexpr const char* kIsolation = "tenants.isolation";
inline constexpr const char* kMps = "tenants.mps";  // "on", "off"; absent: not set by the experiment
inline constexpr const char* kClockSigmaNs = "tenants.clock_sigma_ns";
inline constexpr const char* kTenantFact = "tenant.";
inline constexpr const char* kResourceFact = "tenants.resource.";
inline constexpr const char* kInterferenceFact = "tenants.interference.";
inline constexpr const char* kCoreRuns = "tenants.core_runs";  // "on", or why nobody knows who ran on the cores
inline constexpr const char* kCoreRunsFromNs = "tenants.core_runs.from_ns";  // of the trace: what is known of them
inline constexpr const char* kCoreRunsToNs = "tenants.core_runs.to_ns";
inline constexpr const char* kSaturation = "tenants.saturation";

}  // namespace strobe::tenant_words
