#include "collect/core_switches.h"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <unordered_set>
#include <utility>

#include "collect/proc_text.h"

namespace strobe::collect {

namespace {

constexpr size_t kRingBytes = size_t{256} << 10;  // 6,500 switches; a user may lock 516 KiB a core
constexpr size_t kSmallRingBytes = size_t{32} << 10;
constexpr uint64_t kMostBytes = uint64_t{128} << 20;

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// At the end of every record: PERF_SAMPLE_TID, _TIME and _CPU.
struct SampleId {
  uint32_t pid, tid;
  uint64_t time_ns;
  uint32_t core, reserved;
};

// Of a core that is not watched only what threads are made and called.
int open_event(int core, bool watched) {
  perf_event_attr what{};
  what.size = sizeof what;
  what.type = PERF_TYPE_SOFTWARE;
  what.config = PERF_COUNT_SW_DUMMY;
  what.context_switch = watched ? 1 : 0;
  what.comm = 1;
  what.task = 1;
  what.sample_id_all = 1;
  what.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  what.use_clockid = 1;
  what.clockid = CLOCK_MONOTONIC;
  return static_cast<int>(::syscall(SYS_perf_event_open, &what, -1, core, -1, PERF_FLAG_FD_CLOEXEC));
}

Error refused(int number, bool of_memory) {
  std::string why = std::string("the kernel does not tell who runs on its cores: ") + std::strerror(number);
  if (number == EACCES || number == EPERM) {
    const auto level = read_number("/proc/sys/kernel/perf_event_paranoid");
    why += ": it takes CAP_PERFMON, or kernel.perf_event_paranoid below 1";
    if (level) why += ", which is " + std::to_string(*level);
    if (of_memory)
      why =
          "the kernel does not tell who runs on its cores: more memory would be locked than allowed "
          "(kernel.perf_event_mlock_kb, ulimit -l)";
  }
  return unsupported(why);
}

// In a pid namespace of its own a process sees others' threads as number 0, which is also that of an idle core.
Result<void> require_machine_wide_numbers() {
  constexpr const char* kFirst = "pid:[4026531836]";  // PROC_PID_INIT_INO of the kernel
  char name[64] = {};
  const ssize_t size = ::readlink("/proc/self/ns/pid", name, sizeof name - 1);
  if (size > 0 && std::strcmp(name, kFirst) == 0) return {};
  return unsupported(
      "the kernel does not tell who runs on its cores: in a pid namespace of its own (a container) "
      "other programs have no numbers");
}

// The ring that one core's records come through.
class Ring {
 public:
  // Errors: kUnsupported.
  static Result<Ring> open(int core, bool watched) {
    const int file = open_event(core, watched);
    if (file < 0) return refused(errno, false);
    const size_t bytes = watched ? kRingBytes : kSmallRingBytes;
    void* memory = ::mmap(nullptr, size_of_map(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
      const int number = errno;
      ::close(file);
      return refused(number, true);
    }
    return Ring(file, core, memory, bytes);
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  Ring(Ring&& other) noexcept
      : running_tid(other.running_tid),
        running_pid(other.running_pid),
        since_ns(other.since_ns),
        last_ns(other.last_ns),
        file_(std::exchange(other.file_, -1)),
        core_(other.core_),
        bytes_(other.bytes_),
        memory_(std::exchange(other.memory_, nullptr)) {}
  Ring& operator=(Ring&&) = delete;
  ~Ring() {
    if (memory_ != nullptr) ::munmap(memory_, size_of_map(bytes_));
    if (file_ >= 0) ::close(file_);
  }
  int core() const { return core_; }
  bool watched() const { return bytes_ == kRingBytes; }

  // take(type, misc, body, body's size); a record lies in one piece.
  template <typename Take>
  void drain(Take take) {
    auto* page = reinterpret_cast<perf_event_mmap_page*>(memory_);
    const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    const char* data = memory_ + ::sysconf(_SC_PAGESIZE);
    uint64_t at = page->data_tail;
    alignas(8) char record[kMostRecord];
    while (at < head) {
      perf_event_header header{};
      copy(data, at, reinterpret_cast<char*>(&header), sizeof header);
      if (header.size < sizeof header || header.size > head - at) break;
      if (header.size <= kMostRecord) {
        copy(data, at, record, header.size);
        take(header.type, header.misc, record + sizeof header, header.size - sizeof header);
      }
      at += header.size;
    }
    __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
  }

  int32_t running_tid = -1, running_pid = 0;  // -1: not known
  int64_t since_ns = 0;
  int64_t last_ns = 0;  // of all records

 private:
  Ring(int file, int core, void* memory, size_t bytes)
      : file_(file), core_(core), bytes_(bytes), memory_(static_cast<char*>(memory)) {}
  static size_t size_of_map(size_t bytes) { return bytes + static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
  static constexpr size_t kMostRecord = 256;
  void copy(const char* data, uint64_t at, char* to, size_t size) const {
    const size_t begin = at % bytes_, first = std::min(size, bytes_ - begin);
    std::memcpy(to, data + begin, first);
    std::memcpy(to + first, data, size - first);
  }
  int file_, core_;
  size_t bytes_;
  char* memory_;
};

}  // namespace

struct CoreSwitches::State {
  explicit State(CoreRunLog to) : log(std::move(to)) {}
  CoreRunLog log;
  std::vector<Ring> rings;
  std::unordered_set<int32_t> named;
  int64_t from_ns = 0;
  bool is_full = false;

  void end_run(Ring& ring, int64_t end_ns, bool preempted) {
    if (ring.running_tid > 0 && end_ns >= ring.since_ns && !is_full)
      log.run({ring.since_ns, end_ns, ring.core(), ring.running_pid, ring.running_tid, preempted});
    ring.running_tid = -1;
  }

  // A thread that was there before has no record of its name.
  void name_thread(int32_t pid, int32_t tid) {
    if (tid <= 0 || !named.insert(tid).second) return;
    const std::string folder = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
    if (const auto name = read_text(folder + "/comm")) log.name(tid, name->c_str());
  }

  void take(Ring& ring, uint32_t type, uint16_t misc, const char* body, size_t size) {
    SampleId id{};
    if (size < sizeof id) return;
    std::memcpy(&id, body + size - sizeof id, sizeof id);
    // The kernel reads this clock without a lock, and then it may step back by some microseconds.
    const int64_t time = ring.last_ns = std::max(ring.last_ns, static_cast<int64_t>(id.time_ns));
    const auto number = [&](size_t at) {
      int32_t value = 0;
      if (at + 4 <= size) std::memcpy(&value, body + at, 4);
      return value;
    };
    switch (type) {
      case PERF_RECORD_SWITCH_CPU_WIDE:
        if ((misc & PERF_RECORD_MISC_SWITCH_OUT) != 0) {
          if (ring.running_tid < 0) {  // it ran when the recording began, or when records were lost
            ring.running_tid = static_cast<int32_t>(id.tid);
            ring.running_pid = static_cast<int32_t>(id.pid);
          }
          end_run(ring, time, (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0);
          ring.since_ns = time;
        } else {
          ring.running_tid = static_cast<int32_t>(id.tid);
          ring.running_pid = static_cast<int32_t>(id.pid);
          ring.since_ns = time;
          name_thread(ring.running_pid, ring.running_tid);
        }
        break;
      case PERF_RECORD_COMM: {  // pid, tid, name
        char name[16] = {};
        if (size > 8 + sizeof id) std::memcpy(name, body + 8, std::min(sizeof name - 1, size - 8 - sizeof id));
        log.name(number(4), name);
        named.insert(number(4));
        break;
      }
      case PERF_RECORD_FORK:  // pid, parent's pid, tid, parent's tid
        log.parent(number(8), number(12));
        named.erase(number(8));
        break;
      case PERF_RECORD_LOST: {  // id, how many
        uint64_t count = 0;
        if (size >= 16) std::memcpy(&count, body + 8, 8);
        if (ring.watched()) log.lost(count);
        ring.running_tid = -1;
        ring.since_ns = time;
        break;
      }
      default:
        break;
    }
  }

  void drain() {
    if (is_full) return;
    // Before the rings are read: what happens meanwhile may be in one and not yet in the other.
    const int64_t until_ns = now_ns();
    for (Ring& ring : rings)
      ring.drain(
          [&](uint32_t type, uint16_t misc, const char* body, size_t size) { take(ring, type, misc, body, size); });
    cover(until_ns);
  }

  // Whoever runs now has no record yet: what is known ends where it began.
  void cover(int64_t until_ns) {
    for (const Ring& ring : rings)
      if (ring.running_tid > 0) until_ns = std::min(until_ns, ring.since_ns);
    log.covered(from_ns, std::max(from_ns, until_ns));
    is_full = !log.flush() || log.bytes() > kMostBytes;
  }
};

CoreSwitches::CoreSwitches(std::unique_ptr<State> state) : state_(std::move(state)) {}
CoreSwitches::CoreSwitches(CoreSwitches&&) noexcept = default;
CoreSwitches::~CoreSwitches() = default;

Result<CoreSwitches> CoreSwitches::start(const std::vector<int>& cores, const std::filesystem::path& log) {
  STROBE_TRY(require_machine_wide_numbers());
  std::vector<Ring> rings;
  for (const int core : cores) {
    STROBE_ASSIGN(Ring ring, Ring::open(core, true));
    rings.push_back(std::move(ring));
  }
  const auto online = read_text("/sys/devices/system/cpu/online");
  for (const int core : cpu_list(online.value_or(""))) {
    if (std::find(cores.begin(), cores.end(), core) != cores.end()) continue;
    auto ring = Ring::open(core, false);
    if (!ring) break;  // names and makers are a help, not more
    rings.push_back(std::move(*ring));
  }
  STROBE_ASSIGN(CoreRunLog to, CoreRunLog::create(log));
  auto state = std::make_unique<State>(std::move(to));
  state->rings = std::move(rings);
  state->from_ns = now_ns();
  for (Ring& ring : state->rings) ring.since_ns = ring.last_ns = state->from_ns;
  return CoreSwitches(std::move(state));
}

void CoreSwitches::drain() {
  state_->drain();
}

void CoreSwitches::stop() {
  state_->drain();
  const int64_t now = now_ns();
  for (Ring& ring : state_->rings) state_->end_run(ring, std::max(now, ring.since_ns), false);
  if (!state_->is_full) state_->cover(now);
  state_->rings.clear();
}

}  // namespace strobe::collect
