#pragma once

namespace strobe {
const char* version();       // "0.1.0"
const char* git_revision();  // abbreviated commit, "-dirty" appended where the tree had changes; "unknown" outside git
const char* build_type();
const char* compiler();
}  // namespace strobe
