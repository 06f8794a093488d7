/* A program in C that records itself with its GPU work: it has the annotation library in it and no collector.
 * Arguments: FOLDER LAUNCHES [exit|kill]. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/fake_gpu.h"
#include "strobe/record/annotate_c.h"

int main(int argc, char** argv) {
  const char* how = argc > 3 ? argv[3] : "";
  char message[256];
  uint32_t (*launch)(const struct FakeLaunch*) = NULL;
  int (*init)(unsigned) = NULL;
  void* driver = NULL;
  int i, failed;
  if (argc < 3) return 2;
  failed = strobe_start_with_gpu(argv[1], message, sizeof message);
  if (failed != 0) return fprintf(stderr, "%s\n", message), failed;
  driver = dlopen(getenv("STROBE_CUDA_LIBRARY"), RTLD_NOW);
  if (driver != NULL) {
    *(void**)&launch = dlsym(driver, "fake_launch");
    *(void**)&init = dlsym(driver, "cuInit");
    init(0);
  }
  for (i = 0; i < atoi(argv[2]); ++i) {
    struct FakeLaunch kernel;
    memset(&kernel, 0, sizeof kernel);
    kernel.kernel = "_Z4gemmPKfPf", kernel.stream = 7, kernel.delay_ns = 5000, kernel.duration_ns = 2000;
    strobe_push_text("step", i);
    if (launch != NULL) launch(&kernel);
    usleep(20);
    strobe_pop();
  }
  if (strcmp(how, "kill") == 0) {
    usleep(1500000); /* several flushes */
    kill(getpid(), SIGKILL);
  }
  if (strcmp(how, "exit") == 0) exit(0);
  return strobe_stop(NULL, message, sizeof message);
}
