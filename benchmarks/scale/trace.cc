// strobe_scale_trace kineto|pipeline|spool OUT COUNT: a synthetic trace with COUNT ranges.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "scale/traces.h"

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  const uint64_t count = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
  if (count == 0 || (kind != "kineto" && kind != "pipeline" && kind != "spool")) {
    std::fputs("usage: strobe_scale_trace kineto|pipeline|spool OUT COUNT\n", stderr);
    return 2;
  }
  const auto made = kind == "kineto"     ? strobe::scale::write_kineto(argv[2], count)
                    : kind == "pipeline" ? strobe::scale::write_pipeline(argv[2], count)
                                         : strobe::scale::record_spool(argv[2], count);
  if (!made) std::fprintf(stderr, "%s\n", made.error().to_string().c_str());
  return made ? 0 : 1;
}
