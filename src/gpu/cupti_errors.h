// CUPTI's error codes in words of our own: its cuptiGetResultString cannot be relied on where there is no driver.
#pragma once

#include <string>

namespace strobe::gpu {

// "CUPTI error 35: no permission ..."; one line, without a stop.
std::string cupti_error(int code);
// The same of the CUDA driver's codes that a start can give (100: no device, ...).
std::string driver_error(int code);
std::string nvml_error(int code);

}  // namespace strobe::gpu
