// A benchmarked program for tests/cli/bench_test.py: BATCHES batches of 4 items, and what can go wrong with one.
//   bench_program BATCHES [--in PROCESS] [--crash | --hang | --stubborn | --silent | --fail] --device_id N --output_dir
//   DIR
// --in: only the process whose folder has that name does it.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "strobe/bench/perf.h"

namespace {

using strobe::bench::Perf;

void work(int microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

[[noreturn]] void hang() {
  std::printf("hanging\n");
  std::fflush(stdout);
  for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder, mode, only;
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--output_dir" && i + 1 < argc) {
      folder = argv[++i];
    } else if (word == "--in" && i + 1 < argc) {
      only = argv[++i];
    } else if (word == "--device_id") {
      ++i;
    } else {
      mode = word;
    }
  }
  if (!only.empty() && !folder.ends_with("/" + only)) mode.clear();
  std::printf("writing to %s\n", folder.c_str());
  std::fflush(stdout);
  if (mode == "--stubborn")
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  if (mode == "--hang" || mode == "--stubborn") hang();
  auto arrivals = strobe::bench::Arrivals::from_environment();
  if (!arrivals) return 4;
  Perf perf("demo", {.output_dir = folder});
  {
    const Perf::Scope sample(perf, "run_sample");
    const Perf::Scope pipeline(perf, "pipeline");
    for (int64_t i = 0; i < std::atoi(argv[1]); ++i) {
      std::optional<strobe::bench::Arrival> arrival;
      if (*arrivals) arrival = (*arrivals)->next();
      {
        Perf::Scope batch(perf, "batch", {}, i);
        batch.items(4);
        {
          const Perf::Scope stage(perf, "decode");
          work(200);
        }
        const Perf::Scope stage(perf, "infer");
        work(600);
      }
      if (arrival) perf.completed(*arrival);
    }
  }
  if (mode == "--crash") std::abort();
  if (mode == "--fail") return 5;
  if (mode == "--silent") return 0;
  const auto written = perf.finalize();
  if (written) return 0;
  std::fprintf(stderr, "%s\n", written.error().to_string().c_str());
  return 3;
}
