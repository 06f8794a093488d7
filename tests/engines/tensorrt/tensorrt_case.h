// A process with stand-ins for TensorRT and the driver (fake_tensorrt.cc, fake_cuda.cc), and what tests do in it. What
// is not there is found out once a process, so each test runs the plugin in a process of its own and reads what that
// says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engines/engine_case.h"

namespace strobe::test::tensorrt {

struct Setting {
  const char* name;
  std::string value;  // "": as if it were not set
};

std::string library_path();  // of the stand-in

// What `tell` says in a process with the stand-ins and these settings; or how that process ended. Without a setting of
// it the engine's cache is off.
std::string in_process(const std::vector<Setting>& settings, const std::function<std::string()>& tell);

engines::LoadOptions on_gpu(int64_t batch = 1);

// Opens the plugin, loads, and hands the network on; else the error with its kind.
std::string with_network(const engines::ModelSource& source, const engines::LoadOptions& options,
                         const std::function<std::string(engines::Network&)>& use);
std::string load_only(const engines::ModelSource& source, const engines::LoadOptions& options);

// Outputs are 2 x + k of the input, from its beginning again (the stand-in's rule).
std::string wrong_values(const engines::Network& network, const Values& input, const std::vector<Values>& outputs);
std::string run_and_check(engines::Network& network);

std::vector<engines::Kernel> kernels_of(engines::Network& network);
std::string fact(const engines::Network& network, const std::string& key);  // "none" where it has none

// Two convolutions, one with batch norm and activation, their sum and a pool; outputs "drop" and "first".
GraphPtr small_graph();

}  // namespace strobe::test::tensorrt
