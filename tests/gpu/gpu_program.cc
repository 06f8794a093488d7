// A program that uses the (fake) driver as any CUDA program uses the real one: it opens it, initialises it, and
// launches, under NVTX ranges where its headers were found. Arguments: LAUNCHES [kill|abandon|fork|threads|graph].
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
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

// Two layers are captured once, and launched as a graph. What is told apart by two clocks lies far from its range's
// ends.
void graph(void* driver, int launches) {
  const auto find = [driver](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(driver, name));
  };
  decltype(&fake_graph_capture) capture = nullptr;
  decltype(&fake_graph_instantiate) instantiate = nullptr;
  decltype(&fake_graph_launch) launch_graph = nullptr;
  find(capture, "fake_graph_capture"), find(instantiate, "fake_graph_instantiate");
  find(launch_graph, "fake_graph_launch");
  void* made = nullptr;
  for (const auto& [layer, kernel] : {std::pair{"conv1", "_Z4convPf"}, std::pair{"fc", "_Z4gemmPKfPf"}}) {
    push(layer);
    ::usleep(2'000);
    FakeLaunch one{};
    one.kernel = kernel, one.delay_ns = 1'000, one.duration_ns = 2'000;
    made = capture(made, &one);
    ::usleep(2'000);
    pop();
  }
  void* const instance = instantiate(made);
  for (int i = 0; i < launches; ++i) {
    push("step");
    launch_graph(instance, 7);
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
  // The context is made at the first use.
  if (auto* context = reinterpret_cast<decltype(&fake_context)>(::dlsym(driver, "fake_context"))) context(1);
  if (how == "graph") {
    graph(driver, launches);
  } else if (how == "threads") {
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
