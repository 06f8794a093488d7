#include "base/version.h"

#include "strobe/revision.inc"

namespace strobe {
const char* version() {
  return STROBE_VERSION;
}
const char* git_revision() {
  return STROBE_GIT_REVISION;
}
const char* build_type() {
  return STROBE_BUILD_TYPE;
}
const char* compiler() {
  return STROBE_COMPILER;
}
}  // namespace strobe
