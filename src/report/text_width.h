// How wide a text stands in a terminal.
#pragma once

#include <string>
#include <string_view>

namespace strobe::report {

// Cells that the text takes in a terminal: wide East Asian characters and emoji take two, combining marks none. Bytes
// that are not UTF-8 count one each.
size_t display_width(std::string_view text);

// The text with control characters (line ends, tabs, terminal escapes) and broken UTF-8 replaced, so that a name from
// a trace can neither break a table nor command the terminal.
std::string printable(std::string_view text);

}  // namespace strobe::report
