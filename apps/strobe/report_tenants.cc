#include "report_tenants.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "analyze/tenant_trace.h"
#include "base/file.h"

namespace strobe::app {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

Json read_json(const fs::path& path) {
  auto text = read_file(path);
  return text ? Json::parse(*text, nullptr, false) : Json();
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

void TenantsCollector::add(const std::string& label, const trace::Timeline& timeline, const fs::path& trace) {
  if (!analyze::is_tenant_trace(timeline)) return;
  auto made = report::tenant_run(label, timeline);
  report::TenantRun run;
  run.label = label;
  if (made)
    run = std::move(*made);
  else
    run.notes.push_back(made.error().to_string());
  const Json cell = read_json(trace.parent_path() / "cell.json");
  if (cell.is_object()) {
    run.status = text_of(cell, "status");
    run.reason = text_of(cell, "reason");
    if (const auto tenants = cell.find("tenants"); tenants != cell.end() && tenants->is_array())
      for (const Json& tenant : *tenants) {
        if (!tenant.is_object() || !tenant.contains("notes") || !tenant["notes"].is_array()) continue;
        const std::string who = text_of(tenant, "name") + ": ";
        for (const Json& note : tenant["notes"])
          if (note.is_string()) {
            const auto text = note.get<std::string>();
            run.notes.push_back(text.starts_with(who) ? text : who + text);
          }
      }
  }
  scenes_.add(label, timeline, trace.parent_path(), run.notes);
  page_.runs.push_back(std::move(run));
}

void add_failed_cells(report::TenantsPage& page, const fs::path& folder) {
  std::error_code ignored;
  std::set<fs::path> cells;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored) && fs::exists(entry.path() / "error.txt", ignored) &&
        !fs::exists(entry.path() / "trace.sqlite", ignored))
      cells.insert(entry.path());
  for (const fs::path& cell : cells) {
    report::TenantRun run;
    run.label = cell.filename().string();
    run.status = "failed";
    if (auto reason = read_file(cell / "error.txt")) {
      run.reason = *reason;
      while (!run.reason.empty() && run.reason.back() == '\n') run.reason.pop_back();
    }
    page.runs.push_back(std::move(run));
  }
}

}  // namespace strobe::app
