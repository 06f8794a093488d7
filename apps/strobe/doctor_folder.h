// Where the checks of `strobe doctor` write.
#pragma once

#include <memory>
#include <string>

#include "doctor_checks.h"
#include "temporary_folder.h"

namespace strobe::app {

Result<std::unique_ptr<TemporaryFolder>> doctor_folder();

// The check that could not be made since no folder could.
Check untried(const std::string& name, bool needed, const Error& error);

}  // namespace strobe::app
