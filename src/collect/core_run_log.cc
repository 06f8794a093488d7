#include "collect/core_run_log.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace strobe::collect {

namespace {

constexpr char kHead[] = "STRBCOR1";
constexpr size_t kHeadSize = 8;

enum class Kind : uint8_t { kRun = 1, kName = 2, kParent = 3, kLost = 4, kCovered = 5 };

struct Numbers {
  int64_t first, second;
};

struct Record {
  Kind kind;
  uint8_t preempted = 0;
  int16_t core = 0;
  int32_t pid = 0, tid = 0, parent = 0;
  union {
    Numbers number;
    char name[16];
  };
  explicit Record(Kind what) : kind(what), number{0, 0} {}
};
static_assert(sizeof(Record) == 32);

// Programs name their threads as they like; tables and JSON want plain text.
std::string plain(const char* name, size_t most) {
  std::string text(name, ::strnlen(name, most));
  for (char& byte : text)
    if (byte < ' ' || byte > '~') byte = '?';
  return text;
}

}  // namespace

Result<CoreRunLog> CoreRunLog::create(const std::filesystem::path& path) {
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return io_error_errno("creating " + path.string());
  CoreRunLog log(file);
  std::fwrite(kHead, 1, kHeadSize, file);
  log.bytes_ = kHeadSize;
  if (!log.flush()) return io_error_errno("writing " + path.string());
  return log;
}

CoreRunLog::CoreRunLog(CoreRunLog&& other) noexcept
    : file_(std::exchange(other.file_, nullptr)), bytes_(other.bytes_) {}

CoreRunLog::~CoreRunLog() {
  if (file_ != nullptr) std::fclose(file_);
}

void CoreRunLog::put(const void* record) {
  std::fwrite(record, 1, sizeof(Record), file_);
  bytes_ += sizeof(Record);
}

void CoreRunLog::run(const CoreRun& run) {
  Record record(Kind::kRun);
  record.preempted = run.preempted ? 1 : 0;
  record.core = static_cast<int16_t>(run.core);
  record.pid = run.pid;
  record.tid = run.tid;
  record.number = {run.start_ns, run.end_ns};
  put(&record);
}

void CoreRunLog::name(int32_t tid, const char* name) {
  Record record(Kind::kName);
  record.tid = tid;
  std::strncpy(record.name, name, sizeof record.name - 1);
  put(&record);
}

void CoreRunLog::parent(int32_t tid, int32_t parent) {
  Record record(Kind::kParent);
  record.tid = tid;
  record.parent = parent;
  put(&record);
}

void CoreRunLog::lost(uint64_t count) {
  Record record(Kind::kLost);
  record.number.first = static_cast<int64_t>(count);
  put(&record);
}

void CoreRunLog::covered(int64_t from_ns, int64_t to_ns) {
  Record record(Kind::kCovered);
  record.number = {from_ns, to_ns};
  put(&record);
}

bool CoreRunLog::flush() {
  return std::fflush(file_) == 0 && std::ferror(file_) == 0;
}

Result<CoreRuns> parse_core_runs(const std::string& bytes) {
  if (bytes.compare(0, kHeadSize, kHead) != 0)
    return bad_data("not a log of core runs: it does not begin with STRBCOR1");
  CoreRuns found;
  for (size_t at = kHeadSize; at + sizeof(Record) <= bytes.size(); at += sizeof(Record)) {
    Record record(Kind::kRun);
    std::memcpy(static_cast<void*>(&record), bytes.data() + at, sizeof record);
    const auto wrong = [at](const char* what) {
      return bad_data("log of core runs, byte " + std::to_string(at) + ": " + what);
    };
    switch (record.kind) {
      case Kind::kRun:
        if (record.core < 0 || record.number.first < 0 || record.number.second < record.number.first)
          return wrong("a run has a core of at least 0 and ends after its start");
        found.runs.push_back(
            {record.number.first, record.number.second, record.core, record.pid, record.tid, record.preempted != 0});
        break;
      case Kind::kName:
        found.names[record.tid] = plain(record.name, sizeof record.name);
        break;
      case Kind::kParent:
        found.parents[record.tid] = record.parent;
        break;
      case Kind::kLost:
        if (record.number.first < 0) return wrong("a number of lost switches is at least 0");
        if (__builtin_add_overflow(found.lost, static_cast<uint64_t>(record.number.first), &found.lost))
          return wrong("more lost switches than can be counted");
        break;
      case Kind::kCovered:
        if (record.number.first < 0 || record.number.second < record.number.first)
          return wrong("what is covered ends after its start");
        found.from_ns = record.number.first;
        found.to_ns = record.number.second;
        break;
      default:
        return wrong("expected a kind of record from 1 to 5");
    }
  }
  std::stable_sort(found.runs.begin(), found.runs.end(), [](const CoreRun& a, const CoreRun& b) {
    return a.core != b.core ? a.core < b.core : a.start_ns < b.start_ns;
  });
  return found;
}

Result<CoreRuns> read_core_runs(const std::filesystem::path& path) {
  STROBE_ASSIGN(const std::string bytes, read_file(path));
  auto runs = parse_core_runs(bytes);
  if (!runs) return std::move(runs.error().at(path.string()));
  return runs;
}

}  // namespace strobe::collect
