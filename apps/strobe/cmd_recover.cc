#include <cstdio>
#include <filesystem>
#include <string>

#include "command.h"
#include "import_recording.h"
#include "trace/open.h"
#include "trace/store.h"

namespace strobe::app {
namespace {

class RecoverCommand : public Command {
 public:
  const char* name() const override { return "recover"; }
  const char* summary() const override { return "The trace of a run that was killed"; }
  const char* group() const override { return "Move"; }
  const char* example() const override { return "strobe recover out -o out/recovered.sqlite"; }

  void declare(CLI::App& app) override {
    app.add_option("folder", folder_, "Output folder of the run, or the spool folder itself")->required();
    app.add_option("-o,--output", output_, "Trace file to write")->required();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const trace::Timeline timeline, import_recording(trace::spool_folder(folder_)));
    STROBE_TRY(trace::write_store(timeline, output_));
    size_t open = 0;
    for (const uint8_t is_open : timeline.ranges.open) open += is_open;
    std::printf("%s: %zu ranges (%zu still open when the recording ended), %zu marks, %.3f s, %llu records dropped\n",
                output_.c_str(), timeline.ranges.size(), open, timeline.marks.size(),
                static_cast<double>(timeline.duration_ns) / 1e9,
                static_cast<unsigned long long>(timeline.losses.dropped_records));
    for (const auto& [kind, count] : timeline.losses.faults)
      std::fprintf(stderr, "strobe: note: %llu x %s\n", static_cast<unsigned long long>(count), kind.c_str());
    return 0;
  }

 private:
  std::string folder_, output_;
};

}  // namespace

std::unique_ptr<Command> make_recover_command() {
  return std::make_unique<RecoverCommand>();
}

}  // namespace strobe::app
