#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "collect/machine.h"
#include "command.h"
#include "engines/loader.h"
#include "in_child.h"
#include "media/backend.h"
#include "report/table_format.h"

namespace strobe::app {
namespace {

using nlohmann::ordered_json;

constexpr int kLoadTimeout_s = 120;

// Groups in the order in which they are shown.
constexpr const char* kGroups[] = {"cpu", "memory", "os", "host", "strobe", "time"};

// Measures are numbers, flags are booleans, sets are lists; the rest stays text.
ordered_json value_of(const std::string& key, const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (key == "cpu.features") {
    ordered_json list = ordered_json::array();
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find(' ', at), text.size());
      list.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return list;
  }
  if (key.starts_with("cpu.") || key.starts_with("memory.")) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (end != text.c_str() && *end == '\0') {
      if (number == static_cast<double>(static_cast<int64_t>(number))) return static_cast<int64_t>(number);
      return number;
    }
  }
  return text;
}

ordered_json machine_json() {
  ordered_json out = ordered_json::object();
  for (const char* group : kGroups) out[group] = ordered_json::object();
  for (const auto& [key, text] : collect::machine_facts()) {
    const size_t dot = key.find('.');
    if (dot == std::string::npos) {
      out["strobe"][key] = text;  // "compiler"
    } else {
      out[key.substr(0, dot)][key.substr(dot + 1)] = value_of(key, text);
    }
  }
  return out;
}

// Versions come from the libraries themselves, each opened in a process of its own: two frameworks in one quarrel.
ordered_json asked_in_child(const std::function<Result<ordered_json>()>& ask) {
  const auto answer = in_child(
      [&ask] {
        auto result = ask();
        return result ? result->dump() : ordered_json{{"error", result.error().to_string()}}.dump();
      },
      kLoadTimeout_s);
  if (!answer) return {{"error", answer.error().to_string()}};
  auto parsed = ordered_json::parse(*answer, nullptr, false);
  if (!parsed.is_object()) return {{"error", "an answer that cannot be read"}};
  return parsed;
}

ordered_json media_json() {
  return asked_in_child([]() -> Result<ordered_json> {
    STROBE_ASSIGN(const auto* backend, media::backend());
    return ordered_json{{"version", backend->version()}};
  });
}

ordered_json engine_json(const engines::EngineStatus& status) {
  ordered_json out = {{"name", status.name}, {"built", status.built}};
  if (!status.built) {
    out["how_to_get"] = status.how_to_get;
    return out;
  }
  out["path"] = status.path;
  out.update(asked_in_child([&status]() -> Result<ordered_json> {
    STROBE_ASSIGN(const auto engine, engines::open_engine(status.name));
    ordered_json precisions = ordered_json::array();
    std::vector<engines::Precision> runs = engine->precisions();
    if (runs.empty()) runs = engine->precisions_on("cuda:0").value_or(std::move(runs));  // an engine for GPUs alone
    for (const auto precision : runs) precisions.push_back(std::string(to_string(precision)));
    return ordered_json{{"version", engine->version()},
                        {"variants", engine->variants()},
                        {"precisions", precisions},
                        {"file_formats", engine->file_formats()}};
  }));
  return out;
}

ordered_json info_json() {
  ordered_json out = machine_json();
  out["media"] = media_json();
  out["engines"] = ordered_json::array();
  for (const auto& engine : engines::list_engines()) out["engines"].push_back(engine_json(engine));
  return out;
}

std::string as_text(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const auto& item : value) text.append(text.empty() ? "" : " ").append(as_text(item));
  return text;
}

// The same facts, one a row: "cpu.model", "engines.torch.version".
void add_rows(const std::string& prefix, const ordered_json& value, Table& table) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      add_rows(prefix.empty() ? key : std::string(prefix).append(".").append(key), member, table);
    return;
  }
  if (value.is_array() && !value.empty() && value[0].is_object()) {
    for (ordered_json item : value) {
      const std::string name = item["name"].get<std::string>();
      item.erase("name");
      add_rows(std::string(prefix).append(".").append(name), item, table);
    }
    return;
  }
  table.add_row({prefix, as_text(value)});
}

// For people: facts of the machine by the names that traces have, then the engines side by side.
std::string text_of(ordered_json info) {
  Table engines("Engines", {{"engine", "", 0},
                            {"version", "", 0},
                            {"precisions", "", 0},
                            {"variants", "", 0},
                            {"model_files", "", 0},
                            {"state", "", 0, true}});
  const auto word = [](const ordered_json& engine, const char* key) {
    return engine.contains(key) && !engine[key].empty() ? Cell(as_text(engine[key])) : Cell();
  };
  for (const ordered_json& engine : info["engines"]) {
    std::string state = "ready";
    if (!engine["built"]) state = "not built: " + as_text(engine["how_to_get"]);
    if (engine.contains("error")) state = "broken: " + as_text(engine["error"]);
    engines.add_row({as_text(engine["name"]), word(engine, "version"), word(engine, "precisions"),
                     word(engine, "variants"), word(engine, "file_formats"), state});
  }
  info.erase("engines");
  Table machine("Machine and versions", {{"fact", "", 0, true}, {"value", "", 0, true}});
  add_rows("", info, machine);
  return report::format_table(machine, report::Format::kText) + "\n" +
         report::format_table(engines, report::Format::kText);
}

class InfoCommand : public Command {
 public:
  const char* name() const override { return "info"; }
  const char* summary() const override { return "This machine, the engines, the versions"; }
  const char* group() const override { return "Machine"; }
  const char* example() const override { return "strobe info --format json"; }

  void declare(CLI::App& app) override {
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    const ordered_json info = info_json();
    std::string text;
    if (format == report::Format::kJson) {
      text = info.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    } else if (format == report::Format::kText) {
      text = text_of(info);
    } else {
      Table table("", {{"fact", "", 0}, {"value", "", 0}});
      add_rows("", info, table);
      text = report::format_table(table, format);
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }

 private:
  std::string format_ = "text";
};

}  // namespace

std::unique_ptr<Command> make_info_command() {
  return std::make_unique<InfoCommand>();
}

}  // namespace strobe::app
