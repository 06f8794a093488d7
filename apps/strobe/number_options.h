// Options that take numbers: what is no number, or does not fit, is refused by name before it is converted, which CLI11
// would do with a wrap-around (-1 of an unsigned one) or the largest value (of too many digits).
#pragma once

#include <CLI/CLI.hpp>

namespace strobe::app {

// Every option of `app` and of its subcommands that holds one number or several.
void check_number_options(CLI::App& app);

}  // namespace strobe::app
