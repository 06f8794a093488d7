#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "collect/machine.h"
#include "doctor_checks.h"
#include "doctor_folder.h"
#include "in_child.h"
#include "report/plotly_file.h"
#include "strobe/record/annotate.h"
#include "trace/spool_import.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

using Facts = std::map<std::string, std::string>;

std::string fact(const Facts& facts, const char* key) {
  const auto found = facts.find(key);
  return found == facts.end() ? std::string() : found->second;
}

Check check_governor(const Facts& facts) {
  const std::string governor = fact(facts, "cpu.governor");
  if (governor.empty())
    return {"CPU governor", Health::kMissing, false,
            "this machine does not show it, as virtual machines usually do not", ""};
  if (governor == "performance") return {"CPU governor", Health::kWorks, false, governor, ""};
  return {"CPU governor", Health::kAdvice, false, governor + ": clocks change under load, so times vary more",
          "sudo cpupower frequency-set -g performance"};
}

Check check_clock(const Facts& facts) {
  const std::string invariant = fact(facts, "cpu.tsc_invariant");
  if (invariant.empty()) return {"clock", Health::kWorks, false, "the system's monotonic clock", ""};
  if (invariant == "true")
    return {"clock", Health::kWorks, false, "the CPU's counter, which runs at a constant rate", ""};
  return {"clock", Health::kAdvice, false,
          "the CPU's counter changes its rate: the system's clock is read instead, which makes each range dearer", ""};
}

Check check_cores(const Facts& facts) {
  const std::string allowed = fact(facts, "cpu.cores_allowed"), online = fact(facts, "cpu.cores_online");
  if (allowed == online || online.empty())
    return {"cores", Health::kWorks, false, "all " + allowed + " may be used", ""};
  const std::string quota = fact(facts, "cpu.cores_quota");
  return {"cores", Health::kAdvice, false,
          allowed + " of " + online + " may be used" + (quota.empty() ? " (affinity)" : " (quota of " + quota + ")"),
          "for all of them, run outside the container's or taskset's limits"};
}

Check check_guest(const Facts& facts) {
  if (fact(facts, "host.virtualised") != "true")
    return {"own machine", Health::kWorks, false, "no virtual machine", ""};
  return {"own machine", Health::kAdvice, false,
          "a virtual machine: others on its host may slow single runs, so repeat what you compare", ""};
}

// What else runs now would be measured along with a pipeline.
Check check_load(const Facts& facts) {
  double load = 0;
  const double cores = std::atof(fact(facts, "cpu.cores_online").c_str());
  if (::getloadavg(&load, 1) != 1 || cores <= 0)
    return {"quiet machine", Health::kMissing, false, "this machine does not say how busy it is", ""};
  char text[96];
  std::snprintf(text, sizeof text, "in the last minute %.1f threads wanted the %g cores at once", load, cores);
  if (load < 0.25 * cores) return {"quiet machine", Health::kWorks, false, text, ""};
  return {"quiet machine", Health::kAdvice, false, std::string(text) + ": other programs disturb measurements",
          "stop them, or wait until they have ended"};
}

// Records a range, reads it back.
Result<void> record_and_read(const fs::path& folder) {
  STROBE_TRY(record::start({.folder = folder, .process_name = "doctor"}));
  { const record::Range range("doctor check"); }
  STROBE_ASSIGN(const record::Totals totals, record::stop());
  if (totals.dropped > 0) return engine_error(std::to_string(totals.dropped) + " records were dropped");
  STROBE_ASSIGN(const trace::Timeline timeline, trace::import_spool(folder));
  if (timeline.strings.find("doctor check") == trace::kNone || timeline.ranges.size() != 1)
    return internal_error("a recorded range did not come back");
  return {};
}

Check check_recording() {
  const auto folder = doctor_folder();
  if (!folder) return untried("recorder", true, folder.error());
  const auto answer = in_child(
      [&folder]() -> std::string {
        const auto works = record_and_read((*folder)->path());
        return works ? "+" : works.error().to_string();
      },
      30);
  if (answer && *answer == "+") return {"recorder", Health::kWorks, true, "a recording is written and read back", ""};
  return {"recorder", Health::kBroken, true, answer ? *answer : answer.error().to_string(),
          "see that the folder for temporary files (TMPDIR) can be written to and has room"};
}

Check check_tmpfs() {
  constexpr long kTmpfsMagic = 0x01021994;
  for (const char* folder : {"/dev/shm", "/run/user", "/tmp"}) {
    struct statfs facts {};
    if (::statfs(folder, &facts) != 0 || static_cast<long>(facts.f_type) != kTmpfsMagic) continue;
    if (::access(folder, W_OK) != 0) continue;
    const auto free_mib = static_cast<uint64_t>(facts.f_bavail) * static_cast<uint64_t>(facts.f_bsize) >> 20;
    return {"tmpfs", Health::kWorks, false,
            std::string(folder) + ", " + std::to_string(free_mib) + " MiB free: recordings there touch no disk", ""};
  }
  return {"tmpfs", Health::kMissing, false, "no writable tmpfs: recordings go to disk", ""};
}

std::string on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path ? path : ""; !rest.empty();) {
    const size_t colon = std::min(rest.find(':'), rest.size());
    const fs::path candidate = fs::path(rest.substr(0, colon)) / program;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate.string();
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return {};
}

}  // namespace

std::vector<Check> check_recorder() {
  return {check_recording(), check_tmpfs()};
}

std::vector<Check> check_machine() {
  const Facts facts = collect::machine_facts();
  return {check_cores(facts), check_governor(facts), check_clock(facts), check_guest(facts), check_load(facts)};
}

std::vector<Check> check_report() {
  std::vector<Check> checks;
  const auto plotly = report::find_plotly("");
  checks.push_back(plotly ? Check{"report plots", Health::kWorks, false, "drawn with " + plotly->string(), ""}
                          : Check{"report plots", Health::kMissing, false, "plotly.min.js was not found",
                                  "pip install plotly, then set STROBE_PLOTLY_JS to its package_data/plotly.min.js"});
  std::string browser;
  for (const char* name : {"chromium", "chromium-browser", "google-chrome", "firefox"})
    if (browser.empty()) browser = on_path(name);
  checks.push_back(browser.empty() ? Check{"browser", Health::kMissing, false,
                                           "none here; a report is one file and can be opened elsewhere", ""}
                                   : Check{"browser", Health::kWorks, false, browser, ""});
  return checks;
}

}  // namespace strobe::app
