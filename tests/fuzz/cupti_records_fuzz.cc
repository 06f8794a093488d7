// Links: strobe_gpu
// Bytes as a buffer of CUPTI's activity records: [length][record] pieces, as the library would step through them. What
// is at an address that a record holds is not looked at: the address is a place in the input itself. What is decoded is
// written as a block of a log and read back; the input is also read as such a block.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "gpu/decode.h"
#include "gpu/log_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::gpu;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  uint32_t texts = 0;
  ActivityDecoder decoder({[input](uint64_t address) {
                             const size_t at = address % (input.size() + 1);
                             return input.substr(at, std::min<size_t>(input.size() - at, 64));
                           },
                           [&texts](std::string_view) { return TextId{++texts}; }});
  // Aligned as the library's buffers are.
  std::vector<uint64_t> words(size / 8 + 1);
  std::memcpy(words.data(), data, size);
  const auto* begin = reinterpret_cast<const std::byte*>(words.data());
  size_t step = 0, at = 0, walked = 0;
  Record record;
  const bool whole = walk_records(
      {begin, size},
      [&](const std::byte*& next) {
        if (step >= size || step > 4096) return false;
        // The next record lies where the input says; it may say nonsense.
        next = begin + at;
        const auto ahead = static_cast<int8_t>(data[step++]);
        at += static_cast<size_t>(static_cast<int64_t>(ahead) * 8);
        return true;
      },
      [&](std::span<const std::byte> bytes) {
        if (bytes.data() < begin || bytes.size() < 8 || bytes.data() + bytes.size() > begin + size) std::abort();
        walked += bytes.size();
        (void)decoder.decode(bytes, record);
      });
  if (walked > size) std::abort();
  (void)whole;
  // Every kind on the whole input, too: a record of whatever length.
  (void)decoder.decode({begin, size}, record);
  size_t records = 0;
  (void)detail::read_records({data, size}, [&records](const Record&) { ++records; });
  if (records > size) std::abort();
  return 0;
}
