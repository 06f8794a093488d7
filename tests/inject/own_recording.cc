// A program that records itself with Strobe into a folder of its own, and speaks NVTX: the recorder that `strobe
// record` brings in and its own must not meet.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

#include "strobe/record/annotate.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  nvtxRangePushA("nvtx outer");
  if (!strobe::record::start({.folder = argv[1]})) return std::fputs("cannot record\n", stderr), 1;
  for (int i = 0; i < 100; ++i) {
    const strobe::record::Range range(strobe::record::Name("own"), i);
    nvtxRangePushA("nvtx inner");
    nvtxRangePop();
  }
  const auto totals = strobe::record::stop();
  nvtxRangePop();
  return totals && totals->dropped == 0 ? 0 : 1;
}
