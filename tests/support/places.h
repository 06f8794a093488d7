// Where this checkout and its build lie.
#pragma once

namespace strobe::test {

const char* shared_data_folder();
const char* binaries_folder();

}  // namespace strobe::test
