#include "base/shorten.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(Shorten, WhatFitsStaysAsItIs) {
  EXPECT_EQ(shorten("conv(float)", 11), "conv(float)");
  EXPECT_EQ(shorten("", 0), "");
  EXPECT_EQ(shorten("größe", 5), "größe") << "characters count, not bytes";
}

TEST(Shorten, ParametersGoFirst) {
  EXPECT_EQ(shorten("void at::copy<float>(int, Array<char*, 3>)", 24), "void at::copy<float>(…)");
  EXPECT_EQ(shorten("void at::(anonymous namespace)::cat<float>(int, int)", 40), "void at::anonymous::cat<float>(…)");
}

TEST(Shorten, ThenTemplateArgumentsFromTheInside) {
  const char* name = "void vectorized<4, AddFunctor<std::complex<float> >, Array<char*, 3> >(int, AddFunctor<float>)";
  EXPECT_EQ(shorten(name, 72), "void vectorized<4, AddFunctor<std::complex<…> >, Array<char*, 3> >(…)");
  EXPECT_EQ(shorten(name, 50), "void vectorized<4, AddFunctor<…>, Array<…> >(…)");
  EXPECT_EQ(shorten(name, 30), "void vectorized<…>(…)");
}

TEST(Shorten, ThenTheMiddle) {
  EXPECT_EQ(shorten("maxwell_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v0", 20), "maxwell_scudn…_nt_v0");
  EXPECT_EQ(shorten("operator<(a_long_type, b)", 12), "operator<(…)") << "an arrow is no bracket";
  EXPECT_EQ(shorten("ääääöööö", 4), "ää…ö");
  EXPECT_EQ(shorten("abcdef", 1), "…");
}

TEST(Shorten, NeverLongerThanAsked) {
  const std::string name = "f<a<b<c>>>((x)(y)z)->g(((";
  for (size_t limit = 1; limit < 30; ++limit) {
    const std::string cut = shorten(name, limit);
    size_t characters = 0;
    for (const char c : cut) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    EXPECT_LE(characters, limit) << cut;
  }
}

}  // namespace
}  // namespace strobe
