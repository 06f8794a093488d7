#include "threads.h"

#include <ATen/Parallel.h>

namespace strobe::engines::torch_plugin {

void use_threads(int threads) {
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
}

}  // namespace strobe::engines::torch_plugin
