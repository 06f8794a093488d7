#include <cerrno>
#include <cstdio>

#include "base/file.h"
#include "sensors/mcap_file.h"
#include "sensors/mcap_listing.h"
#include "sensors_command.h"

namespace strobe::app {

namespace {

class SensorsDump : public Word {
 public:
  const char* name() const override { return "dump"; }
  const char* summary() const override { return "Every record of an MCAP file, as JSON"; }

  void declare(CLI::App& app) override {
    app.add_option("file", file_, "MCAP file (with --write: a listing)")->required();
    app.add_flag("--records", records_, "One JSON object a record, one a line (the default)");
    // The way back, for the format's conformance tests.
    app.add_option("--write", write_, "Instead: the MCAP file of which FILE is the listing")->group("");
  }

  Result<int> run() override {
    if (!write_.empty()) {
      STROBE_ASSIGN(const std::string listing, read_file(file_));
      if (auto done = sensors::write_listing(listing, write_); !done) return std::move(done).error().at(file_);
      return 0;
    }
    STROBE_ASSIGN(const sensors::McapFile file, sensors::McapFile::open(file_));
    bool failed = false;
    auto faults = sensors::list_records(file.bytes(), [&](std::string_view line) {
      if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fputc('\n', stdout) == EOF)
        failed = true;
    });
    if (!faults) return std::move(faults).error().at(file_);
    for (const std::string& fault : *faults) std::fprintf(stderr, "note: %s: %s\n", file_.c_str(), fault.c_str());
    // A reader that closed the pipe has seen enough.
    if (failed && errno != EPIPE) return io_error_errno("standard output");
    return 0;
  }

 private:
  std::string file_, write_;
  bool records_ = false;
};

}  // namespace

std::unique_ptr<Word> make_sensors_dump() {
  return std::make_unique<SensorsDump>();
}

}  // namespace strobe::app
