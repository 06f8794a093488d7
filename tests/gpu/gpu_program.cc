// A program that uses the (fake) driver as any CUDA program uses the real one: it opens it, initialises it, and
// launches, under NVTX ranges where its headers were found. Arguments: LAUNCHES [kill|exec|abandon|fork|threads].
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gpu/fake_gpu.h"
#ifdef STROBE_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace {

decltype(&fake_launch) launch;

void push(const char* name) {
#ifdef STROBE_HAVE_NVTX
  nvtxRangePushA(name);
#else
  (void)name;
#endif
}
void pop() {
#ifdef STROBE_HAVE_NVTX
  nvtxRangePop();
#endif
}

void work(int launches, uint32_t stream) {
  for (int i = 0; i < launches; ++i) {
    push("step");
    FakeLaunch kernel{};
    kernel.kernel = "_Z4gemmPKfPf", kernel.stream = stream, kernel.delay_ns = 5'000, kernel.duration_ns = 2'000;
    launch(&kernel);
    pop();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int launches = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::string how = argc > 2 ? argv[2] : "";
  void* driver = ::dlopen(std::getenv("STROBE_CUDA_LIBRARY"), RTLD_NOW);
  if (driver == nullptr) return std::fprintf(stderr, "%s\n", ::dlerror()), 1;
  launch = reinterpret_cast<decltype(launch)>(::dlsym(driver, "fake_launch"));
  auto* init = reinterpret_cast<int (*)(unsigned)>(::dlsym(driver, "cuInit"));
  if (how == "fork") {  // as launchers do: the child is a CUDA program of its own
    const pid_t child = ::fork();
    if (child == 0) {
      const std::string count = std::to_string(launches);
      ::execl(argv[0], argv[0], count.c_str(), static_cast<char*>(nullptr));
      ::_exit(1);
    }
    init(0);
    work(launches, 7);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  init(0);
  if (how == "threads") {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 3; ++i) threads.emplace_back(work, launches, i + 7);
    for (auto& thread : threads) thread.join();
  } else {
    work(launches, 7);
  }
  if (how == "kill") {
    ::usleep(1'500'000);  // several flushes
    ::kill(::getpid(), SIGKILL);
  }
  if (how == "abandon") ::_exit(0);
  return 0;
}
