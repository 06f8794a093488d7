// Links: strobe_record
// Bytes as the files of a recording. The first byte says which file they are; the others are whole and small. Or as one
// block, or as the words of a ring, without files: what is packed must be understood again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32.h"
#include "record/clock.h"
#include "record/decode.h"
#include "record/encode.h"
#include "record/layout.h"
#include "record/names.h"
#include "record/spool_reader.h"

namespace {

using namespace strobe::record;
using strobe::crc32;

const std::filesystem::path& folder() {
  static const std::filesystem::path made = [] {
    const char* memory = "/dev/shm";
    std::string pattern = std::filesystem::is_directory(memory) ? memory : std::filesystem::temp_directory_path();
    pattern += "/strobe-spool-fuzz-XXXXXX";
    const std::filesystem::path path = ::mkdtemp(pattern.data());
    std::atexit([] { std::filesystem::remove_all(folder()); });
    return path;
  }();
  return made;
}

void put(const char* name, std::string_view bytes) {
  std::ofstream(folder() / name, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// A correct page that starts with the header.
template <typename Header>
std::string page_of(const Header& header) {
  std::string page(kHeaderBytes, '\0');
  std::memcpy(page.data(), static_cast<const void*>(&header), sizeof header);
  return page;
}

std::string spool_page() {
  SpoolHeader header{};
  std::memcpy(header.magic, kSpoolMagic, 8);
  header.version = kFormatVersion;
  header.header_bytes = kHeaderBytes;
  header.clock_is_counter = 1;
  header.first = {1000, 1000, 0, 0};
  header.second = {5000, 3000, 0, 0};
  return page_of(header);
}

// Blocks whose checksums are right, so that what is inside is reached: each is [kind] [codec] [length : 16] [payload].
std::string blocks_of(std::string_view bytes) {
  std::string out = spool_page();
  uint64_t position = 0;
  while (bytes.size() >= 4) {
    BlockHeader header{};
    header.magic = kBlockMagic;
    header.kind = static_cast<BlockKind>(bytes[0] & 7);
    header.codec = static_cast<Codec>(bytes[1] & 3);
    header.serial = static_cast<uint8_t>(bytes[1]) >> 4;
    const size_t length = std::min<size_t>(
        static_cast<uint8_t>(bytes[2]) | static_cast<size_t>(static_cast<uint8_t>(bytes[3])) << 8, bytes.size() - 4);
    header.stored_bytes = static_cast<uint32_t>(length);
    header.plain_bytes = static_cast<uint32_t>(header.codec == Codec::kPlain ? length : length * 7);
    header.from = position;
    header.to = position += 3;
    std::string block(reinterpret_cast<const char*>(&header), sizeof header);
    block += bytes.substr(4, length);
    header.crc = crc32(block.data() + 8, block.size() - 8);
    std::memcpy(block.data(), &header, sizeof header);
    block.resize((block.size() + 7) / 8 * 8);
    out += block;
    bytes.remove_prefix(4 + length);
  }
  return out;
}

// A ring with the bytes as its records.
std::string ring_of(std::string_view bytes) {
  constexpr uint64_t kWords = 512;
  RingHeader header{};
  std::memcpy(header.magic, kRingMagic, 8);
  header.version = kFormatVersion;
  header.header_bytes = kHeaderBytes;
  header.capacity_words = kWords;
  header.serial = 1;
  const uint64_t words = std::min<uint64_t>(bytes.size() / 8, kWords);
  header.tail = 100;
  header.head = 100 + words;
  std::string data(kWords * 8, '\0');
  for (uint64_t i = 0; i < words; ++i) std::memcpy(data.data() + (100 + i) % kWords * 8, bytes.data() + i * 8, 8);
  return page_of(header) + data;
}

// Events are readable, and ranges are balanced.
class Check {
 public:
  void operator()(const SpoolEvent& event) {
    volatile size_t sum = 0;
    for (const std::string_view text : {event.name, event.text, event.category, event.domain})
      for (const char c : text) sum = sum + static_cast<unsigned char>(c);
    if (event.type == SpoolEvent::Type::kRangeBegin) ++open_;
    if (event.type == SpoolEvent::Type::kRangeEnd && open_-- == 0) std::abort();
  }

 private:
  uint64_t open_ = 0;
};

std::map<std::string, uint64_t> decode(std::span<const uint8_t> block) {
  static const std::vector<std::string> names{"a", "b", "1:ab"};
  static const ClockMap clock(true, {{1000, 1000, 0, 0}, {5000, 3000, 0, 0}});
  std::map<std::string, uint64_t> faults;
  Decoder decoder(names, clock, faults);
  Check check;
  decoder.block(block, [&check](const SpoolEvent& event) { check(event); });
  return faults;
}

void pack_and_decode(std::string_view bytes) {
  std::vector<uint64_t> words(512);
  std::memcpy(words.data(), bytes.data(), std::min(bytes.size(), words.size() * 8));
  std::vector<uint8_t> block;
  const Encoded encoded = encode({words.data(), words.size() - 1}, 0, std::min<uint64_t>(bytes.size() / 8, 512), block);
  const auto faults = decode(block);
  if (faults.contains("unknown record") || faults.contains("unreadable record")) std::abort();
  if (encoded.records > 0 && block.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int what = data[0] % 7;
  if (what == 5) {
    decode({data + 1, size - 1});
    return 0;
  }
  if (what == 6) {
    pack_and_decode(bytes);
    return 0;
  }
  std::string names(kNamesMagic);
  // The last one is a category.
  for (const std::string_view name : {"a", "b", "1:ab"}) {
    const NameEntry entry{static_cast<uint32_t>(name.size()), crc32(name.data(), name.size())};
    names.append(reinterpret_cast<const char*>(&entry), sizeof entry).append(name);
  }
  put("1-a.spool", what == 0 ? std::string(bytes) : what == 1 ? blocks_of(bytes) : spool_page());
  put("1-a.1.ring", what == 2 ? ring_of(bytes) : what == 3 ? std::string(bytes) : std::string());
  put("1-a.names", what == 4 ? std::string(bytes) : names);
  Check check;
  const auto summary = read_spool(folder(), [&check](const SpoolThread&, const SpoolEvent& event) { check(event); });
  if (!summary) std::abort();
  return 0;
}
