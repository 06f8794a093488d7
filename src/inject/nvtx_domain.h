// What a program registers with NVTX: domains with their categories, and strings.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "strobe/record/annotate.h"

namespace strobe::inject::nvtx {

struct Domain {
  std::string name;  // empty: the default domain
  // Category::id() + 1 of the program's category numbers, once they were used: 0 not yet.
  std::array<std::atomic<uint32_t>, 64> few{};
  std::map<uint32_t, uint32_t> many;
};

struct RegisteredString {
  explicit RegisteredString(std::string_view given) : text(given), name(given) {}
  std::string text;
  record::Name name;
};

// A handle of the program; null is the default domain. Handles stay valid for the life of the process.
Domain& domain_of(const void* handle);
record::Category category_of(Domain& domain, uint32_t number);
void name_category(Domain& domain, uint32_t number, const std::string& name);

}  // namespace strobe::inject::nvtx
