#include "sensors/ros_schema.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

namespace strobe::sensors::ros {

namespace {

// Deeper nesting than any message has; a type that holds itself ends here.
constexpr int kMaxDepth = 32;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// "pkg/msg/Name" and "pkg/Name" -> "pkg/Name".
std::string short_name(std::string_view name) {
  const size_t at = name.find("/msg/");
  if (at == std::string_view::npos) return std::string(name);
  return fmt::format("{}/{}", name.substr(0, at), name.substr(at + 5));
}

// Behind a comment's '#'; one inside quotes (a default or a constant) belongs to the text.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#') {
      return line.substr(0, i);
    }
  }
  return line;
}

// Bytes of the UTF-8 character at the start of `text`; 0 where it is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 && first < 0xF5   ? 4
                        : first >= 0xE0 && first < 0xF0 ? 3
                        : first >= 0xC2 && first < 0xE0 ? 2
                                                        : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates, beyond U+10FFFF.
  const uint8_t second = byte(1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
      (first == 0xF4 && second > 0x8F))
    return 0;
  return length;
}

void append_json_text(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
      continue;
    }
    const char c = text[0];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  out += '"';
}

template <typename T>
void append_number(T v, std::string& out) {
  if constexpr (std::is_same_v<T, bool>) {
    out += v ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(v)) {
      out += "\"nan\"";
    } else if (std::isinf(v)) {
      out += v > 0 ? "\"inf\"" : "\"-inf\"";
    } else {
      fmt::format_to(std::back_inserter(out), "{}", v);
    }
  } else {
    fmt::format_to(std::back_inserter(out), "{}", v);
  }
}

}  // namespace

Result<Schema::Field> Schema::parse_field(std::string_view line, std::string_view package) {
  const size_t type_end = line.find_first_of(" \t");
  if (type_end == std::string_view::npos) return bad_data(fmt::format("\"{}\": expected a type and a name", line));
  std::string_view type = line.substr(0, type_end);
  const std::string_view behind = trimmed(line.substr(type_end));
  const std::string_view name = behind.substr(0, behind.find_first_of(" \t="));
  Field field;
  field.name = name;
  if (const size_t bracket = type.find('['); bracket != std::string_view::npos) {
    std::string_view size = type.substr(bracket + 1);
    if (!size.ends_with(']')) return bad_data(fmt::format("\"{}\": a bracket is not closed", line));
    size.remove_suffix(1);
    field.shape = size.empty() || size.starts_with("<=") ? Shape::kSequence : Shape::kArray;
    if (field.shape == Shape::kArray) {
      const auto parsed = std::from_chars(size.data(), size.data() + size.size(), field.size);
      // An array of none takes no bytes, and ROS refuses it: with it, any number of elements would fit anywhere.
      if (parsed.ec != std::errc() || parsed.ptr != size.data() + size.size() || field.size == 0)
        return bad_data(fmt::format("\"{}\": \"{}\" is no size of an array", line, size));
    }
    type = type.substr(0, bracket);
  }
  type = type.substr(0, type.find("<="));  // a bounded string
  static const std::map<std::string_view, Base> kBases = {
      {"bool", Base::kBool},       {"byte", Base::kUint8},   {"char", Base::kUint8},    {"int8", Base::kInt8},
      {"uint8", Base::kUint8},     {"int16", Base::kInt16},  {"uint16", Base::kUint16}, {"int32", Base::kInt32},
      {"uint32", Base::kUint32},   {"int64", Base::kInt64},  {"uint64", Base::kUint64}, {"float32", Base::kFloat32},
      {"float64", Base::kFloat64}, {"string", Base::kString}};
  if (const auto base = kBases.find(type); base != kBases.end()) {
    field.base = base->second;
    return field;
  }
  if (type == "wstring") return unsupported(fmt::format("\"{}\": wstring is not supported", line));
  field.base = Base::kMessage;
  if (type.find('/') != std::string_view::npos) {
    field.type = short_name(type);
  } else {
    field.type = type == "Header" ? "std_msgs/Header" : fmt::format("{}/{}", package, type);
  }
  return field;
}

Result<void> Schema::parse_section(std::string_view name, std::string_view text, size_t first_line) {
  Type type;
  type.name = short_name(name);
  const std::string package = type.name.substr(0, type.name.find('/'));
  for (size_t line_number = first_line; !text.empty(); ++line_number) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string_view line = trimmed(without_comment(whole));
    if (line.empty()) continue;
    auto field = parse_field(line, package);
    if (!field) return std::move(field).error().at(fmt::format("line {}", line_number));
    // A constant (TYPE NAME=VALUE) is not in the message; a default value (TYPE name VALUE) changes nothing.
    const size_t equals = line.find('=', line.find_first_of(" \t"));
    const size_t quote = line.find_first_of("\"'");
    if (equals != std::string_view::npos && equals < quote) continue;
    type.fields.push_back(std::move(*field));
  }
  types_.push_back(std::move(type));
  return {};
}

Result<Schema> Schema::parse(std::string_view type_name, std::string_view text) {
  Schema schema;
  std::string_view name = type_name;
  size_t section_line = 1, line_number = 1, section_start = 0, at = 0;
  std::string header;
  while (at <= text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(text.substr(at, end - at));
    const bool separator = line.size() >= 80 && line.find_first_not_of('=') == std::string_view::npos;
    if (separator || end == text.size()) {
      const size_t section_end = separator ? at : text.size();
      STROBE_TRY(schema.parse_section(name, text.substr(section_start, section_end - section_start), section_line));
    }
    at = end + 1;
    ++line_number;
    if (!separator) continue;
    const size_t header_end = std::min(text.find('\n', std::min(at, text.size())), text.size());
    const std::string_view msg = at > text.size() ? "" : trimmed(text.substr(at, header_end - at));
    if (!msg.starts_with("MSG: "))
      return bad_data(fmt::format("line {}: \"{}\", expected \"MSG: pkg/Name\"", line_number, msg));
    name = trimmed(msg.substr(5));
    at = section_start = std::min(header_end + 1, text.size());
    section_line = ++line_number;
    if (header_end == text.size()) {
      STROBE_TRY(schema.parse_section(name, "", section_line));
      break;
    }
  }
  for (Type& type : schema.types_) {
    for (Field& field : type.fields) {
      if (field.base != Base::kMessage) continue;
      size_t i = 0;
      while (i < schema.types_.size() && schema.types_[i].name != field.type) ++i;
      if (i == schema.types_.size())
        return bad_data(fmt::format("{}.{}: type {} is not in the schema", type.name, field.name, field.type));
      field.message = i;
    }
  }
  return schema;
}

class Schema::Printer {
 public:
  Printer(const Schema& schema, Bytes message, const PrintOptions& options)
      : types_(schema.types_), in_(message), most_(options.most_elements) {}

  Result<std::string> run() {
    message(types_.front(), 0);
    if (auto whole = in_.finish(); !whole) {
      Error error = std::move(whole).error();
      if (!in_.ok()) error.at(path_);
      return error;
    }
    return std::move(out_);
  }

 private:
  void message(const Type& type, int depth) {
    if (depth > kMaxDepth) return in_.fail("messages are nested too deeply");
    out_ += '{';
    if (type.fields.empty()) in_.value<uint8_t>();  // an empty structure is sent as one byte
    bool first = true;
    for (const Field& f : type.fields) {
      if (!first) out_ += ',';
      first = false;
      append_json_text(f.name, out_);
      out_ += ':';
      const size_t outer = path_.size();
      path_ += path_.empty() ? f.name : "." + f.name;
      field(f, depth);
      if (!in_.ok()) return;
      path_.resize(outer);
    }
    out_ += '}';
  }

  void field(const Field& f, int depth) {
    switch (f.base) {
      case Base::kBool:
        return plain<bool>(f);
      case Base::kInt8:
        return plain<int8_t>(f);
      case Base::kUint8:
        return plain<uint8_t>(f);
      case Base::kInt16:
        return plain<int16_t>(f);
      case Base::kUint16:
        return plain<uint16_t>(f);
      case Base::kInt32:
        return plain<int32_t>(f);
      case Base::kUint32:
        return plain<uint32_t>(f);
      case Base::kInt64:
        return plain<int64_t>(f);
      case Base::kUint64:
        return plain<uint64_t>(f);
      case Base::kFloat32:
        return plain<float>(f);
      case Base::kFloat64:
        return plain<double>(f);
      case Base::kString:
        return each(f, 4, [this](bool shown) {
          const std::string_view text = in_.string();
          if (shown) append_json_text(text, out_);
        });
      case Base::kMessage:
        return each(f, 1, [this, &f, depth](bool shown) {
          const size_t before = out_.size();
          message(types_[f.message], depth + 1);
          if (!shown) out_.resize(before);
        });
    }
  }

  template <typename T>
  void plain(const Field& f) {
    each(f, sizeof(T), [this](bool shown) {
      const T v = in_.value<T>();
      if (shown) append_number(v, out_);
    });
  }

  // One element, or all of an array; least is what an element takes at least.
  template <typename Element>
  void each(const Field& f, size_t least, Element&& element) {
    if (f.shape == Shape::kOne) return element(true);
    const uint32_t n = f.shape == Shape::kArray ? f.size : in_.count(least);
    const size_t shown = most_ == 0 ? n : std::min<size_t>(n, most_);
    out_ += '[';
    for (uint32_t i = 0; i < n && in_.ok(); ++i) {
      if (i > 0 && i < shown) out_ += ',';
      element(i < shown);
    }
    if (shown < n) fmt::format_to(std::back_inserter(out_), ",\"... {} more\"", n - shown);
    out_ += ']';
  }

  const std::vector<Type>& types_;
  CdrReader in_;
  size_t most_;
  std::string out_, path_;
};

Result<std::string> Schema::print(Bytes message, const PrintOptions& options) const {
  return Printer(*this, message, options).run();
}

}  // namespace strobe::sensors::ros
