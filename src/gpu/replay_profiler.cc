#include "gpu/replay_profiler.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "gpu/cupti.h"
#include "gpu/log_file.h"
#include "gpu/probe.h"
#include "gpu/replay_context.h"
#include "record/high_file_numbers.h"

namespace strobe::gpu {
namespace {

// How a function's arguments begin.
enum class Arguments : uint8_t { kDirect, kConfigured };
struct LaunchFunction {
  int domain;
  std::string_view name;  // up to its version
  Arguments arguments;
};
constexpr LaunchFunction kLaunches[] = {
    {cupti::kDomainDriver, "cuLaunchKernelEx", Arguments::kConfigured},
    {cupti::kDomainDriver, "cuLaunchKernel", Arguments::kDirect},
    {cupti::kDomainDriver, "cuLaunchCooperativeKernel", Arguments::kDirect},
    {cupti::kDomainRuntime, "cudaLaunchKernelExC", Arguments::kConfigured},
    {cupti::kDomainRuntime, "cudaLaunchKernel", Arguments::kDirect},
    {cupti::kDomainRuntime, "__cudaLaunchKernel", Arguments::kDirect},
    {cupti::kDomainRuntime, "cudaLaunchCooperativeKernel", Arguments::kDirect},
};

// "cudaLaunchKernel_ptsz_v7000" -> "cudaLaunchKernel".
std::string_view without_version(std::string_view name) {
  const size_t from = name.starts_with("__") ? 2 : 0;
  return name.substr(0, std::min(name.find('_', from), name.size()));
}

// The launch that this thread is in: the outermost one, since the runtime's calls make those of the driver.
struct OpenLaunch {
  int depth = 0;
  bool captured = false;  // by a graph: it does not run now
  bool alone = false;     // no other launch of its context was under way when it began
  uint64_t number = 0;    // in its context
  int64_t began_ns = 0;
  void* context = nullptr;
  ReplayLaunch launch;
};
thread_local OpenLaunch open_launch;

// While this thread calls CUPTI for us, what it tells of is its own doing, and our lock is held.
thread_local bool in_our_call = false;
struct OurCall {
  OurCall() { in_our_call = true; }
  OurCall(const OurCall&) = delete;
  OurCall& operator=(const OurCall&) = delete;
  ~OurCall() { in_our_call = false; }
};

// Of one context.
struct Launches {
  uint64_t begun = 0, under_way = 0;
};

int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class Profiler {
 public:
  static Result<std::unique_ptr<Profiler>> start(const ReplayOptions& options);
  void take(int domain, uint32_t function, const void* data);
  void stop();
  void abandon() { log_->abandon(); }

 private:
  Profiler(ReplayOptions options, const CuptiReplay& cupti) : options_(std::move(options)), cupti_(cupti) {}
  Result<void> listen(cupti::Subscriber subscriber);
  void context_created(void* context);
  void context_destroyed(void* context);
  void launch(Arguments arguments, const cupti::CallbackData& data);
  ReplayContext::Put put_of(const ReplayContext& context);
  void end(ReplayContext& context);
  void fact(std::string key, std::string value) { log_->add(Fact{std::move(key), std::move(value)}); }
  void write_facts();

  const ReplayOptions options_;
  const CuptiReplay cupti_;
  std::optional<Subscription> subscription_;
  std::map<std::pair<int, uint32_t>, Arguments> launches_;  // by domain and function; not changed once it listens
  std::mutex mutex_;                                        // of what follows
  std::unique_ptr<LogWriter> log_;
  std::map<void*, std::unique_ptr<ReplayContext>> contexts_;
  std::map<void*, Launches> counts_;  // by context, also where it is not replayed
  bool stopped_ = false;
  std::string refused_;
  uint64_t written_ = 0, in_flight_ = 0, overlapping_ = 0;
  int64_t launch_ns_ = 0;
  std::set<uint32_t> told_;  // devices
  std::map<std::string, uint64_t> losses_;
  size_t passes_ = 0;
};

// The library that works figures out may make what it needs, or be opened, with the first context: at exit that is
// destroyed before what was registered earlier is called. Registered after it, the last counters are still evaluated.
void stop_before_figures_end() {
  static const bool once = std::atexit([] { stop_replay(); }) == 0;
  (void)once;
}

// Never destroyed: CUPTI may call to the very end.
std::atomic<Profiler*> active{nullptr};
Profiler* started = nullptr;
pid_t started_in = 0;
std::mutex& start_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

void on_callback(void*, int domain, uint32_t function, const void* data) {
  if (Profiler* profiler = active.load(std::memory_order_acquire)) profiler->take(domain, function, data);
}

Result<std::unique_ptr<Profiler>> Profiler::start(const ReplayOptions& options) {
  STROBE_ASSIGN(const CuptiReplay cupti, CuptiReplay::load());
  STROBE_ASSIGN(const Cupti base, Cupti::load());
  std::unique_ptr<Profiler> made(new Profiler(options, cupti));
  STROBE_ASSIGN(Subscription subscription, Subscription::take(base, on_callback));
  const record::HighFileNumbers high;
  STROBE_ASSIGN(made->log_, LogWriter::create(options.folder));
  made->fact("gpu.cupti_version", std::to_string(base.version));
  STROBE_TRY(made->listen(subscription.handle()));
  made->subscription_.emplace(std::move(subscription));
  return made;
}

Result<void> Profiler::listen(cupti::Subscriber subscriber) {
  constexpr uint32_t kMostFunctions = 2000;
  for (const int domain : {cupti::kDomainDriver, cupti::kDomainRuntime}) {
    for (uint32_t function = 1; function < kMostFunctions; ++function) {
      const char* name = nullptr;
      if (cupti_.callback_name(domain, function, &name) != cupti::kSuccess || name == nullptr) continue;
      for (const LaunchFunction& one : kLaunches)
        if (one.domain == domain && one.name == without_version(name) &&
            cupti_.enable_callback(1, subscriber, domain, function) == cupti::kSuccess)
          launches_[{domain, function}] = one.arguments;
    }
  }
  if (launches_.empty()) return unsupported("this CUPTI tells of no launches");
  for (const uint32_t function : {cupti::kContextCreated, cupti::kContextDestroyed, cupti::kGraphNodeCreated})
    if (cupti_.enable_callback(1, subscriber, cupti::kDomainResource, function) != cupti::kSuccess)
      return unsupported("this CUPTI does not tell of contexts");
  return {};
}

void Profiler::take(int domain, uint32_t function, const void* data) {
  if (data == nullptr || in_our_call) return;
  const OurCall now;
  if (domain == cupti::kDomainResource) {
    void* const context = static_cast<const cupti::ResourceData*>(data)->context;
    if (function == cupti::kContextCreated) context_created(context);
    if (function == cupti::kContextDestroyed) context_destroyed(context);
    // A launch that makes a node is being captured.
    if (function == cupti::kGraphNodeCreated && open_launch.depth > 0) open_launch.captured = true;
    return;
  }
  if (const auto found = launches_.find({domain, function}); found != launches_.end())
    launch(found->second, *static_cast<const cupti::CallbackData*>(data));
}

void Profiler::context_created(void* context) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  uint32_t device = 0;
  cupti_.device_of(context, &device);
  auto opened = ReplayContext::open(cupti_, context, device, options_.figures);
  if (!opened) {
    refused_ = opened.error().to_string();
    write_facts();
    log_->flush();
    return;
  }
  stop_before_figures_end();
  const ReplayContext& made = **opened;
  passes_ = std::max(passes_, made.choice().passes());
  if (told_.insert(device).second) {
    const std::string prefix = "gpu.replay." + std::to_string(device) + ".";
    fact(prefix + "chip", made.chip());
    fact(prefix + "passes", std::to_string(made.choice().passes()));
    for (const auto& one : made.choice().metrics()) fact(prefix + "metric." + one.figure, one.metric);
    for (const auto& [figure, why] : made.choice().left_out()) fact(prefix + "not_measured." + figure, why);
  }
  contexts_[context] = std::move(*opened);
  write_facts();
  log_->flush();
}

void Profiler::context_destroyed(void* context) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) return;
  end(*found->second);
  contexts_.erase(found);
}

void Profiler::launch(Arguments arguments, const cupti::CallbackData& data) {
  OpenLaunch& open = open_launch;
  if (data.site == cupti::kCallEnter) {
    if (open.depth++ > 0) return;
    open.captured = false;
    open.context = data.context;
    open.launch = {};
    open.launch.name = data.symbol == nullptr ? "" : data.symbol;
    open.launch.thread = static_cast<uint32_t>(::gettid());
    const cupti::LaunchSizes* sizes = nullptr;
    if (data.params != nullptr)
      sizes = arguments == Arguments::kDirect ? &static_cast<const cupti::DirectLaunch*>(data.params)->sizes
                                              : static_cast<const cupti::ConfiguredLaunch*>(data.params)->sizes;
    for (size_t axis = 0; axis < 3 && sizes != nullptr; ++axis)
      open.launch.grid[axis] = sizes->grid[axis], open.launch.block[axis] = sizes->block[axis];
    const std::lock_guard lock(mutex_);
    const auto context = contexts_.find(open.context);
    if (context != contexts_.end() && in_flight_ == 0) {
      context->second->make_room(put_of(*context->second));
      log_->flush();
    }
    ++in_flight_;
    Launches& launches = counts_[open.context];
    open.alone = launches.under_way++ == 0;
    open.number = ++launches.begun;
    open.began_ns = steady_ns();
    return;
  }
  if (open.depth == 0 || --open.depth > 0) return;
  const std::lock_guard lock(mutex_);
  launch_ns_ += steady_ns() - open.began_ns;
  Launches& launches = counts_[open.context];
  --in_flight_, --launches.under_way;
  const bool alone = open.alone && launches.begun == open.number;
  const bool failed = data.return_value != nullptr && *static_cast<const int*>(data.return_value) != 0;
  auto context = contexts_.find(open.context);
  // A process's first launch may make its context.
  if (context == contexts_.end()) context = contexts_.find(data.context);
  if (context == contexts_.end() || failed || open.captured) return;
  if (!alone) {
    // Nobody tells which of them came first on the device: whose range is whose is not known.
    ++overlapping_;
    open.launch = {};
  }
  context->second->launched(std::move(open.launch));
}

ReplayContext::Put Profiler::put_of(const ReplayContext& context) {
  return [this, &context](const ReplayLaunch& launch, const std::vector<double>& values) {
    ReplayedKernel kernel;
    kernel.order = ++written_;
    kernel.device = context.device();
    kernel.thread = launch.thread;
    kernel.name = log_->intern(launch.name);
    kernel.grid = launch.grid, kernel.block = launch.block;
    log_->add(kernel);
    for (size_t i = 0; i < values.size(); ++i)
      log_->add(ReplayedValue{kernel.order, log_->intern(context.choice().metrics()[i].figure), values[i]});
  };
}

void Profiler::end(ReplayContext& context) {
  context.stop(put_of(context));
  losses_["kernel without room for its counters"] += context.dropped();
  losses_["kernel whose counters could not be read"] += context.unreadable();
  losses_["kernel whose counters could not be matched with its launch"] += context.unmatched();
  if (!context.broken().empty()) fact("gpu.replay.broken", context.broken());
}

void Profiler::write_facts() {
  if (contexts_.empty() && !refused_.empty() && written_ == 0) return fact("gpu.replay", "off: " + refused_);
  if (!refused_.empty()) fact("gpu.replay.refused", refused_);
  if (passes_ == 0) return fact("gpu.replay", "on: no context yet");
  fact("gpu.replay", "on: each kernel alone, " + std::to_string(passes_) + (passes_ == 1 ? " pass" : " passes") +
                         ", memory saved and put back between them");
}

void Profiler::stop() {
  // First, and without our lock: CUPTI holds its own while it calls back.
  subscription_.reset();
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (auto& [handle, context] : contexts_) end(*context);
  write_facts();
  contexts_.clear();
  fact("gpu.replay.kernels", std::to_string(written_));
  fact("gpu.replay.launch_ns", std::to_string(launch_ns_));
  fact("gpu.replay.overlapping_launches", std::to_string(overlapping_));
  for (const auto& [kind, count] : losses_)
    if (count > 0) log_->add(Loss{kind, count});
  log_->add(End{});
  log_->flush();
}

}  // namespace

Result<void> start_replay(const ReplayOptions& options) {
  const std::lock_guard lock(start_mutex());
  if (started != nullptr && started_in == ::getpid()) return usage_error("kernels are already being replayed");
  STROBE_ASSIGN(auto made, Profiler::start(options));
  started = made.release();
  started_in = ::getpid();
  active.store(started, std::memory_order_release);
  static const bool once = [] {
    ::pthread_atfork(nullptr, nullptr, [] {
      active.store(nullptr);
      if (started != nullptr) started->abandon();
    });
    std::atexit([] { stop_replay(); });
    return true;
  }();
  (void)once;
  return {};
}

void stop_replay() {
  const std::lock_guard lock(start_mutex());
  Profiler* profiler = std::exchange(started, nullptr);
  active.store(nullptr);
  // CUPTI may be inside a call of ours with it: it stays.
  static auto* const retired = new std::vector<Profiler*>;
  if (profiler == nullptr) return;
  retired->push_back(profiler);
  if (started_in == ::getpid()) profiler->stop();
}

bool start_replay_or_say_why(const ReplayOptions& options) {
  const auto begun = start_replay(options);
  if (begun) return true;
  if (auto log = LogWriter::create(options.folder)) {
    (*log)->add(Fact{"gpu.replay", "off: " + begun.error().to_string()});
    (*log)->add(End{});
  }
  return false;
}

}  // namespace strobe::gpu
