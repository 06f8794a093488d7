#include "base/sha256.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

// With the processor's instructions, where it has them, and without.
class Sha256 : public testing::TestWithParam<std::string (*)(std::string_view)> {
 protected:
  static std::string sha256(std::string_view bytes) { return GetParam()(bytes); }
};
INSTANTIATE_TEST_SUITE_P(Ways, Sha256, testing::Values(&strobe::sha256, &detail::sha256_by_words));

TEST_P(Sha256, ExamplesOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_P(Sha256, EveryLengthAroundABlock) {
  // Python: h = b""; for n in range(130): h = sha256(h + bytes(range(n))).digest()
  std::string chain;
  const auto bytes_of = [](const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    return bytes;
  };
  for (int n = 0; n < 130; ++n) {
    std::string text = bytes_of(chain);
    for (int i = 0; i < n; ++i) text += static_cast<char>(i);
    chain = sha256(text);
  }
  EXPECT_EQ(chain, "3f207f0832b0dde16ed028ddffd55e07634711b288269c37de01d4a5a8e899e0");
}

}  // namespace
}  // namespace strobe
