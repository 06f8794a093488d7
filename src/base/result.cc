#include "strobe/base/result.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace strobe {

Error& Error::at(std::string place) & {
  places_.push_back(std::move(place));
  return *this;
}

Error&& Error::at(std::string place) && {
  places_.push_back(std::move(place));
  return std::move(*this);
}

std::string Error::to_string() const {
  std::string text;
  for (auto place = places_.rbegin(); place != places_.rend(); ++place) text += *place + ": ";
  text += message_;
  // Messages quote what users and files say, line breaks included.
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return text;
}

int Error::exit_code() const {
  switch (kind_) {
    case ErrorKind::kUsage:
    case ErrorKind::kNotFound:
    case ErrorKind::kBadData:
    case ErrorKind::kUnsupported:
    case ErrorKind::kIo:
      return 2;
    case ErrorKind::kCheckFailed:
      return 1;
    case ErrorKind::kInterrupted:
      return 130;
    case ErrorKind::kEngine:
    case ErrorKind::kInternal:
      return 3;
  }
  return 3;
}

Error io_error_errno(std::string_view what) {
  const int code = errno;
  return io_error(std::string(what) + ": " + std::strerror(code));
}

namespace detail {
void bad_result_access(const Error& error) {
  std::fprintf(stderr, "strobe: internal fault: value of a failed result: %s\n", error.to_string().c_str());
  std::abort();
}
}  // namespace detail

}  // namespace strobe
