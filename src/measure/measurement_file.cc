#include "measure/measurement_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/file.h"

namespace strobe::measure {

namespace {

// First the columns of the public TX2 logs, in their order.
constexpr const char* kHeader =
    "net,level,bs,quantity,value,unit,passed,stage,engine,device,threads,median,p5,p95,half_width,repetitions,warmup,"
    "stationary,disturbed,attempts,others_share,stolen_share,wait_share,involuntary_switches,"
    "gpu_others_share,gpu_throttled_share,gpu_clock_mhz,gpu_clock_spread,before,peak,allocated,"
    "memory_limit,seconds,error";
enum Field : size_t { kNet, kLevel, kBatch, kQuantity, kPassed = 6, kStage, kEngine, kDevice, kThreads };
constexpr size_t kSeconds = 32, kFields = 34;
// Files of before lack these columns, whose fields are empty in rows of the CPU.
constexpr std::string_view kAdded = "gpu_others_share,gpu_throttled_share,gpu_clock_mhz,gpu_clock_spread,";
constexpr size_t kAddedAt = 24, kAddedFields = 4;

// Never in a field: a quote, which CSV would have to quote, and what no line shows.
bool not_plain(char c) {
  return c == '"' || static_cast<unsigned char>(c) < ' ';
}

// A field without the characters that CSV would have to quote, so that a line is a row.
std::string plain(std::string text) {
  for (char& c : text) {
    if (c == ',') c = ';';
    if (not_plain(c)) c = c == '"' ? '\'' : ' ';
  }
  return text;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(',', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return fields;
}

std::string older_header() {
  std::string header = kHeader;
  return header.erase(header.find(kAdded), kAdded.size());
}

// A line of a file of before with the fields that it lacks. Errors: kBadData.
Result<std::string> with_added(std::string_view line) {
  const auto fields = fields_of(line);
  constexpr size_t kBefore = kFields - kAddedFields;
  if (fields.size() != kBefore) return bad_data(fmt::format("{} fields, expected {}", fields.size(), kBefore));
  std::string whole(line);
  return whole.insert(static_cast<size_t>(fields[kAddedAt].data() - line.data()), kAddedFields, ',');
}

// What differs first between the columns of a file and ours.
std::string difference(std::string_view header) {
  const auto theirs = fields_of(header), ours = fields_of(kHeader);
  for (size_t i = 0; i < ours.size(); ++i) {
    if (i >= theirs.size()) return fmt::format("it has no column '{}'", ours[i]);
    if (theirs[i] != ours[i]) return fmt::format("column {} is '{}', expected '{}'", i + 1, theirs[i], ours[i]);
  }
  return fmt::format("column {} is '{}', expected no more", ours.size() + 1, theirs[ours.size()]);
}

template <typename T>
bool read_number(std::string_view text, T& into) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), into);
  return fault == std::errc() && end == text.data() + text.size();
}

template <typename T>
bool read_word(std::string_view text, std::initializer_list<T> choices, T& into) {
  for (const T choice : choices) {
    if (to_string(choice) != text) continue;
    into = choice;
    return true;
  }
  return false;
}

// With the comma behind it; empty below 0, for what is not told.
std::string told(double value, int digits) {
  return value < 0 ? "," : fmt::format("{:.{}f},", value, digits);
}

}  // namespace

std::string measurement_header() {
  return kHeader;
}

std::string measurement_line(const MeasurementRow& row) {
  const MeasurementKey& key = row.key;
  const bool memory = key.quantity == Quantity::kMemory;
  std::string line = fmt::format("{},{},{},{},", plain(key.net), key.level, key.batch, to_string(key.quantity));
  line += row.passed ? fmt::format("{:.6f}", row.mean) : "";
  line += fmt::format(",{},{},{},{},{},{},", memory ? "MiB" : "ms", row.passed ? 1 : 0, to_string(key.stage),
                      plain(key.engine), plain(key.device), key.threads);
  if (row.passed) {
    line += fmt::format("{:.6f},{:.6f},{:.6f},{:.6f},{},{},{},{},{},", row.median, row.p5, row.p95, row.half_width,
                        row.repetitions, row.warmup, row.stationary ? 1 : 0, row.disturbed ? 1 : 0, row.attempts);
  } else {
    line += ",,,,,,,,,";
  }
  if (row.passed && !memory) {
    line += fmt::format("{:.4f},{:.4f},{:.4f},{},", row.others_share, row.stolen_share, row.wait_share,
                        row.involuntary_switches);
    line += told(row.gpu_others_share, 4) + told(row.gpu_throttled_share, 4) + told(row.gpu_clock_mhz, 0) +
            told(row.gpu_clock_spread, 4);
  } else {
    line += ",,,,,,,,";
  }
  if (row.passed && memory) {
    line += told(row.before_mib, 3) + told(row.peak_mib, 3) + told(row.allocated_mib, 3);
  } else {
    line += ",,,";
  }
  return line + told(row.limit_mib, 0) + fmt::format("{:.3f},{}", row.seconds, plain(row.error));
}

Result<MeasurementRow> parse_measurement_line(std::string_view line) {
  if (const auto at = std::find_if(line.begin(), line.end(), not_plain); at != line.end())
    return bad_data(fmt::format("byte {:#04x} at column {}: such a line has no quotes and no control characters",
                                static_cast<unsigned char>(*at), at - line.begin() + 1));
  const auto fields = fields_of(line);
  if (fields.size() != kFields) return bad_data(fmt::format("{} fields, expected {}", fields.size(), kFields));
  const auto wrong = [&](const char* column, size_t field, const char* expected) {
    return bad_data(fmt::format("{} '{}': expected {}", column, fields[field], expected));
  };
  MeasurementRow row;
  row.key.net = fields[kNet];
  row.key.engine = fields[kEngine];
  row.key.device = fields[kDevice];
  row.error = fields.back();
  int passed = 0;
  if (row.key.net.empty()) return bad_data("net is empty");
  if (!read_number(fields[kLevel], row.key.level)) return wrong("level", kLevel, "a whole number");
  if (!read_number(fields[kBatch], row.key.batch)) return wrong("bs", kBatch, "a whole number");
  if (!read_word(fields[kQuantity], {Quantity::kMemory, Quantity::kLatency}, row.key.quantity))
    return wrong("quantity", kQuantity, "memory or latency");
  if (!read_word(fields[kStage], {Stage::kTraining, Stage::kInference}, row.key.stage))
    return wrong("stage", kStage, "training or inference");
  if (!read_number(fields[kPassed], passed) || passed < 0 || passed > 1) return wrong("passed", kPassed, "0 or 1");
  if (!read_number(fields[kThreads], row.key.threads)) return wrong("threads", kThreads, "a whole number");
  if (!read_number(fields[kSeconds], row.seconds) || !std::isfinite(row.seconds))
    return wrong("seconds", kSeconds, "a number");
  row.passed = passed == 1;
  return row;
}

Result<MeasurementFile> MeasurementFile::open(const std::filesystem::path& path) {
  MeasurementFile file;
  file.path_ = path;
  const std::string begin = measurement_header() + "\n", older = older_header() + "\n";
  auto read = read_file(path);
  if (!read && read.error().kind() != ErrorKind::kNotFound) return std::move(read).error();
  const std::string text = read ? *read : "";
  const size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (whole == 0 && !begin.starts_with(text) && !older.starts_with(text))
    return bad_data("is no file of measurements: its first line has no end").at(path.string());
  std::string all = begin;
  if (whole == 0) {
    file.text_ = std::move(all);
    return file;
  }
  const bool is_older = text.starts_with(older);
  if (!is_older && !text.starts_with(begin))
    return bad_data(fmt::format("has other columns than this version of strobe writes ({}); give another folder",
                                difference(std::string_view(text).substr(0, text.find('\n')))))
        .at(path.string());
  size_t number = 1;
  for (size_t at = text.find('\n') + 1; at < whole;) {
    const size_t end = text.find('\n', at);
    ++number;
    const std::string_view there = std::string_view(text).substr(at, end - at);
    Result<std::string> line = is_older ? with_added(there) : Result<std::string>(std::string(there));
    if (!line) return std::move(line).error().at(fmt::format("{}: line {}", path.string(), number));
    auto row = parse_measurement_line(*line);
    if (!row) return std::move(row).error().at(fmt::format("{}: line {}", path.string(), number));
    file.rows_.push_back(std::move(*row));
    all += *line + "\n";
    at = end + 1;
  }
  if (all != text) file.text_ = std::move(all);
  return file;
}

// As a whole, so that what ends this leaves either the old file or the new one.
Result<void> MeasurementFile::begin() {
  if (text_) STROBE_TRY(write_file(path_, *text_));
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) return io_error_errno(path_.string());
  text_.reset();
  return {};
}

MeasurementFile::MeasurementFile(MeasurementFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      text_(std::move(other.text_)),
      path_(std::move(other.path_)),
      rows_(std::move(other.rows_)) {}

MeasurementFile::~MeasurementFile() {
  if (fd_ >= 0) ::close(fd_);
}

const MeasurementRow* MeasurementFile::find(const MeasurementKey& key) const {
  const auto found =
      std::find_if(rows_.begin(), rows_.end(), [&](const MeasurementRow& row) { return row.key == key; });
  return found == rows_.end() ? nullptr : &*found;
}

Result<void> MeasurementFile::append(const MeasurementRow& row) {
  if (fd_ < 0) STROBE_TRY(begin());
  const std::string line = measurement_line(row) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t count = ::write(fd_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return io_error_errno(path_.string());
    rest.remove_prefix(static_cast<size_t>(count));
  }
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) return io_error_errno(path_.string());
  rows_.push_back(row);
  return {};
}

}  // namespace strobe::measure
