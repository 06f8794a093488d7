#include "record_merge.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>
#include <utility>

#include "inject/late_range.h"

namespace strobe::app {
namespace {

using trace::kNone;
using trace::StringId;
using trace::Timeline;

class Merge {
 public:
  Merge(Timeline& timeline, const collect::Findings& findings, int32_t self)
      : timeline_(timeline), findings_(findings), self_(self) {
    for (size_t i = 0; i < timeline.lanes.size(); ++i)
      if (timeline.lanes[i].kind == trace::Lane::Kind::kThread)
        lanes_[{timeline.lanes[i].pid, timeline.lanes[i].tid}] = static_cast<int32_t>(i);
    for (size_t i = 0; i < timeline.processes.size(); ++i) processes_[timeline.processes[i].pid] = i;
  }

  void run() {
    find_clock();
    late_ranges();
    thread_names();
    for (const auto& process : findings_.processes) add_process(process);
    for (const auto& thread : findings_.threads) {
      trace::Lane& lane = timeline_.lanes[static_cast<size_t>(lane_of(thread.pid, thread.tid))];
      if (lane.name == 0) lane.name = timeline_.strings.intern(thread.name);
    }
    add_samples();
    if (!findings_.processes.empty()) add_tables();
    for (const auto& [key, value] : findings_.facts) timeline_.facts[key] = value;
    // Finishing again counts again what it counted before.
    auto faults = std::exchange(timeline_.losses.faults, {});
    timeline_.finish();
    for (const auto& [kind, count] : faults)
      timeline_.losses.faults[kind] = std::max(timeline_.losses.faults[kind], count);
  }

 private:
  StringId intern(std::string_view text) { return timeline_.strings.intern(text); }

  int32_t lane_of(int32_t pid, int32_t tid) {
    const auto [found, is_new] = lanes_.try_emplace({pid, tid}, static_cast<int32_t>(timeline_.lanes.size()));
    if (is_new) timeline_.lanes.push_back({trace::Lane::Kind::kThread, pid, tid, 0});
    if (const auto [row, new_process] = processes_.try_emplace(pid, timeline_.processes.size()); new_process)
      timeline_.processes.push_back({pid, 0});
    return found->second;
  }

  int64_t to_timeline(int64_t monotonic_ns) {
    const int64_t time = monotonic_ns - zero_ns_;
    timeline_.duration_ns = std::max(timeline_.duration_ns, time);
    return std::max<int64_t>(0, time);
  }

  void find_clock() {
    const auto& marks = timeline_.marks;
    const auto& arguments = timeline_.mark_arguments;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto mark = static_cast<size_t>(arguments.mark[i]);
      if (timeline_.strings[marks.name[mark]] != kClockMark || timeline_.strings[arguments.key[i]] != kClockKey)
        continue;
      if (timeline_.lanes[static_cast<size_t>(marks.lane[mark])].pid != self_) continue;
      if (const auto* value = std::get_if<int64_t>(&arguments.value[i])) zero_ns_ = *value - marks.time_ns[mark];
      return;
    }
  }

  void add_range(int32_t lane, StringId name, int64_t start, int64_t end, bool open, StringId category,
                 StringId domain) {
    trace::Ranges& ranges = timeline_.ranges;
    ranges.start_ns.push_back(start);
    ranges.end_ns.push_back(std::max(start, end));
    ranges.name.push_back(name);
    ranges.lane.push_back(lane);
    ranges.frame.push_back(trace::kNoFrame);
    ranges.is_async.push_back(1);
    ranges.open.push_back(open ? 1 : 0);
    ranges.categorize_last(category, domain);
  }
  template <typename Value>
  void add_argument(std::string_view key, Value value) {
    timeline_.arguments.range.push_back(static_cast<int32_t>(timeline_.ranges.size()) - 1);
    timeline_.arguments.key.push_back(intern(key));
    timeline_.arguments.value.emplace_back(value);
  }

  void late_ranges() {
    const StringId category = intern(inject::kLateRange);
    const StringId began = intern(inject::kBeganAgo), ended = intern(inject::kEndedAgo);
    const trace::Marks marks = std::exchange(timeline_.marks, {});
    const trace::MarkArguments arguments = std::exchange(timeline_.mark_arguments, {});
    size_t argument = 0;
    for (size_t i = 0; i < marks.size(); ++i) {
      const size_t first = argument;
      while (argument < arguments.size() && arguments.mark[argument] == static_cast<int32_t>(i)) ++argument;
      if (marks.category_of(i) == category) {
        int64_t start = marks.time_ns[i], end = marks.time_ns[i];
        for (size_t a = first; a < argument; ++a) {
          const auto* ago = std::get_if<int64_t>(&arguments.value[a]);
          if (ago != nullptr && arguments.key[a] == began) start = std::max<int64_t>(0, start - *ago);
          if (ago != nullptr && arguments.key[a] == ended) end = std::max<int64_t>(0, end - *ago);
        }
        add_range(marks.lane[i], marks.name[i], start, end, false, 0, marks.domain_of(i));
        continue;
      }
      trace::Marks& kept = timeline_.marks;
      kept.time_ns.push_back(marks.time_ns[i]);
      kept.name.push_back(marks.name[i]);
      kept.lane.push_back(marks.lane[i]);
      kept.frame.push_back(marks.frame[i]);
      kept.categorize_last(marks.category_of(i), marks.domain_of(i));
      for (size_t a = first; a < argument; ++a) {
        timeline_.mark_arguments.mark.push_back(static_cast<int32_t>(kept.size()) - 1);
        timeline_.mark_arguments.key.push_back(arguments.key[a]);
        timeline_.mark_arguments.value.push_back(arguments.value[a]);
      }
    }
  }

  // "thread_name.PID.TID" are names that one thread gave to another.
  void thread_names() {
    constexpr std::string_view kPrefix = "thread_name.";
    for (auto it = timeline_.facts.lower_bound(std::string(kPrefix)); it != timeline_.facts.end();) {
      int pid = 0, tid = 0;
      if (!it->first.starts_with(kPrefix)) break;
      if (std::sscanf(it->first.c_str() + kPrefix.size(), "%d.%d", &pid, &tid) == 2)
        timeline_.lanes[static_cast<size_t>(lane_of(pid, tid))].name = intern(it->second);
      it = timeline_.facts.erase(it);
    }
  }

  void add_process(const collect::ProcessFacts& process) {
    const int32_t lane = lane_of(process.pid, process.pid);
    trace::Process& named = timeline_.processes[processes_[process.pid]];
    if (named.name == 0) named.name = intern(process.name);
    const int64_t start = to_timeline(process.start_ns);
    const bool open = process.end_ns == 0;
    add_range(lane, intern("process " + process.name), start,
              open ? timeline_.duration_ns : to_timeline(process.end_ns), open, intern("process"), intern("os"));
    add_argument("command", intern(process.command));
    add_argument("pid", int64_t{process.pid});
    add_argument("parent_pid", int64_t{process.parent});
    add_argument("cpu_ms", static_cast<double>(process.cpu_ns) / 1e6);
    add_argument("peak_rss_mib", static_cast<double>(process.peak_rss_bytes) / (1024.0 * 1024.0));
    if (process.wait_status && WIFEXITED(*process.wait_status))
      add_argument("exit_code", int64_t{WEXITSTATUS(*process.wait_status)});
    if (process.wait_status && WIFSIGNALED(*process.wait_status))
      add_argument("killed_by_signal", int64_t{WTERMSIG(*process.wait_status)});
  }

  void add_samples() {
    trace::Counters& counters = timeline_.counters;
    std::map<const char*, StringId> names;
    for (const auto& sample : findings_.samples) {
      const auto [name, is_new] = names.try_emplace(sample.name, 0);
      if (is_new) name->second = intern(sample.name);
      counters.lane.resize(counters.size(), kNone);
      counters.time_ns.push_back(to_timeline(sample.time_ns));
      counters.name.push_back(name->second);
      counters.pid.push_back(sample.pid);
      counters.value.push_back(sample.value);
      counters.lane.push_back(sample.tid == 0 ? kNone : lane_of(sample.pid, sample.tid));
    }
  }

  void add_tables() {
    const auto ms = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
    Table processes("Processes", {{"pid", "Process id", 0},
                                  {"parent", "Process id of the parent when it was first seen", 0},
                                  {"name", "Name of the program", 0},
                                  {"start_ms", "Start, from the start of the recording", 3},
                                  {"wall_ms", "From start to end, or to the end of the recording", 3},
                                  {"cpu_ms", "CPU time, user and system", 3},
                                  {"peak_rss_mib", "Largest resident memory", 1},
                                  {"minor_faults", "Page faults without reading a disk", 0},
                                  {"major_faults", "Page faults that read a disk", 0},
                                  {"exit", "Exit code, or the signal; empty: not known", 0}});
    for (const auto& process : findings_.processes) {
      const int64_t start = to_timeline(process.start_ns);
      const int64_t end = process.end_ns == 0 ? timeline_.duration_ns : to_timeline(process.end_ns);
      Cell exit;
      if (process.wait_status && WIFEXITED(*process.wait_status))
        exit = std::to_string(WEXITSTATUS(*process.wait_status));
      if (process.wait_status && WIFSIGNALED(*process.wait_status))
        exit = "signal " + std::to_string(WTERMSIG(*process.wait_status));
      if (process.end_ns == 0) exit = std::string("still running");
      processes.add_row({int64_t{process.pid}, int64_t{process.parent}, process.name, ms(start), ms(end - start),
                         ms(process.cpu_ns), static_cast<double>(process.peak_rss_bytes) / (1024.0 * 1024.0),
                         process.minor_faults, process.major_faults, exit});
    }
    processes.notes.push_back(
        "A process that began and ended between two samples is not here, unless it was recorded.");
    Table threads("Threads", {{"pid", "Process id", 0},
                              {"tid", "Thread id", 0},
                              {"name", "Name of the thread", 0},
                              {"seen_ms", "From the first sample to the last", 3},
                              {"cpu_ms", "CPU time", 3},
                              {"wait_ms", "Ready to run, but waiting for a processor", 3},
                              {"voluntary", "Times that it gave the processor away", 0},
                              {"involuntary", "Times that the processor was taken away", 0}});
    for (const auto& thread : findings_.threads)
      threads.add_row({int64_t{thread.pid}, int64_t{thread.tid}, thread.name, ms(thread.last_ns - thread.first_ns),
                       ms(thread.cpu_ns), ms(thread.wait_ns), thread.voluntary_switches, thread.involuntary_switches});
    threads.notes.push_back("Figures are those of each thread's last sample.");
    timeline_.tables.push_back(std::move(processes));
    timeline_.tables.push_back(std::move(threads));
  }

  Timeline& timeline_;
  const collect::Findings& findings_;
  int32_t self_;
  int64_t zero_ns_ = 0;
  std::map<std::pair<int32_t, int32_t>, int32_t> lanes_;
  std::map<int32_t, size_t> processes_;
};

}  // namespace

void merge_findings(Timeline& timeline, const collect::Findings& findings, int32_t self) {
  Merge(timeline, findings, self).run();
}

}  // namespace strobe::app
