#include "report/html_parts.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "report/plotly_file.h"

namespace strobe::report {

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string data_for_script(const nlohmann::ordered_json& data) {
  const std::string text = data.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size() + text.size() / 64);
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

Result<std::string> plotly_for_script(const std::string& given) {
  STROBE_ASSIGN(const auto path, find_plotly(given));
  STROBE_ASSIGN(std::string text, read_file(path));
  if (text.find("Plotly") == std::string::npos)
    return bad_data(path.string() + ": this is not plotly.min.js (the name Plotly is nowhere in it)");
  constexpr std::string_view kEnd = "</script", kEscaped = "<\\/script";
  for (size_t at = text.find(kEnd); at != std::string::npos; at = text.find(kEnd, at + kEscaped.size()))
    text.replace(at, kEnd.size(), kEscaped);
  return text;
}

}  // namespace strobe::report
