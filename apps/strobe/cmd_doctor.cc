#include <algorithm>
#include <cstdio>
#include <iterator>

#include "command.h"
#include "doctor_checks.h"
#include "report/table_format.h"
#include "report/text_width.h"

namespace strobe::app {

const char* to_string(Health health) {
  switch (health) {
    case Health::kWorks:
      return "works";
    case Health::kAdvice:
      return "advice";
    case Health::kMissing:
      return "missing";
    case Health::kBroken:
      return "broken";
  }
  return "";
}

namespace {

bool lacks(const Check& check) {
  return check.needed && check.health != Health::kWorks;
}

Table table_of(const std::vector<Check>& checks) {
  Table table("Capabilities", {{"check", "what was tried", 0},
                               {"state", "works, advice, missing or broken", 0},
                               {"needed", "1: nothing useful runs without it", 0},
                               {"detail", "what was found", 0},
                               {"remedy", "how to get or mend it", 0}});
  for (const Check& check : checks)
    table.add_row({check.name, std::string(to_string(check.health)), int64_t{check.needed}, check.detail,
                   check.remedy.empty() ? Cell() : Cell(check.remedy)});
  return table;
}

// One line a check, its remedy below; last whether Strobe can be used.
std::string text_of(const std::vector<Check>& checks) {
  size_t width = 0;
  for (const Check& check : checks) width = std::max(width, report::display_width(check.name));
  std::string out;
  for (const Check& check : checks) {
    std::string line = to_string(check.health);
    line.resize(9, ' ');
    line += check.name + std::string(width - report::display_width(check.name) + 2, ' ');
    out += line + report::printable(check.detail) + "\n";
    if (!check.remedy.empty()) out += std::string(9 + width + 2, ' ') + "-> " + report::printable(check.remedy) + "\n";
  }
  std::string lacking;
  for (const Check& check : checks)
    if (lacks(check)) lacking += (lacking.empty() ? "" : ", ") + check.name;
  return out + (lacking.empty() ? "\nStrobe can be used here.\n" : "\nStrobe cannot be used here: " + lacking + "\n");
}

class DoctorCommand : public Command {
 public:
  const char* name() const override { return "doctor"; }
  const char* summary() const override { return "What works here, what is missing, how to get it"; }
  const char* group() const override { return "Machine"; }
  const char* example() const override { return "strobe doctor --format json"; }

  void declare(CLI::App& app) override {
    app.add_option("--format", format_, "text, csv or json")->capture_default_str();
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    std::vector<Check> checks;
    for (auto* const group :
         {check_engines, check_media, check_parts, check_recorder, check_gpu, check_report, check_machine}) {
      auto found = group();
      std::move(found.begin(), found.end(), std::back_inserter(checks));
    }
    const std::string text =
        format == report::Format::kText ? text_of(checks) : report::format_table(table_of(checks), format);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return std::any_of(checks.begin(), checks.end(), lacks) ? 1 : 0;
  }

 private:
  std::string format_ = "text";
};

}  // namespace

std::unique_ptr<Command> make_doctor_command() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace strobe::app
