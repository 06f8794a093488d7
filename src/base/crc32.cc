#include "base/crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace strobe {
namespace {

constexpr uint32_t kPolynomial = 0xEDB88320U;  // 0x04C11DB7, bits reversed

// A polynomial over GF(2) of degree below 32, reflected: the top bit is the coefficient of x^0.
constexpr uint32_t times_x(uint32_t a) {
  return a >> 1 ^ ((a & 1) != 0 ? kPolynomial : 0);
}
constexpr uint32_t times(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 1U << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = times_x(b);
  }
  return product;
}

// table[k][b]: the CRC of byte b followed by k zero bytes, so that eight bytes are taken at once.
constexpr auto make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t previous = tables[k - 1][byte];
      tables[k][byte] = previous >> 8 ^ tables[0][previous & 0xFF];
    }
  }
  return tables;
}
constexpr auto kTables = make_tables();

// x^(2^k) modulo the polynomial.
constexpr auto make_squares() {
  std::array<uint32_t, 67> squares{};
  squares[0] = 1U << 30;
  for (size_t k = 1; k < squares.size(); ++k) squares[k] = times(squares[k - 1], squares[k - 1]);
  return squares;
}
constexpr auto kSquares = make_squares();

// Takes and gives the register itself, not its complement.
uint32_t advance(const unsigned char* at, size_t bytes, uint32_t crc) {
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint32_t low = 0;
    uint32_t high = 0;
    std::memcpy(&low, at, 4);
    std::memcpy(&high, at + 4, 4);
    low ^= crc;
    crc = kTables[7][low & 0xFF] ^ kTables[6][low >> 8 & 0xFF] ^ kTables[5][low >> 16 & 0xFF] ^ kTables[4][low >> 24] ^
          kTables[3][high & 0xFF] ^ kTables[2][high >> 8 & 0xFF] ^ kTables[1][high >> 16 & 0xFF] ^
          kTables[0][high >> 24];
  }
  for (; bytes > 0; ++at, --bytes) crc = crc >> 8 ^ kTables[0][(crc ^ *at) & 0xFF];
  return crc;
}

#if defined(__x86_64__)

// Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009): 16 bytes are
// replaced by a congruent 16 bytes that lie `distance` bits further on. The upper half of the pair (the later bytes)
// needs x^(distance-32), the lower one x^(distance+32); both are shifted, as reflected products lack one bit.
constexpr uint64_t fold_constant(int exponent) {
  uint32_t power = 1U << 31;
  for (int i = 0; i < exponent; ++i) power = times_x(power);
  return uint64_t{power} << 1;
}
constexpr uint64_t kFarthest = fold_constant(2048 + 32), kFarthestUpper = fold_constant(2048 - 32);
constexpr uint64_t kFar = fold_constant(512 + 32), kFarUpper = fold_constant(512 - 32);
constexpr uint64_t kNear = fold_constant(128 + 32), kNearUpper = fold_constant(128 - 32);

__attribute__((target("pclmul,sse2"))) inline __m128i fold(__m128i value, __m128i constants, __m128i next) {
  const __m128i lower = _mm_clmulepi64_si128(value, constants, 0x00);
  const __m128i upper = _mm_clmulepi64_si128(value, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(lower, upper), next);
}

// 64 bytes that are congruent to all that was taken so far.
struct Folded {
  __m128i lane[4];
};

__attribute__((target("sse2"))) inline __m128i load(const unsigned char* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

// Takes all but the last bytes, fewer than 64.
__attribute__((target("pclmul,sse2"))) void fold_all(const unsigned char*& at, size_t& bytes, Folded& folded) {
  const __m128i far = _mm_set_epi64x(static_cast<long long>(kFarUpper), static_cast<long long>(kFar));
  auto [a, b, c, d] = folded.lane;
  for (; bytes >= 64; at += 64, bytes -= 64) {
    a = fold(a, far, load(at));
    b = fold(b, far, load(at + 16));
    c = fold(c, far, load(at + 32));
    d = fold(d, far, load(at + 48));
  }
  folded = {{a, b, c, d}};
}

#define STROBE_WIDE __attribute__((target("avx512f,vpclmulqdq")))

STROBE_WIDE inline __m512i fold_wide(__m512i value, __m512i constants, __m512i next) {
  const __m512i lower = _mm512_clmulepi64_epi128(value, constants, 0x00);
  const __m512i upper = _mm512_clmulepi64_epi128(value, constants, 0x11);
  return _mm512_ternarylogic_epi64(lower, upper, next, 0x96);  // all three xored
}
STROBE_WIDE inline __m512i load_wide(const void* from) {
  return _mm512_loadu_si512(from);
}

STROBE_WIDE inline __m512i constants(uint64_t lower, uint64_t upper) {
  const auto low = static_cast<long long>(lower);
  const auto high = static_cast<long long>(upper);
  return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}

// The same with four times the width: takes all but the last bytes, fewer than 256. At least 192.
STROBE_WIDE void fold_all_wide(const unsigned char*& at, size_t& bytes, Folded& folded) {
  __m512i a = load_wide(&folded);
  __m512i b = load_wide(at);
  __m512i c = load_wide(at + 64);
  __m512i d = load_wide(at + 128);
  const __m512i farthest = constants(kFarthest, kFarthestUpper);
  for (at += 192, bytes -= 192; bytes >= 256; at += 256, bytes -= 256) {
    a = fold_wide(a, farthest, load_wide(at));
    b = fold_wide(b, farthest, load_wide(at + 64));
    c = fold_wide(c, farthest, load_wide(at + 128));
    d = fold_wide(d, farthest, load_wide(at + 192));
  }
  const __m512i far = constants(kFar, kFarUpper);
  b = fold_wide(a, far, b);
  c = fold_wide(b, far, c);
  d = fold_wide(c, far, d);
  _mm512_storeu_si512(&folded, d);
}

// At least 64 bytes.
__attribute__((target("pclmul,sse2"))) uint32_t advance_by_folding(const unsigned char* at, size_t bytes, uint32_t crc,
                                                                   bool wide) {
  Folded folded{
      {_mm_xor_si128(load(at), _mm_cvtsi32_si128(static_cast<int>(crc))), load(at + 16), load(at + 32), load(at + 48)}};
  at += 64, bytes -= 64;
  if (wide && bytes >= 192) fold_all_wide(at, bytes, folded);
  fold_all(at, bytes, folded);
  const __m128i near = _mm_set_epi64x(static_cast<long long>(kNearUpper), static_cast<long long>(kNear));
  __m128i all = folded.lane[0];
  for (int i = 1; i < 4; ++i) all = fold(all, near, folded.lane[i]);
  for (; bytes >= 16; at += 16, bytes -= 16) all = fold(all, near, load(at));
  unsigned char rest[16];
  std::memcpy(rest, &all, sizeof rest);
  return advance(at, bytes, advance(rest, sizeof rest, 0));
}

bool can_fold() {
  static const bool can = __builtin_cpu_supports("pclmul") != 0;
  return can;
}
bool can_fold_wide() {
  static const bool can = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
  return can;
}

#undef STROBE_WIDE
#endif

}  // namespace

uint32_t crc32(const void* data, size_t bytes, uint32_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (bytes >= 64 && can_fold()) return ~advance_by_folding(at, bytes, ~seed, can_fold_wide());
#endif
  return ~advance(at, bytes, ~seed);
}

uint32_t crc32_combine(uint32_t a, uint32_t b, uint64_t bytes_of_b) {
  // Bytes behind A multiply it by x^8 each.
  for (size_t k = 3; bytes_of_b != 0; ++k, bytes_of_b >>= 1)
    if ((bytes_of_b & 1) != 0) a = times(kSquares[k], a);
  return a ^ b;
}

uint32_t detail::crc32_by_tables(const void* data, size_t bytes, uint32_t seed) {
  return ~advance(static_cast<const unsigned char*>(data), bytes, ~seed);
}

}  // namespace strobe
