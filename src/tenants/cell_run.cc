#include "tenants/cell_run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "base/tenant_words.h"
#include "collect/core_set.h"
#include "collect/core_switches.h"
#include "collect/machine.h"
#include "strobe/record/annotate.h"
#include "tenants/board.h"
#include "tenants/device_arbiter.h"
#include "tenants/mps_server.h"
#include "tenants/spin_task.h"
#include "tenants/tenant_run.h"
#include "tenants/usage_samples.h"

namespace strobe::tenants {

namespace words = tenant_words;

bool CellOutcome::succeeded() const {
  return began && std::all_of(tenants.begin(), tenants.end(), [](const TenantOutcome& one) { return one.succeeded; });
}

namespace {

constexpr int64_t kLook_ns = 20'000'000;   // between two looks at the tenants
constexpr int64_t kStart_ns = 50'000'000;  // from "all are ready" to the first frame
constexpr double kLoading_s = 600;

// What the supervisor knows of one tenant.
struct Watched {
  pid_t process = 0;  // of isolation by processes
  bool gone = false;
  std::string end;  // how it ended, where that is no status of its own
  std::thread thread;
};

class CellRun {
 public:
  CellRun(const CellSpec& cell, const CellOptions& options, DeviceArbiter arbiter, Board board)
      : cell_(cell), options_(options), arbiter_(std::move(arbiter)), board_(std::move(board)) {
    watched_.resize(cell.tenants.size());
    for (size_t i = 0; i < cell.tenants.size(); ++i)
      places_.push_back({i, &cell_, &arbiter_, &*board_, options.predictions / (cell.tenants[i].name + ".jsonl")});
  }

  Result<CellOutcome> run() {
    const bool apart = cell_.isolation == Isolation::kProcesses;
    if (apart) STROBE_TRY(fork_tenants());
    // CUDA belongs to the processes that use it: beside tenants of their own the supervisor stays away from it.
    STROBE_TRY(record::start({.folder = options_.spool, .process_name = "strobe run", .gpu = options_.gpu && !apart}));
    record::name_thread("supervisor");
    record_facts();
    watch_cores();
    if (options_.on_recording) options_.on_recording();
    board_->recording = true;
    if (!apart) {
      for (size_t i = 0; i < watched_.size(); ++i)
        watched_[i].thread = std::thread([this, i] { run_tenant(places_[i]); });
    }
    supervise();
    CellOutcome outcome = outcome_of();
    for (size_t i = 0; i < watched_.size(); ++i) {
      if (!watched_[i].thread.joinable()) continue;
      if (watched_[i].end.empty()) {
        watched_[i].thread.join();
      } else {
        watched_[i].thread.detach();  // hung: it ends with the process
        outcome.has_hung_threads = true;
      }
    }
    if (options_.on_end) options_.on_end();
    if (core_switches_) core_switches_->stop();
    STROBE_ASSIGN(const record::Totals totals, record::stop());
    (void)totals;
    return outcome;
  }

 private:
  Result<void> fork_tenants() {
    const pid_t supervisor = ::getpid();
    std::fflush(nullptr);
    for (size_t i = 0; i < watched_.size(); ++i) {
      const pid_t child = ::fork();
      if (child == 0) become_tenant(places_[i], supervisor);
      if (child < 0) {
        Error error = io_error_errno("starting tenant " + cell_.tenants[i].name);
        for (Watched& started : watched_)
          if (started.process > 0) ::kill(started.process, SIGKILL), ::waitpid(started.process, nullptr, 0);
        return error;
      }
      watched_[i].process = child;
    }
    return {};
  }

  [[noreturn]] void become_tenant(const TenantPlace& place, pid_t supervisor) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != supervisor) ::_exit(3);
    for (const int signal : {SIGINT, SIGTERM}) ::signal(signal, SIG_IGN);  // the supervisor tells when to stop
    const TenantSpec& spec = place.spec();
    if (spec.memory_limit > 0) {
      const auto bytes = static_cast<rlim_t>(spec.memory_limit);
      const rlimit limit{bytes, bytes};
      ::setrlimit(RLIMIT_DATA, &limit);
    }
    if (spec.mps_share > 0) ::setenv(kMpsShareVariable, std::to_string(spec.mps_share).c_str(), 1);
    if (spec.mps_below) ::setenv(kMpsPriorityVariable, "1", 1);
    while (!place.board->recording) ::usleep(1000);
    if (auto started =
            record::start({.folder = options_.spool, .process_name = "tenant " + spec.name, .gpu = options_.gpu});
        !started) {
      write_text(place.status().message, started.error().to_string());
      place.status().phase = Phase::kFailed;
      ::_exit(3);
    }
    record_mps(spec);
    run_tenant(place);
    const auto stopped = record::stop();
    std::fflush(nullptr);
    ::_exit(place.status().phase == Phase::kDone && stopped ? 0 : 1);  // engines' exit handlers have nothing to do here
  }

  // What CUDA will find in this process.
  void record_mps(const TenantSpec& tenant) const {
    if (!cell_.mps.value_or(false)) return;
    const auto setting = [](const char* name, const char* otherwise) {
      const char* value = std::getenv(name);
      return std::string(value != nullptr ? value : otherwise);
    };
    record::fact(words::kTenantFact + tenant.name + ".mps",
                 fmt::format("{} % of the multiprocessors, priority {}", setting(kMpsShareVariable, "100"),
                             setting(kMpsPriorityVariable, "0") == "0" ? "normal" : "below normal"));
  }

  void record_facts() const {
    for (const auto& [key, value] : collect::machine_facts()) record::fact(key, value);
    record::fact("cores", fmt::format("{:g}", collect::allowed_cores()));
    std::string names;
    for (const TenantSpec& tenant : cell_.tenants) names += (names.empty() ? "" : ",") + tenant.name;
    record::fact(words::kTenants, names);
    record::fact(words::kPolicy, to_string(cell_.policy));
    record::fact(words::kIsolation, cell_.isolation == Isolation::kThreads ? "threads" : "processes");
    if (cell_.mps) record::fact(words::kMps, *cell_.mps ? "on" : "off");
    // One machine's counter; each process ties it to the clock by itself.
    record::fact(words::kClockSigmaNs, cell_.isolation == Isolation::kThreads ? "100" : "1000");
    if (arbiter_.takes_turns()) record::fact(std::string(words::kResourceFact) + "device", "exclusive=1");
    for (const TenantSpec& tenant : cell_.tenants) {
      const std::string prefix = words::kTenantFact + tenant.name + ".", cpu = cpu_resource(tenant);
      const auto cores = collect::parse_cores(cpu.substr(cpu.find(':') + 1));
      if (tenant.device != "cpu" && !arbiter_.takes_turns())
        record::fact(words::kResourceFact + tenant.device, "shared");  // how, is the device's own affair
      record::fact(words::kResourceFact + cpu, fmt::format("cores={};run-queues=each", cores ? cores->size() : 1));
      record::fact(prefix + "cpu", cpu);
      record::fact(prefix + "priority", std::to_string(tenant.priority));
      record::fact(prefix + "rate_hz", fmt::format("{:.10g}", tenant.batches_hz()));
      record::fact(prefix + "batch", std::to_string(tenant.batch));
      if (tenant.deadline_ms > 0) record::fact(prefix + "deadline_ms", fmt::format("{:.10g}", tenant.deadline_ms));
      record::fact(prefix + "queue_depth", std::to_string(tenant.queue));
      record::fact(prefix + "drop", tenant.drop == QueueDrop::kOldest   ? "oldest"
                                    : tenant.drop == QueueDrop::kNewest ? "newest"
                                                                        : "never");
      record::fact(prefix + "model", tenant.model);
      record::fact(prefix + "engine", tenant.engine);
      record::fact(prefix + "device", tenant.device);
      record::fact(prefix + "threads", std::to_string(tenant.threads));
      record::fact(prefix + "source", tenant.source.path.empty() ? "synthetic" : tenant.source.path);
      if (!tenant.source.weather.empty())
        record::fact(prefix + "weather",
                     fmt::format("{} {:g} mm/h", tenant.source.weather, tenant.source.weather_rate));
    }
  }

  void watch_cores() {
    std::set<int> cores;
    for (const TenantSpec& tenant : cell_.tenants) {
      const std::string cpu = cpu_resource(tenant);
      if (const auto own = collect::parse_cores(cpu.substr(cpu.find(':') + 1))) cores.insert(own->begin(), own->end());
    }
    auto started = collect::CoreSwitches::start({cores.begin(), cores.end()}, options_.spool / kCoreRunsFile);
    if (started) core_switches_.emplace(std::move(*started));
    record::fact(words::kCoreRuns, started ? "on" : "off: " + started.error().to_string());
  }

  TenantStatus& status(size_t i) const { return board_->tenants[i]; }
  bool ended(size_t i) const {
    if (watched_[i].gone || !watched_[i].end.empty()) return true;
    if (watched_[i].process > 0) return false;  // its process is waited for
    const Phase phase = status(i).phase;
    return phase == Phase::kDone || phase == Phase::kFailed;
  }
  bool all_ended() const {
    for (size_t i = 0; i < watched_.size(); ++i)
      if (!ended(i)) return false;
    return true;
  }
  bool all_loaded() const {
    for (size_t i = 0; i < watched_.size(); ++i)
      if (!ended(i) && status(i).phase == Phase::kLoading) return false;
    return true;
  }
  bool any_ready() const {
    for (size_t i = 0; i < watched_.size(); ++i)
      if (!ended(i) && status(i).phase == Phase::kReady) return true;
    return false;
  }
  bool stop_requested() const { return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed); }

  void supervise() {
    const std::atomic<bool> never{false};
    const int64_t loading_began = monotonic_ns();
    while (!all_loaded() && !stop_requested()) {
      sleep_until(monotonic_ns() + kLook_ns, never);
      look_at_processes();
      drain_cores();
      if (static_cast<double>(monotonic_ns() - loading_began) > 1e9 * kLoading_s) break;
    }
    // A set with a member missing is another experiment: it is not begun.
    bool complete = !stop_requested();
    for (size_t i = 0; i < watched_.size(); ++i) complete = complete && !ended(i) && status(i).phase == Phase::kReady;
    if (!complete) {
      board_->stop = true;
      wait_for_the_end(never, 0);
      return;
    }
    began_ = true;
    const int64_t begin = monotonic_ns() + kStart_ns;
    const auto window = begin + static_cast<int64_t>(1e9 * cell_.warmup_s);
    const auto end = window + static_cast<int64_t>(1e9 * cell_.duration_s);
    board_->begin_ns = begin;
    UsageSamples usage(pids());
    while (!all_ended() && !stop_requested() && monotonic_ns() < window) tick(usage, std::min(window, next_look()));
    {
      static const record::Category strobe("run", words::kWindowDomain);
      static const record::Name name(words::kWindow), late(words::kLateNs);
      record::Range range(name, record::kNoFrame, strobe);
      // Frames that were due while this thread woke up belong to the window, too.
      range.arg(late, std::max<int64_t>(0, monotonic_ns() - window));
      while (!all_ended() && !stop_requested() && monotonic_ns() < end) {
        tick(usage, std::min(end, next_look()));
        if (options_.on_progress)
          options_.on_progress(static_cast<double>(monotonic_ns() - window) / 1e9, cell_.duration_s);
      }
      if (!stop_requested()) mark_what_was_due();
    }
    stopped_ = stop_requested();
    board_->stop = true;
    wait_for_the_end(never, end);
  }

  // Frames that a tenant would have had, had it lived: they are missed, too.
  void mark_what_was_due() const {
    static const record::Name not_sent(words::kNotSent);
    for (size_t i = 0; i < watched_.size(); ++i) {
      if (!ended(i) || status(i).phase == Phase::kDone) continue;
      const TenantSpec& spec = cell_.tenants[i];
      // Frames are due from the offset on, and not any more at the end itself.
      const auto due_until = [&spec](double seconds) {
        constexpr double kRounding = 1e-6;
        return static_cast<int64_t>(std::ceil((seconds - 1e-3 * spec.offset_ms) * spec.batches_hz() - kRounding));
      };
      const int64_t first = due_until(cell_.warmup_s), due = due_until(cell_.warmup_s + cell_.duration_s);
      const record::Category of_tenant(spec.name, words::kTenantDomain);
      for (int64_t frame = std::max(first, status(i).sent.load()); frame < due; ++frame)
        record::mark(not_sent, frame, of_tenant);
    }
  }

  void drain_cores() {
    if (core_switches_) core_switches_->drain();
  }

  static int64_t next_look() { return monotonic_ns() + kLook_ns; }

  void tick(UsageSamples& usage, int64_t until) {
    const std::atomic<bool> never{false};
    sleep_until(until, never);
    look_at_processes();
    look_for_hangs();
    usage.sample();
    drain_cores();
  }

  // What is still in queues is finished.
  void wait_for_the_end(const std::atomic<bool>& never, int64_t end) {
    const int64_t begin = std::max(end, monotonic_ns());
    while (!all_ended()) {
      sleep_until(next_look(), never);
      look_at_processes();
      look_for_hangs();
      drain_cores();
      // Frames keep a tenant alive; a queue that does not empty must end, too.
      if (static_cast<double>(monotonic_ns() - begin) > 1e9 * (cell_.hang_s + 60))
        for (size_t i = 0; i < watched_.size(); ++i)
          if (!ended(i)) give_up(i, "did not finish after the end");
    }
  }

  void look_at_processes() {
    for (size_t i = 0; i < watched_.size(); ++i) {
      Watched& tenant = watched_[i];
      if (tenant.process <= 0 || tenant.gone) continue;
      int wait_status = 0;
      if (::waitpid(tenant.process, &wait_status, WNOHANG) != tenant.process) continue;
      tenant.gone = true;
      arbiter_.forget(i);
      const Phase phase = status(i).phase;
      if (!tenant.end.empty() || phase == Phase::kFailed) continue;
      if (WIFSIGNALED(wait_status)) {
        tenant.end = fmt::format("signal {} ({})", WTERMSIG(wait_status), ::strsignal(WTERMSIG(wait_status)));
      } else if (WEXITSTATUS(wait_status) != 0 || phase != Phase::kDone) {
        tenant.end = fmt::format("exit {} before its end", WEXITSTATUS(wait_status));
      }
    }
  }

  void look_for_hangs() {
    const int64_t now = monotonic_ns();
    for (size_t i = 0; i < watched_.size(); ++i) {
      if (ended(i) || status(i).phase != Phase::kRunning || status(i).waiting) continue;
      if (static_cast<double>(now - status(i).alive_ns) > 1e9 * cell_.hang_s)
        give_up(i, fmt::format("hung: no sign of life for {:g} s", cell_.hang_s));
    }
  }

  void give_up(size_t i, std::string why) {
    watched_[i].end = std::move(why);
    record::mark("tenant given up", record::kNoFrame, record::Category(cell_.tenants[i].name, words::kTenantDomain),
                 {{record::Name("reason"), watched_[i].end}});
    if (watched_[i].process > 0) {
      ::kill(watched_[i].process, SIGKILL);
      ::waitpid(watched_[i].process, nullptr, 0);
      watched_[i].gone = true;
    }
    arbiter_.forget(i);
  }

  std::vector<std::pair<std::string, int32_t>> pids() const {
    std::vector<std::pair<std::string, int32_t>> all;
    if (cell_.isolation == Isolation::kThreads) return {{"", static_cast<int32_t>(::getpid())}};
    for (size_t i = 0; i < watched_.size(); ++i) all.emplace_back(cell_.tenants[i].name, watched_[i].process);
    return all;
  }

  CellOutcome outcome_of() const {
    CellOutcome outcome;
    outcome.began = began_;
    outcome.stopped = stopped_ || stop_requested();
    for (size_t i = 0; i < watched_.size(); ++i) {
      const TenantStatus& own = status(i);
      TenantOutcome tenant{.name = cell_.tenants[i].name, .end = {}, .notes = {}};
      if (!watched_[i].end.empty()) {
        tenant.end = watched_[i].end;
      } else if (own.phase == Phase::kFailed) {
        tenant.end = std::string("failed: ") + own.message.data();
      } else {
        tenant.end = began_ ? "done" : "not begun";
        tenant.succeeded = began_;
      }
      tenant.sent = own.sent;
      tenant.finished = own.finished;
      tenant.dropped = own.dropped;
      tenant.failed = own.failed;
      std::string_view notes = own.notes.data();
      while (!notes.empty()) {
        const size_t line = std::min(notes.find('\n'), notes.size());
        if (line > 0) tenant.notes.emplace_back(notes.substr(0, line));
        notes.remove_prefix(std::min(line + 1, notes.size()));
      }
      outcome.tenants.push_back(std::move(tenant));
    }
    return outcome;
  }

  const CellSpec& cell_;
  const CellOptions& options_;
  DeviceArbiter arbiter_;
  Board board_;
  std::vector<TenantPlace> places_;
  std::vector<Watched> watched_;
  std::optional<collect::CoreSwitches> core_switches_;
  bool began_ = false, stopped_ = false;
};

}  // namespace

Result<CellOutcome> run_cell(const CellSpec& cell, const CellOptions& options) {
  measure_spin(cell);
  STROBE_ASSIGN(DeviceArbiter arbiter, DeviceArbiter::create(cell.policy, cell.tenants.size()));
  STROBE_ASSIGN(Board board, Board::create());
  // Kept beyond the call where threads hang: they go on to use it until the process ends.
  auto run = std::make_unique<CellRun>(cell, options, std::move(arbiter), std::move(board));
  auto outcome = run->run();
  if (outcome && outcome->has_hung_threads) (void)run.release();
  return outcome;
}

}  // namespace strobe::tenants
