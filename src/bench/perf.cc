#include "strobe/bench/perf.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "bench/color.h"
#include "bench/environment.h"
#include "bench/figures.h"
#include "bench/latency.h"
#include "bench/warmup.h"
#include "record/nvtx_ranges.h"
#include "strobe/record/annotate.h"
#include "strobe/record/annotate_c.h"

namespace strobe::bench {
namespace {

constexpr double kNsPerMs = 1e6;
constexpr uint32_t kRoot = 0;

int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// One range of one thread: a place in its tree.
struct Node {
  uint32_t parent = kRoot;
  const std::string* name = nullptr;
  bool closed = false;
  bool inside = false;
  int64_t start_ns = 0, end_ns = 0;
  std::optional<int64_t> batch_index = {}, items = {};
};

struct Hash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

struct Open {
  uint32_t node;  // kRoot while nothing is collected
  record::NvtxDomain domain;
  std::optional<int64_t> batch_index;
};

struct ThreadRanges {
  std::mutex mutex;  // only finalize() comes from another thread
  std::vector<Node> nodes{1};
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> names;
  std::unordered_map<uint64_t, uint32_t> children;  // by parent and name
  std::vector<Open> open;
  std::vector<std::string> deleted;  // paths
  std::string label;                 // kept for its memory

  std::string path_of(uint32_t node, const std::string& obj_name) const {
    std::string path;
    for (; node != kRoot; node = nodes[node].parent) path = "/" + *nodes[node].name + path;
    return obj_name + path;
  }
};

// Names of figures, which a range below would overwrite in the file.
bool is_figure(std::string_view name) {
  static constexpr std::string_view kFigures[] = {
      "cpu_time",
      "gpu_time",
      "total_items",
      "cpu_time_per_item",
      "gpu_time_per_item",
      "cpu_time_minus_warmup",
      "gpu_time_minus_warmup",
      "cpu_time_minus_warmup_per_item",
      "gpu_time_minus_warmup_per_item",
      "total_items_minus_warmup",
  };
  return std::find(std::begin(kFigures), std::end(kFigures), name) != std::end(kFigures);
}

Result<void> check_name(std::string_view name) {
  const std::string quoted = "range '" + std::string(name) + "': ";
  if (name.empty()) return usage_error("a range needs a message");
  for (size_t at = 0; at <= name.size();) {
    const size_t end = std::min(name.find('/', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    if (part.empty()) return usage_error(quoted + "has an empty part between slashes");
    if (is_figure(part)) return usage_error(quoted + "this is the name of a figure, expected another one");
    at = end + 1;
  }
  return {};
}

std::atomic<uint64_t> last_serial{0}, last_thread{0};

// The thread's ranges of the Perf that it used last.
struct Cached {
  uint64_t serial = 0;
  ThreadRanges* ranges = nullptr;
};
thread_local Cached cached;
// Tells threads apart for good, unlike ids that come again.
thread_local const uint64_t thread_token = ++last_thread;

}  // namespace

struct Perf::State {
  std::string obj_name;
  PerfOptions options;
  bool collecting = false;
  std::optional<Error> refused;  // the environment, or a range in a Scope; shown in finalize()
  Warmup warmup;
  Rules rules = Rules::kStrobe;
  uint64_t serial = 0;

  std::mutex mutex;
  std::unordered_map<uint64_t, ThreadRanges*> by_thread;
  std::vector<std::unique_ptr<ThreadRanges>> threads;
  std::vector<Request> requests;

  void refuse(Error error) {
    const std::lock_guard lock(mutex);
    if (!refused) refused = std::move(error);
  }

  ThreadRanges& mine() {
    if (cached.serial == serial) return *cached.ranges;
    const std::lock_guard lock(mutex);
    ThreadRanges*& ranges = by_thread[thread_token];
    if (ranges == nullptr) {
      threads.push_back(std::make_unique<ThreadRanges>());
      ranges = threads.back().get();
    }
    cached = {serial, ranges};
    return *ranges;
  }

  Result<uint32_t> node_of(ThreadRanges& ranges, std::string_view name) const {
    auto known = ranges.names.find(name);
    if (known == ranges.names.end()) {
      STROBE_TRY(check_name(name));
      known = ranges.names.emplace(std::string(name), static_cast<uint32_t>(ranges.names.size())).first;
    }
    const uint32_t parent = ranges.open.empty() ? kRoot : ranges.open.back().node;
    const auto [child, is_new] =
        ranges.children.try_emplace(uint64_t{parent} << 32 | known->second, static_cast<uint32_t>(ranges.nodes.size()));
    if (is_new) {
      const Node& above = ranges.nodes[parent];
      const bool inside = above.inside || above.batch_index.has_value();
      ranges.nodes.push_back({.parent = parent, .name = &known->first, .inside = inside});
    }
    return child->second;
  }

  static void remove_below(ThreadRanges& ranges, uint32_t top) {
    // Children stand after their parents.
    std::vector<bool> below(ranges.nodes.size());
    below[top] = true;
    for (uint32_t i = top; i < ranges.nodes.size(); ++i) {
      if (i != top) below[i] = below[ranges.nodes[i].parent];
      if (below[i]) ranges.nodes[i].closed = false;
    }
  }

  RangeTimes gather() const;
};

Perf::Perf(std::string obj_name, PerfOptions options) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.obj_name = std::move(obj_name);
  state.options = std::move(options);
  state.serial = ++last_serial;
  state.collecting = state.options.collect.value_or(wanted_by_environment());
  if (!state.collecting) return;
  const auto keep = [&state](auto result, auto& into) {
    if (result) into = *result;
    if (!result) state.refused = std::move(result).error();
  };
  keep(state.options.rules ? Result<Rules>(*state.options.rules) : rules_of_environment(), state.rules);
  keep(state.options.warmup ? Result<Warmup>(*state.options.warmup) : warmup_of_environment(), state.warmup);
  if (auto name = check_name(state.obj_name); !name) state.refused = std::move(name.error().at("obj_name"));
}

Perf::~Perf() = default;

bool Perf::collecting() const {
  return state_->collecting;
}

Result<void> Perf::push_range(std::string_view message, const RangeStyle& style, std::optional<int64_t> batch_index) {
  if (message.empty()) return usage_error("a range needs a message");
  if (batch_index && (*batch_index < 0 || *batch_index > kMostItems))
    return usage_error("batch index " + std::to_string(*batch_index) + ": expected 0 to " + std::to_string(kMostItems));
  ThreadRanges& mine = state_->mine();
  const std::lock_guard lock(mine.mutex);
  mine.label = message;
  if (batch_index) mine.label += "_" + std::to_string(*batch_index);
  uint32_t place = kRoot;
  if (state_->collecting) {
    STROBE_ASSIGN(place, state_->node_of(mine, mine.label));
  }
  const record::NvtxDomain domain = record::nvtx_domain(style.domain);
  mine.open.push_back({place, domain, batch_index});
  if (record::recording()) {
    const bool grouped = !style.category.empty() || !style.domain.empty();
    record::push(mine.label, record::kNoFrame,
                 grouped ? record::Category(style.category, style.domain) : record::Category());
  }
  record::nvtx_push(domain, mine.label.c_str(), argb_of(style.color), style.category);
  if (!state_->collecting) return {};
  Node& node = mine.nodes[place];
  node.batch_index = batch_index;
  node.items.reset();
  node.start_ns = steady_ns();
  return {};
}

Result<void> Perf::pop_range(std::optional<int64_t> total_items, bool delete_range) {
  const int64_t now = steady_ns();
  ThreadRanges& mine = state_->mine();
  const std::lock_guard lock(mine.mutex);
  if (mine.open.empty()) {
    if (state_->collecting) return usage_error("pop_range: no range is open on this thread");
    record::nvtx_pop(nullptr);
    return {};
  }
  const Open open = mine.open.back();
  if (state_->collecting && total_items) {
    const std::string place = "pop_range of " + mine.path_of(open.node, state_->obj_name) + ": ";
    if (!open.batch_index)
      return usage_error(place + "total_items closes a batch, but this range was pushed without a batch index");
    if (*total_items < 0 || *total_items > kMostItems)
      return usage_error(place + "total_items " + std::to_string(*total_items) + ", expected 0 to " +
                         std::to_string(kMostItems));
  }
  mine.open.pop_back();
  if (record::recording()) {
    if (open.batch_index && total_items) ::strobe_arg_batch(*open.batch_index, *total_items);
    record::pop();
  }
  record::nvtx_pop(open.domain);
  if (!state_->collecting) return {};
  Node& node = mine.nodes[open.node];
  node.end_ns = now;
  node.items = total_items;
  node.closed = true;
  if (delete_range) {
    if (state_->rules == Rules::kOriginal) mine.deleted.push_back(mine.path_of(open.node, state_->obj_name));
    State::remove_below(mine, open.node);
  }
  return {};
}

Perf::Scope::Scope(Perf& perf, std::string_view message, const RangeStyle& style, std::optional<int64_t> batch_index)
    : perf_(perf) {
  auto pushed = perf.push_range(message, style, batch_index);
  open_ = pushed.has_value();
  if (!pushed) perf.state_->refuse(std::move(pushed).error());
}

Perf::Scope::~Scope() {
  if (!open_) return;
  if (auto popped = perf_.pop_range(items_, delete_); !popped) {
    perf_.state_->refuse(std::move(popped).error());
    (void)perf_.pop_range();
  }
}

void Perf::completed(const Arrival& arrival) {
  const int64_t now = steady_ns();
  if (!state_->collecting) return;
  const std::lock_guard lock(state_->mutex);
  state_->requests.push_back({arrival.index, arrival.intended_ns, arrival.started_ns, now});
}

RangeTimes Perf::State::gather() const {
  struct Ended {
    int64_t end_ns;
    RangeTime time;
  };
  std::vector<Ended> all;
  std::vector<std::string> deleted;
  for (const auto& thread : threads) {
    const std::lock_guard lock(thread->mutex);
    const size_t first = all.size();
    for (uint32_t i = 1; i < thread->nodes.size(); ++i) {
      const Node& node = thread->nodes[i];
      if (!node.closed) continue;
      RangeTime time{.path = thread->path_of(i, obj_name),
                     .cpu_ms = static_cast<double>(node.end_ns - node.start_ns) / kNsPerMs,
                     .inside = node.inside};
      if (node.batch_index) time.batch = BatchMark{*node.batch_index, node.items};
      all.push_back({node.end_ns, std::move(time)});
    }
    // Children stand after their parents: of equal ends they must come first.
    std::reverse(all.begin() + static_cast<std::ptrdiff_t>(first), all.end());
    deleted.insert(deleted.end(), thread->deleted.begin(), thread->deleted.end());
  }
  std::stable_sort(all.begin(), all.end(), [](const Ended& a, const Ended& b) { return a.end_ns < b.end_ns; });
  RangeTimes ranges;
  std::vector<int64_t> threads_with;
  std::unordered_map<std::string, size_t> by_path;
  for (auto& [end_ns, time] : all) {
    const bool gone = std::any_of(deleted.begin(), deleted.end(),
                                  [&path = time.path](const std::string& prefix) { return path.starts_with(prefix); });
    if (gone) continue;
    const auto [known, is_new] = by_path.try_emplace(time.path, ranges.size());
    if (is_new) {
      ranges.push_back(std::move(time));
      threads_with.push_back(1);
      continue;
    }
    RangeTime& same = ranges[known->second];
    same.cpu_ms += time.cpu_ms;
    same.batch = time.batch ? time.batch : same.batch;
    ++threads_with[known->second];
  }
  for (size_t i = 0; i < ranges.size(); ++i) ranges[i].cpu_ms /= static_cast<double>(threads_with[i]);
  return ranges;
}

Result<std::string> Perf::finalize() {
  State& state = *state_;
  if (!state.collecting) return std::string("{}");
  const std::lock_guard lock(state.mutex);
  if (state.refused) return *state.refused;
  size_t open = 0;
  std::string one;
  for (const auto& thread : state.threads) {
    const std::lock_guard thread_lock(thread->mutex);
    open += thread->open.size();
    if (!thread->open.empty()) one = thread->path_of(thread->open.back().node, state.obj_name);
  }
  if (open > 0)
    return usage_error("finalize: " + std::to_string(open) + (open == 1 ? " range is" : " ranges are") +
                       " still open, " + one + (open == 1 ? "" : " among them"));
  Json meta = Json::object();
  meta["device"] = {{"id", state.options.device_id}, {"name", state.options.device_name}};
  meta["args"] = Json::object();
  if (!state.options.meta.empty()) {
    const Json given = Json::parse(state.options.meta, nullptr, false);
    if (!given.is_object()) return usage_error("meta: expected a JSON object");
    meta.update(given);
  }
  if (!meta["strobe"].is_object()) meta["strobe"] = Json::object();
  if (!state.requests.empty()) meta["strobe"]["latency"] = latency_figures(state.requests, arrivals_of_environment());
  const RangeTimes ranges = state.gather();
  const Json benchmark =
      benchmark_of(state.obj_name, ranges, resolve(state.warmup, ranges), state.rules, std::move(meta));
  std::string text = benchmark.dump(4, ' ', false, Json::error_handler_t::replace);
  const auto path = std::filesystem::path(state.options.output_dir) / "benchmark.json";
  STROBE_TRY(write_file(path, text + "\n"));
  return text;
}

}  // namespace strobe::bench
