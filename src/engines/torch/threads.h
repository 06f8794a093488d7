// The thread count of a session. ATen's pool (OpenMP) belongs to the thread that calls it, and so does its size.
#pragma once

namespace strobe::engines::torch_plugin {

// Called by a session's thread at the start of every run; does its work once a thread.
void use_threads(int threads);

}  // namespace strobe::engines::torch_plugin
