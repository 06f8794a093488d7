#include "support/places.h"

namespace strobe::test {

const char* shared_data_folder() {
  return STROBE_SHARED_DATA;
}
const char* binaries_folder() {
  return STROBE_BIN_DIR;
}

}  // namespace strobe::test
