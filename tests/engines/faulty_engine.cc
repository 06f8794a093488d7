// Plugins that are wrong, each in the one way that its FAULT_ macro names.
#include <stdexcept>

#include "strobe/engines/engine.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

#if defined(FAULT_OLD_ABI)
EXPORTED int strobe_engine_abi() {
  return strobe::engines::kEngineAbi - 1;
}
EXPORTED strobe::engines::Engine* strobe_engine_create() {
  throw std::logic_error("an engine of another interface must not be made");
}
#elif defined(FAULT_NO_SYMBOL)
EXPORTED int something_else() {
  return 1;
}
#elif defined(FAULT_THROWS)
EXPORTED int strobe_engine_abi() {
  return strobe::engines::kEngineAbi;
}
EXPORTED strobe::engines::Engine* strobe_engine_create() {
  throw std::runtime_error("the framework's files are missing");
}
#endif
