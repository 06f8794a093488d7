// Small graphs that between them hold every operation, activation and odd shape that a Graph can have.
#pragma once

#include <string>
#include <vector>

#include "engines/engine_case.h"

namespace strobe::test {

struct OperationCase {
  std::string name;
  GraphPtr graph;
};
std::vector<OperationCase> convolution_cases();
std::vector<OperationCase> transposed_cases();
std::vector<OperationCase> activation_cases();
std::vector<OperationCase> pool_cases();
std::vector<OperationCase> structure_cases();  // everything else, and blocks of real networks

}  // namespace strobe::test
