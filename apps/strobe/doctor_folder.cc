#include "doctor_folder.h"

namespace strobe::app {

Result<std::unique_ptr<TemporaryFolder>> doctor_folder() {
  return TemporaryFolder::make("strobe-doctor");
}

Check untried(const std::string& name, bool needed, const Error& error) {
  return {name, Health::kBroken, needed, "could not be tried, no temporary folder can be made: " + error.to_string(),
          "set TMPDIR to a folder that can be written to and has room"};
}

}  // namespace strobe::app
