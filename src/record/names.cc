#include "record/names.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "base/crc32.h"
#include "record/file_limit.h"

namespace strobe::record {
namespace {

// Space is set aside in such steps, so that a disk that fills up later still takes the names in use.
constexpr uint64_t kReserveBytes = 64 << 10;
constexpr uint32_t kMaxNameBytes = 1 << 20;

std::string entry_of(std::string_view text) {
  const NameEntry entry{static_cast<uint32_t>(text.size()), crc32(text.data(), text.size())};
  std::string bytes(sizeof entry, '\0');
  std::memcpy(bytes.data(), &entry, sizeof entry);
  return bytes.append(text);
}

}  // namespace

NameTable& NameTable::instance() {
  static auto* table = new NameTable;  // names may be made while static objects are destroyed
  return *table;
}

uint32_t NameTable::intern(std::string_view text) {
  text = text.substr(0, kMaxNameBytes);
  const std::lock_guard lock(mutex_);
  const auto found = ids_.find(text);
  if (found != ids_.end()) return found->second;
  const auto id = static_cast<uint32_t>(texts_.size());
  ids_.emplace(texts_.emplace_back(text), id);
  flush_locked();
  return id;
}

Result<void> NameTable::open_file(const std::filesystem::path& path) {
  const HoldFileLimitSignal hold;
  const std::lock_guard lock(mutex_);
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file_ < 0) return io_error_errno("cannot make " + path.string());
  written_ = 0;
  reserved_ = 0;
  bytes_ = kNamesMagic.size();
  if (::pwrite(file_, kNamesMagic.data(), kNamesMagic.size(), 0) != static_cast<ssize_t>(kNamesMagic.size()) ||
      !flush_locked()) {
    Error error = io_error_errno("cannot write " + path.string());
    ::close(file_);
    file_ = -1;
    ::unlink(path.c_str());
    return error;
  }
  return {};
}

bool NameTable::flush() {
  const std::lock_guard lock(mutex_);
  return flush_locked();
}

bool NameTable::flush_locked() {
  if (file_ < 0 || written_ == texts_.size()) return true;
  const HoldFileLimitSignal hold;
  for (; written_ < texts_.size(); ++written_) {
    const std::string entry = entry_of(texts_[written_]);
    if (bytes_ + entry.size() > reserved_) {
      const uint64_t wanted = bytes_ + entry.size() + kReserveBytes;
      if (::fallocate(file_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(wanted)) == 0) reserved_ = wanted;
    }
    // At a fixed place: a half-written entry is overwritten by the next try.
    if (::pwrite(file_, entry.data(), entry.size(), static_cast<off_t>(bytes_)) != static_cast<ssize_t>(entry.size()))
      return false;
    bytes_ += entry.size();
  }
  return true;
}

Result<void> NameTable::sync() {
  int file = -1;
  {
    // A descriptor of its own, since a fork or stop may close the other one.
    const std::lock_guard lock(mutex_);
    if (file_ < 0) return {};
    file = ::fcntl(file_, F_DUPFD_CLOEXEC, 0);
  }
  const bool synced = file >= 0 && ::fdatasync(file) == 0;
  Error error = io_error_errno("cannot sync the file of names");
  if (file >= 0) ::close(file);
  if (!synced) return error;
  return {};
}

uint64_t NameTable::close_file() {
  const std::lock_guard lock(mutex_);
  if (file_ >= 0) {
    // Gives back what was set aside and not used.
    [[maybe_unused]] const int ignored = ::ftruncate(file_, static_cast<off_t>(bytes_));
    ::close(file_);
  }
  file_ = -1;
  return bytes_;
}

void NameTable::after_fork(bool child) {
  if (child && file_ >= 0) {
    ::close(file_);
    file_ = -1;
  }
  mutex_.unlock();
}

std::string category_text(std::string_view name, std::string_view domain) {
  // Shorter than a name may be, so that its end is never cut off.
  domain = domain.substr(0, kMaxNameBytes / 4);
  return std::to_string(domain.size()) + ":" + std::string(domain) + std::string(name.substr(0, kMaxNameBytes / 2));
}

std::optional<CategoryText> parse_category(std::string_view text) {
  size_t bytes = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (code != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty() || text[0] != ':' || bytes > text.size() - 1) return std::nullopt;
  return CategoryText{text.substr(1 + bytes), text.substr(1, bytes)};
}

std::vector<std::string> parse_names(std::string_view file, uint64_t& damaged) {
  std::vector<std::string> names;
  if (!file.starts_with(kNamesMagic)) {
    ++damaged;
    return names;
  }
  file.remove_prefix(kNamesMagic.size());
  while (file.size() >= sizeof(NameEntry)) {
    NameEntry entry{};
    std::memcpy(&entry, file.data(), sizeof entry);
    file.remove_prefix(sizeof entry);
    if (entry.bytes > file.size()) break;
    const std::string_view text = file.substr(0, entry.bytes);
    const bool whole = crc32(text.data(), text.size()) == entry.crc;
    if (!whole) ++damaged;
    names.emplace_back(whole ? text : "(damaged name)");
    file.remove_prefix(entry.bytes);
  }
  return names;
}

}  // namespace strobe::record
