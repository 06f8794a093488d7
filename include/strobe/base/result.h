// Error and Result<T>: what every fallible border of Strobe returns. The surface is that of C++23's std::expected, so
// that Result can become an alias of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace strobe {

enum class ErrorKind : uint8_t {
  kUsage,        // the words of the call are off (exit 2)
  kNotFound,     // a file, layer, device or engine that is not there (exit 2)
  kBadData,      // input that cannot be what it says it is (exit 2)
  kUnsupported,  // valid input that this build or machine cannot handle (exit 2)
  kEngine,       // an engine or a foreign library failed at run time (exit 3)
  kIo,           // reading or writing failed (exit 2)
  kCheckFailed,  // ran, but a check or threshold failed (exit 1)
  kInterrupted,  // stopped by the user (exit 130)
  kInternal,     // our own fault (exit 3)
};

// One failure: what happened, and a chain of places from the inside outwards.
class [[nodiscard]] Error {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}

  ErrorKind kind() const { return kind_; }
  // The message without its places.
  const std::string& message() const { return message_; }
  // Adds an outer place, e.g. the file that was being read: "trace.json: event 812: negative duration".
  Error&& at(std::string place) &&;
  Error& at(std::string place) &;
  // One line: "place: inner place: message".
  std::string to_string() const;
  // Process exit code of this failure; see the README's table.
  int exit_code() const;

 private:
  ErrorKind kind_;
  std::string message_;
  std::vector<std::string> places_;
};

inline Error usage_error(std::string message) {
  return {ErrorKind::kUsage, std::move(message)};
}
inline Error not_found(std::string message) {
  return {ErrorKind::kNotFound, std::move(message)};
}
inline Error bad_data(std::string message) {
  return {ErrorKind::kBadData, std::move(message)};
}
inline Error unsupported(std::string message) {
  return {ErrorKind::kUnsupported, std::move(message)};
}
inline Error engine_error(std::string message) {
  return {ErrorKind::kEngine, std::move(message)};
}
inline Error io_error(std::string message) {
  return {ErrorKind::kIo, std::move(message)};
}
inline Error internal_error(std::string message) {
  return {ErrorKind::kInternal, std::move(message)};
}
// "what: strerror(errno)", for a system call that just failed.
Error io_error_errno(std::string_view what);

namespace detail {
[[noreturn]] void bad_result_access(const Error& error);
}  // namespace detail

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  template <typename U>
  T value_or(U&& other) const& {
    return has_value() ? std::get<0>(state_) : static_cast<T>(std::forward<U>(other));
  }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  void check() const {
    if (!has_value()) detail::bad_result_access(std::get<1>(state_));
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  void value() const {
    if (error_) detail::bad_result_access(*error_);
  }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace strobe

// STROBE_TRY(expr): evaluates a Result<void>, returns its error from the enclosing function.
#define STROBE_TRY(expr)                                                                                  \
  do {                                                                                                    \
    if (auto strobe_try_result = (expr); !strobe_try_result) return std::move(strobe_try_result).error(); \
  } while (false)

// STROBE_ASSIGN(auto x, expr): the value of a Result<T> into x, or returns its error.
#define STROBE_ASSIGN(lhs, expr) STROBE_ASSIGN_IMPL_(STROBE_CONCAT_(strobe_result_, __COUNTER__), lhs, expr)
#define STROBE_ASSIGN_IMPL_(tmp, lhs, expr) \
  auto tmp = (expr);                        \
  if (!tmp) return std::move(tmp).error();  \
  lhs = std::move(*tmp)
#define STROBE_CONCAT_(a, b) STROBE_CONCAT_INNER_(a, b)
#define STROBE_CONCAT_INNER_(a, b) a##b
