#include "gpu/log_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/crc32.h"
#include "record/varint.h"
#include "record/zstd_codec.h"

namespace strobe::gpu {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'S', 'T', 'R', 'O', 'B', 'E', 'G', '1'};
constexpr uint32_t kBlockMagic = 0x42555047;  // "GPUB"
constexpr size_t kFullBlock = 256 << 10;
constexpr uint32_t kLargestBlock = 16 << 20;
constexpr size_t kMaxTexts = 1 << 20;

struct FileHeader {
  char magic[8];
  int32_t pid;
  uint32_t reserved;
};
struct BlockHeader {
  uint32_t magic, stored, plain, crc;
};

class FieldWriter {
 public:
  FieldWriter(std::vector<uint8_t>& out, uint64_t& last_time) : out_(out), last_time_(last_time) {}
  void operator()(uint32_t value) { put(value); }
  void operator()(uint64_t value) { put(value); }
  void operator()(int32_t value) { put(record::zigzag(value)); }
  void operator()(int64_t value) { put(record::zigzag(value)); }
  void operator()(TextId value) { put(value.id); }
  void operator()(CuptiTime value) {
    if (value.ns == 0) return put(0);  // not measured; a difference of d is d in zigzag, plus one
    put(record::zigzag(static_cast<int64_t>(value.ns - last_time_)) + 1);
    last_time_ = value.ns;
  }
  void operator()(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&bits);
    out_.insert(out_.end(), bytes, bytes + sizeof bits);
  }
  void operator()(const std::string& text) {
    put(text.size());
    out_.insert(out_.end(), text.begin(), text.end());
  }

 private:
  void put(uint64_t value) {
    uint8_t bytes[record::kMaxVarintBytes];
    out_.insert(out_.end(), bytes, record::put_varint(bytes, value));
  }
  std::vector<uint8_t>& out_;
  uint64_t& last_time_;
};

// Fields that the record does not have any more stay as they are.
class FieldReader {
 public:
  FieldReader(std::span<const uint8_t> bytes, uint64_t& last_time)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), last_time_(last_time) {}
  bool good() const { return good_; }
  uint64_t number() {
    uint64_t value = 0;
    if (at_ == end_) return 0;
    const uint8_t* next = record::get_varint(at_, end_, value);
    good_ = good_ && next != nullptr;
    at_ = next == nullptr ? end_ : next;
    return value;
  }
  void operator()(uint32_t& value) {
    if (at_ != end_) value = static_cast<uint32_t>(number());
  }
  void operator()(uint64_t& value) {
    if (at_ != end_) value = number();
  }
  void operator()(int32_t& value) {
    if (at_ != end_) value = static_cast<int32_t>(record::unzigzag(number()));
  }
  void operator()(int64_t& value) {
    if (at_ != end_) value = record::unzigzag(number());
  }
  void operator()(TextId& value) { (*this)(value.id); }
  void operator()(CuptiTime& value) {
    const uint64_t coded = number();
    value.ns = coded == 0 ? 0 : last_time_ + static_cast<uint64_t>(record::unzigzag(coded - 1));
    if (coded != 0) last_time_ = value.ns;
  }
  void operator()(double& value) {
    if (at_ == end_) return;
    uint64_t bits = 0;
    if (static_cast<size_t>(end_ - at_) < sizeof bits) {
      good_ = false;
      at_ = end_;
      return;
    }
    std::memcpy(&bits, at_, sizeof bits);
    at_ += sizeof bits;
    value = std::bit_cast<double>(bits);
  }
  void operator()(std::string& text) {
    const uint64_t size = number();
    if (size > static_cast<size_t>(end_ - at_)) {
      good_ = false;
      at_ = end_;
      return;
    }
    text.assign(reinterpret_cast<const char*>(at_), size);
    at_ += size;
  }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
  uint64_t& last_time_;
  bool good_ = true;
};

template <size_t... Index>
bool make_kind(uint64_t kind, Record& record, std::index_sequence<Index...>) {
  return ((kind == Index && (record.emplace<Index>(), true)) || ...);
}

bool write_all(int file, const uint8_t* data, size_t size) {
  while (size > 0) {
    const ssize_t done = ::write(file, data, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    data += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<LogWriter>> LogWriter::create(const fs::path& folder) {
  const int32_t pid = ::getpid();
  for (int number = 0; number < 1000; ++number) {
    fs::path path = folder / (std::to_string(pid) + "-" + std::to_string(number) + ".gpu");
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return io_error_errno(path.string());
    std::unique_ptr<LogWriter> writer(new LogWriter(path, file));
    FileHeader header{{}, pid, 0};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    if (!write_all(file, reinterpret_cast<const uint8_t*>(&header), sizeof header))
      return io_error_errno(path.string());
    writer->size_ = sizeof header;
    return writer;
  }
  return io_error(folder.string() + ": too many GPU logs of one process");
}

LogWriter::~LogWriter() {
  flush();
  if (file_ >= 0) ::close(file_);
}

void LogWriter::add(const Record& record) {
  one_.clear();
  FieldWriter writer(one_, last_time_);
  writer(static_cast<uint32_t>(record.index()));
  // Records list their fields for readers and writers alike; a writer does not change them.
  std::visit([&writer](const auto& one) { const_cast<std::remove_cvref_t<decltype(one)>&>(one).fields(writer); },
             record);
  uint8_t bytes[record::kMaxVarintBytes];
  plain_.insert(plain_.end(), bytes, record::put_varint(bytes, one_.size()));
  plain_.insert(plain_.end(), one_.begin(), one_.end());
  ++in_block_;
  if (plain_.size() >= kFullBlock) flush();
}

TextId LogWriter::intern(std::string_view text) {
  if (text.empty()) return {};
  if (const auto found = texts_.find(text); found != texts_.end()) return {found->second};
  if (texts_.size() >= kMaxTexts) return intern("(too many names)");
  const auto id = static_cast<uint32_t>(texts_.size() + 1);
  texts_.emplace(text, id);
  add(TextDefinition{id, std::string(text)});
  return {id};
}

bool LogWriter::flush() {
  if (plain_.empty()) return true;
  stored_.assign(sizeof(BlockHeader), 0);
  if (!record::zstd_compress(plain_, stored_) || stored_.size() - sizeof(BlockHeader) >= plain_.size()) {
    stored_.resize(sizeof(BlockHeader));
    stored_.insert(stored_.end(), plain_.begin(), plain_.end());
  }
  const size_t payload = stored_.size() - sizeof(BlockHeader);
  const BlockHeader header{kBlockMagic, static_cast<uint32_t>(payload), static_cast<uint32_t>(plain_.size()),
                           crc32(stored_.data() + sizeof(BlockHeader), payload)};
  std::memcpy(stored_.data(), &header, sizeof header);
  const bool written = file_ >= 0 && write_all(file_, stored_.data(), stored_.size());
  if (written) {
    size_ += static_cast<int64_t>(stored_.size());
  } else {
    lost_ += in_block_;
    // The file ends with its last whole block; texts that were lost are defined again when they come again.
    if (file_ >= 0 && ::ftruncate(file_, size_) == 0) ::lseek(file_, size_, SEEK_SET);
    texts_.clear();
  }
  plain_.clear();
  last_time_ = 0;
  in_block_ = 0;
  return written;
}

void LogWriter::abandon() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
  plain_.clear();
}

bool detail::read_records(std::span<const uint8_t> plain, const std::function<void(const Record&)>& each) {
  const uint8_t* at = plain.data();
  const uint8_t* const end = at + plain.size();
  uint64_t last_time = 0;
  Record record;
  while (at < end) {
    uint64_t size = 0;
    at = record::get_varint(at, end, size);
    if (at == nullptr || size > static_cast<size_t>(end - at)) return false;
    FieldReader reader({at, static_cast<size_t>(size)}, last_time);
    at += size;
    const uint64_t kind = reader.number();
    if (!make_kind(kind, record, std::make_index_sequence<std::variant_size_v<Record>>())) continue;
    std::visit([&reader](auto& one) { one.fields(reader); }, record);
    if (!reader.good()) return false;
    each(record);
  }
  return true;
}

Result<GpuLog> read_log(const fs::path& path, const std::function<void(const Record&)>& each) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error_errno(path.string());
  const auto read = [&file](void* into, size_t size) {
    file.read(static_cast<char*>(into), static_cast<std::streamsize>(size));
    return static_cast<size_t>(file.gcount()) == size;
  };
  FileHeader header{};
  if (!read(&header, sizeof header) || std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    return bad_data(path.string() + ": is no log of GPU activity");
  GpuLog log{header.pid, {}};
  std::vector<uint8_t> stored, plain;
  for (BlockHeader block{}; read(&block, sizeof block);) {
    if (block.magic != kBlockMagic || block.plain > kLargestBlock || block.stored > block.plain) {
      ++log.faults["damaged block in a GPU log"];
      return log;
    }
    stored.resize(block.stored);
    if (!read(stored.data(), stored.size())) break;  // cut short: the process was killed while it wrote
    bool whole = crc32(stored.data(), stored.size()) == block.crc;
    if (whole && block.stored < block.plain) {
      plain.resize(block.plain);
      whole = record::zstd_decompress(stored, plain);
    } else if (whole) {
      plain.swap(stored);
    }
    if (!whole || !detail::read_records(plain, each)) ++log.faults["damaged block in a GPU log"];
  }
  return log;
}

std::vector<fs::path> log_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    if (it->path().extension() == ".gpu") files.push_back(it->path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace strobe::gpu
