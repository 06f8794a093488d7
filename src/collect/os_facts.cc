#include "collect/os_facts.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "collect/proc_reader.h"

namespace strobe::collect {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int kSlowEvery = 10;     // samples from one look at what costs more to the next
constexpr int64_t kMaxShare = 20;  // of one core that sampling may take: one of so many

int64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

// A number that is kept when it changes, and once more just before it does, so that it is seen to have stood still.
class Series {
 public:
  void put(std::vector<CounterSample>& samples, const char* name, int32_t pid, int32_t tid, int64_t now_ns,
           double value) {
    const bool changed = kept_ns_ == 0 || value != value_;
    if (changed && kept_ns_ != 0 && seen_ns_ != kept_ns_) samples.push_back({seen_ns_, pid, tid, name, value_});
    if (changed) {
      samples.push_back({now_ns, pid, tid, name, value});
      kept_ns_ = now_ns;
      value_ = value;
    }
    seen_ns_ = now_ns;
  }

 private:
  int64_t kept_ns_ = 0, seen_ns_ = 0;
  double value_ = 0;
};

struct Thread {
  ThreadFacts facts;
  ProcFile schedstat, status, comm;
  Series cpu, wait, voluntary, involuntary;
  int64_t generation = 0;
};
struct Process {
  ProcessFacts facts;
  std::string task_folder;
  ProcFile stat, status;
  std::unordered_map<int32_t, Thread> threads;
  Series rss, minor, major, thread_count;
  bool reaped = false;
};

std::string command_of(int32_t pid, const std::string& otherwise) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
  std::string text;
  if (FILE* file = std::fopen(path, "re")) {
    char part[4096];
    const size_t bytes = std::fread(part, 1, sizeof part, file);
    std::fclose(file);
    text.assign(part, bytes);
  }
  while (!text.empty() && text.back() == 0) text.pop_back();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text.empty() ? otherwise : text;
}

class OsFacts : public Collector {
 public:
  explicit OsFacts(const OsOptions& options)
      : options_(options),
        self_(::getpid()),
        boot_minus_monotonic_(clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC)) {}

  void started(int32_t pid, const std::vector<std::string>& command, int64_t start_ns) override {
    Process& process = add(pid, self_, start_ns);
    for (const auto& word : command) process.facts.command += (process.facts.command.empty() ? "" : " ") + word;
    process.facts.name = command.empty() ? "" : command[0].substr(command[0].rfind('/') + 1);
    program_ = pid;
  }

  // A dead process still shows its last numbers; its threads but the first are gone.
  void died(int32_t pid) override {
    const int64_t now = clock_ns(CLOCK_MONOTONIC);
    const auto found = live_.find(pid);
    Process& process = found != live_.end() ? found->second : add(pid, self_, last_pass_ns_);
    look(process, now, true);
    process.facts.end_ns = now;
  }

  void reaped(int32_t pid, int wait_status, const rusage& used) override {
    const auto found = live_.find(pid);
    // What this process waited for is in its numbers too, so the sum over those that we wait for is the whole tree.
    const auto ns = [](const timeval& time) { return int64_t{time.tv_sec} * kSecond + time.tv_usec * 1000; };
    tree_cpu_ns_ += ns(used.ru_utime) + ns(used.ru_stime);
    if (found == live_.end()) return;
    ProcessFacts& facts = found->second.facts;
    facts.wait_status = wait_status;
    found->second.reaped = true;
    end(found);
  }

  std::optional<int64_t> sample() override {
    const int64_t begin = clock_ns(CLOCK_MONOTONIC);
    if (begin < next_ns_) return next_ns_;
    const int64_t cpu_begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (passes_ == 0) first_pass_ns_ = begin;
    const bool slow = passes_ % kSlowEvery == 0;
    find_new(begin);
    for (auto it = live_.begin(); it != live_.end();) {
      auto next = std::next(it);
      if (!look(it->second, begin, slow)) {
        it->second.facts.end_ns = begin;
        end(it);
      }
      it = next;
    }
    ++passes_;
    last_pass_ns_ = begin;
    const int64_t took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin;
    cpu_ns_ += took;
    next_ns_ = begin + std::max(options_.period_ns, took * kMaxShare);
    return next_ns_;
  }

  void finish(Findings& findings) override {
    while (!live_.empty()) end(live_.begin());
    const int64_t elapsed = last_pass_ns_ - first_pass_ns_;
    int64_t seen_cpu = 0;
    for (const ProcessFacts& process : done_) seen_cpu += process.cpu_ns;
    auto& facts = findings.facts;
    facts["record.samples"] = std::to_string(passes_);
    if (passes_ > 1) {
      char text[32];
      std::snprintf(text, sizeof text, "%.1f", static_cast<double>(elapsed) / 1e6 / static_cast<double>(passes_ - 1));
      facts["record.period_ms"] = text;
      std::snprintf(text, sizeof text, "%.4f",
                    static_cast<double>(cpu_ns_) / static_cast<double>(std::max<int64_t>(elapsed, 1)));
      facts["record.sampling_cores"] = text;
    }
    facts["record.cpu_ms_seen"] = std::to_string(seen_cpu / 1'000'000);
    facts["record.cpu_ms_of_ended"] = std::to_string(tree_cpu_ns_ / 1'000'000);
    findings.processes = std::move(done_);
    findings.threads = std::move(threads_);
    findings.samples = std::move(samples_);
  }

 private:
  using Live = std::map<int32_t, Process>;

  Process& add(int32_t pid, int32_t parent, int64_t start_ns) {
    Process& process = live_[pid];
    process.facts.pid = pid;
    process.facts.parent = parent;
    process.facts.start_ns = start_ns;
    const std::string folder = "/proc/" + std::to_string(pid);
    process.task_folder = folder + "/task";
    process.stat = ProcFile(folder + "/stat");
    process.status = ProcFile(folder + "/status");
    return process;
  }

  // A process is ours if its parent is, and every process whose parent died becomes a child of this one. Of two new
  // ones the child may stand before its parent, so it is done until nothing more is found.
  void find_new(int64_t now) {
    numbers_in("/proc", pids_);
    std::unordered_map<int32_t, ProcessStat> unknown;
    std::unordered_set<int32_t> others;
    for (const int32_t pid : pids_) {
      if (pid == self_ || live_.count(pid) != 0) continue;
      if (others_.count(pid) != 0) {
        others.insert(pid);
        continue;
      }
      ProcessStat stat;
      ProcFile file("/proc/" + std::to_string(pid) + "/stat");
      const char* text = file.read();
      if (text != nullptr && parse_stat(text, stat)) unknown.emplace(pid, std::move(stat));
    }
    for (bool more = true; more;) {
      more = false;
      for (auto it = unknown.begin(); it != unknown.end();) {
        if (it->second.parent != self_ && live_.count(it->second.parent) == 0) {
          ++it;
          continue;
        }
        const int64_t ticks = it->second.start_ticks * (kSecond / ::sysconf(_SC_CLK_TCK)) - boot_minus_monotonic_;
        // Start times of the kernel have steps of 10 ms; no process begins before its parent.
        const auto parent = live_.find(it->second.parent);
        const int64_t earliest = std::max(last_pass_ns_, parent == live_.end() ? 0 : parent->second.facts.start_ns);
        Process& process = add(it->first, it->second.parent, std::clamp(ticks, std::min(earliest, now), now));
        process.facts.command = command_of(it->first, it->second.name);
        it = unknown.erase(it);
        more = true;
      }
    }
    for (const auto& [pid, stat] : unknown) others.insert(pid);
    others_ = std::move(others);
  }

  // False: it is gone.
  bool look(Process& process, int64_t now, bool slow) {
    const char* text = process.stat.read();
    ProcessStat stat;
    if (text == nullptr || !parse_stat(text, stat)) return false;
    ProcessFacts& facts = process.facts;
    if (facts.name != stat.name) {  // new, or it runs another program now
      facts.name = stat.name;
      facts.command = command_of(facts.pid, stat.name);
    }
    facts.minor_faults = stat.minor_faults;
    facts.major_faults = stat.major_faults;
    const int64_t rss = stat.rss_pages * ::sysconf(_SC_PAGESIZE);
    facts.peak_rss_bytes = std::max(facts.peak_rss_bytes, rss);
    int64_t cpu_ns = 0;
    ++generation_;
    numbers_in(process.task_folder.c_str(), tids_);
    for (const int32_t tid : tids_) look_at_thread(process, tid, now, slow);
    for (auto it = process.threads.begin(); it != process.threads.end();) {
      if (it->second.generation == generation_) {
        ++it;
        continue;
      }
      process_ended_threads_cpu_[facts.pid] += it->second.facts.cpu_ns;
      threads_.push_back(std::move(it->second.facts));
      it = process.threads.erase(it);
    }
    for (const auto& [tid, thread] : process.threads) cpu_ns += thread.facts.cpu_ns;
    const auto ended = process_ended_threads_cpu_.find(facts.pid);
    if (ended != process_ended_threads_cpu_.end()) cpu_ns += ended->second;
    // The kernel's own sum has steps of 10 ms but knows threads that came and went between two samples.
    facts.cpu_ns = std::max({facts.cpu_ns, cpu_ns, stat.cpu_ticks * (kSecond / ::sysconf(_SC_CLK_TCK))});
    if (stat.state == 'Z' || stat.state == 'X') return true;  // its memory is gone already
    if (slow) {
      const char* status = process.status.read();
      const int64_t peak_kib = status == nullptr ? -1 : status_number(status, "VmHWM");
      facts.peak_rss_bytes = std::max(facts.peak_rss_bytes, peak_kib * 1024);
    }
    constexpr double kMiB = 1024.0 * 1024.0;
    process.rss.put(samples_, "os.rss_mib", facts.pid, 0, now, static_cast<double>(rss) / kMiB);
    process.minor.put(samples_, "os.minor_faults", facts.pid, 0, now, static_cast<double>(stat.minor_faults));
    process.major.put(samples_, "os.major_faults", facts.pid, 0, now, static_cast<double>(stat.major_faults));
    process.thread_count.put(samples_, "os.threads", facts.pid, 0, now, static_cast<double>(tids_.size()));
    return true;
  }

  void look_at_thread(Process& process, int32_t tid, int64_t now, bool slow) {
    const int32_t pid = process.facts.pid;
    const auto [found, is_new] = process.threads.try_emplace(tid);
    Thread& thread = found->second;
    if (is_new) {
      const std::string folder = process.task_folder + "/" + std::to_string(tid);
      thread.facts.pid = pid;
      thread.facts.tid = tid;
      thread.facts.first_ns = now;
      thread.schedstat = ProcFile(folder + "/schedstat");
      thread.status = ProcFile(folder + "/status");
      thread.comm = ProcFile(folder + "/comm");
    }
    thread.generation = generation_;
    thread.facts.last_ns = now;
    SchedStat ran;
    const char* text = thread.schedstat.read();
    if (text != nullptr && parse_schedstat(text, ran)) {
      thread.facts.cpu_ns = ran.cpu_ns;
      thread.facts.wait_ns = ran.wait_ns;
      thread.cpu.put(samples_, "os.cpu_ms", pid, tid, now, static_cast<double>(ran.cpu_ns) / 1e6);
      thread.wait.put(samples_, "os.runqueue_wait_ms", pid, tid, now, static_cast<double>(ran.wait_ns) / 1e6);
    }
    if (!slow && !is_new) return;
    if ((text = thread.status.read()) != nullptr) {
      thread.facts.voluntary_switches = std::max<int64_t>(0, status_number(text, "voluntary_ctxt_switches"));
      thread.facts.involuntary_switches = std::max<int64_t>(0, status_number(text, "nonvoluntary_ctxt_switches"));
      thread.voluntary.put(samples_, "os.voluntary_switches", pid, tid, now,
                           static_cast<double>(thread.facts.voluntary_switches));
      thread.involuntary.put(samples_, "os.involuntary_switches", pid, tid, now,
                             static_cast<double>(thread.facts.involuntary_switches));
    }
    if ((text = thread.comm.read()) != nullptr) {
      thread.facts.name = text;
      while (!thread.facts.name.empty() && thread.facts.name.back() == '\n') thread.facts.name.pop_back();
    }
  }

  void end(Live::iterator which) {
    for (auto& [tid, thread] : which->second.threads) threads_.push_back(std::move(thread.facts));
    process_ended_threads_cpu_.erase(which->first);
    done_.push_back(std::move(which->second.facts));
    live_.erase(which);
  }

  OsOptions options_;
  int32_t self_, program_ = 0;
  int64_t boot_minus_monotonic_;
  Live live_;
  std::unordered_set<int32_t> others_;  // processes that are not ours
  std::unordered_map<int32_t, int64_t> process_ended_threads_cpu_;
  std::vector<int32_t> pids_, tids_;
  int64_t generation_ = 0, passes_ = 0, cpu_ns_ = 0, tree_cpu_ns_ = 0;
  int64_t first_pass_ns_ = 0, last_pass_ns_ = 0, next_ns_ = 0;
  std::vector<ProcessFacts> done_;
  std::vector<ThreadFacts> threads_;
  std::vector<CounterSample> samples_;
};

}  // namespace

std::unique_ptr<Collector> make_os_collector(const OsOptions& options) {
  return std::make_unique<OsFacts>(options);
}

}  // namespace strobe::collect
