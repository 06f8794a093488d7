#include "inject/start.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "inject/range_stack.h"
#include "record/high_file_numbers.h"
#include "strobe/record/annotate.h"

namespace strobe::inject {

std::atomic<bool> paused{false};

namespace {

// Never destroyed: the program may call while it ends.
std::mutex& tables() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

void report_failure(const char* folder, const std::string& reason) {
  const std::string path = std::string(folder) + "/" + std::to_string(::getpid()) + ".failed";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t ignored = ::write(file, reason.data(), reason.size());
  ::close(file);
}

bool start_once() {
  const char* folder = std::getenv(kFolderVariable);
  if (folder == nullptr || folder[0] == 0) return false;
  record::Options options;
  options.folder = folder;
  if (const char* bytes = std::getenv(kRingVariable)) options.ring_bytes = std::strtoull(bytes, nullptr, 10);
  if (const char* block = std::getenv(kBlockVariable)) options.block_when_full = std::strcmp(block, "1") == 0;
  const record::HighFileNumbers high;
  const auto started = record::start(options);
  if (!started) {
    report_failure(folder, started.error().to_string());
    return false;
  }
  // After the recorder's own handlers, so that its locks are taken after ours, as they are everywhere else.
  ::pthread_atfork([] { tables().lock(); }, [] { tables().unlock(); },
                   [] {
                     tables().unlock();
                     forget_recorded();
                   });
  return true;
}

}  // namespace

bool start_recording() {
  static const bool started = start_once();
  return started;
}

void set_paused(bool pause) {
  if (paused.load() == pause) return;
  static const record::Name kPause("collection paused");
  static const record::Name kResume("collection resumed");
  record::mark(pause ? kPause : kResume);
  paused.store(pause);
}

std::unique_lock<std::mutex> lock_tables() {
  return std::unique_lock(tables());
}

std::string narrow(const wchar_t* text) {
  std::string utf8;
  for (; text != nullptr && *text != 0; ++text) {
    const auto code = static_cast<uint32_t>(*text);
    const auto put = [&utf8](uint32_t byte) { utf8.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
    } else if (code < 0x110000) {
      put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)),
          put(0x80 | (code & 0x3F));
    }
  }
  return utf8;
}

}  // namespace strobe::inject
