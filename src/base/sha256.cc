#include "base/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

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

void mix_all(std::array<Word, 8>& state, const unsigned char* blocks, size_t count, const Constants& constants) {
  for (size_t i = 0; i < count; ++i) mix(state, blocks + 64 * i, constants);
}

#if defined(__x86_64__)
// The processor's own rounds, four words of the schedule at a time. Its registers hold a b e f and c d g h.
__attribute__((target("sha,sse4.1"))) void mix_by_instructions(std::array<Word, 8>& state, const unsigned char* blocks,
                                                               size_t count, const Constants& constants) {
  const auto load = [](const void* at) __attribute__((target("sha,sse4.1"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  };
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const __m128i cdab = _mm_shuffle_epi32(load(state.data()), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(load(state.data() + 4), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (; count > 0; --count, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i words[4];
    for (size_t i = 0; i < 16; ++i) {
      __m128i& now = words[i % 4];
      if (i < 4) {
        now = _mm_shuffle_epi8(load(blocks + 16 * i), big_endian);
      } else {
        const __m128i last = words[(i + 3) % 4];
        const __m128i sum =
            _mm_add_epi32(_mm_sha256msg1_epu32(now, words[(i + 1) % 4]), _mm_alignr_epi8(last, words[(i + 2) % 4], 4));
        now = _mm_sha256msg2_epu32(sum, last);
      }
      const __m128i added = _mm_add_epi32(now, load(constants.round.data() + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B), dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSha = 1U << 29;
  return __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0;
}
#endif

using Mix = void (*)(std::array<Word, 8>&, const unsigned char*, size_t, const Constants&);

std::string digest(std::string_view bytes, Mix mix_blocks) {
  static const Constants constants;
  std::array<Word, 8> state = constants.start;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const size_t whole = bytes.size() / 64, left = bytes.size() % 64;
  mix_blocks(state, data, whole, constants);
  // The last bytes, a set bit, zeros, and the length in bits.
  std::array<unsigned char, 128> tail{};
  if (left > 0) std::memcpy(tail.data(), data + 64 * whole, left);
  tail[left] = 0x80;
  const size_t tail_size = left < 56 ? 64 : 128;
  const uint64_t bits = uint64_t{bytes.size()} * 8;
  for (size_t i = 0; i < 8; ++i) tail[tail_size - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  mix_blocks(state, tail.data(), tail_size / 64, constants);

  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const Word word : state)
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
  return text;
}

}  // namespace

std::string sha256(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool fast = has_instructions();
  if (fast) return digest(bytes, mix_by_instructions);
#endif
  return digest(bytes, mix_all);
}

namespace detail {
std::string sha256_by_words(std::string_view bytes) {
  return digest(bytes, mix_all);
}
}  // namespace detail

}  // namespace strobe
