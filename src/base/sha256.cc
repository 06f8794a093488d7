#include "base/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace strobe {

namespace {

using Word = uint32_t;

// The first 32 bits of the fractional parts of the square roots of the first 8 primes, and of the cube roots of the
// first 64. A long double has enough digits for both.
struct Constants {
  std::array<Word, 8> start{};
  std::array<Word, 64> round{};
  Constants() {
    size_t found = 0;
    for (int candidate = 2; found < round.size(); ++candidate) {
      bool prime = true;
      for (int divisor = 2; divisor * divisor <= candidate && prime; ++divisor) prime = candidate % divisor != 0;
      if (!prime) continue;
      if (found < start.size()) start[found] = fraction(std::sqrt(static_cast<long double>(candidate)));
      round[found++] = fraction(std::cbrt(static_cast<long double>(candidate)));
    }
  }
  static Word fraction(long double root) { return static_cast<Word>((root - std::floor(root)) * 0x1p32L); }
};

void mix(std::array<Word, 8>& state, const unsigned char* block, const Constants& constants) {
  std::array<Word, 64> schedule;
  for (size_t i = 0; i < 16; ++i) {
    Word word;
    std::memcpy(&word, block + 4 * i, 4);
    schedule[i] = std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
  }
  for (size_t i = 16; i < 64; ++i) {
    const Word a = schedule[i - 15], b = schedule[i - 2];
    schedule[i] = schedule[i - 16] + schedule[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) +
                  (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const Word first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                       constants.round[i] + schedule[i];
    const Word second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
  }
  const std::array<Word, 8> more = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += more[i];
}

}  // namespace

std::string sha256(std::string_view bytes) {
  static const Constants constants;
  std::array<Word, 8> state = constants.start;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 64; left -= 64, data += 64) mix(state, data, constants);
  // The last bytes, a set bit, zeros, and the length in bits.
  std::array<unsigned char, 128> tail{};
  if (left > 0) std::memcpy(tail.data(), data, left);
  tail[left] = 0x80;
  const size_t tail_size = left < 56 ? 64 : 128;
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (size_t i = 0; i < 8; ++i) tail[tail_size - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (size_t i = 0; i < tail_size; i += 64) mix(state, tail.data() + i, constants);

  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const Word word : state)
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
  return text;
}

}  // namespace strobe
