// Variables of the environment for the time of a test.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace strobe::test {

class Environment {
 public:
  Environment() = default;
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (auto entry = before_.rbegin(); entry != before_.rend(); ++entry) {
      if (entry->second) ::setenv(entry->first.c_str(), entry->second->c_str(), 1);
      if (!entry->second) ::unsetenv(entry->first.c_str());
    }
  }
  void set(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    before_.emplace_back(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    ::setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

}  // namespace strobe::test
