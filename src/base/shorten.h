// Long names, cut to what a person reads in a table or a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strobe {

// The text, if longer than `limit` characters (UTF-8 code points), without what says least: first what stands in
// parentheses (parameters of a C++ function), then template arguments, the deepest first; then its middle.
//     void vectorized<4, AddFunctor<float>, Array<char*, 3> >(int, AddFunctor<float>)  ->  void vectorized<4,
//     AddFunctor<…>, …
std::string shorten(std::string_view text, size_t limit);

}  // namespace strobe
