// Any ROS 2 message by the text of its schema: a bag's "ros2msg" is enough to print what Strobe has no structure for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sensors/cdr.h"
#include "strobe/base/result.h"

namespace strobe::sensors::ros {

struct PrintOptions {
  // Arrays and sequences longer than this end with a text that counts the rest ("... 34 more"); 0: all are whole.
  size_t most_elements = 0;
};

class Schema {
 public:
  // `type_name` is that of the first section of `text`: "pkg/msg/Name" or "pkg/Name".
  // Errors: kBadData naming the line; kUnsupported (wstring, whose bytes differ between DDS implementations).
  static Result<Schema> parse(std::string_view type_name, std::string_view text);

  // The message as one line of JSON, fields in the order of the definition; 64 bit integers are plain digits, numbers
  // that JSON does not know are the texts "nan", "inf", "-inf", and bytes that are no UTF-8 are shown as U+FFFD.
  // Errors: kBadData with the field and the byte.
  Result<std::string> print(Bytes message, const PrintOptions& options = {}) const;

 private:
  enum class Base : uint8_t {
    kBool,
    kInt8,
    kUint8,
    kInt16,
    kUint16,
    kInt32,
    kUint32,
    kInt64,
    kUint64,
    kFloat32,
    kFloat64,
    kString,
    kMessage
  };
  enum class Shape : uint8_t { kOne, kArray, kSequence };
  struct Field {
    std::string name;
    Base base = Base::kBool;
    Shape shape = Shape::kOne;
    uint32_t size = 0;   // of an array
    size_t message = 0;  // index into types_, of kMessage
    std::string type;    // as written, of kMessage
  };
  struct Type {
    std::string name;  // "pkg/Name"
    std::vector<Field> fields;
  };
  class Printer;

  Result<void> parse_section(std::string_view name, std::string_view text, size_t first_line);
  static Result<Field> parse_field(std::string_view line, std::string_view package);

  std::vector<Type> types_;  // the first is the message
};

}  // namespace strobe::sensors::ros
