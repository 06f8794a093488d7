#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "base/version.h"
#include "bench_words.h"
#include "command.h"
#include "gpu/collector.h"
#include "number_options.h"

namespace strobe::app {
namespace {

// Groups appear in the help in the order in which their first command stands here.
std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(make_run_command());
  commands.push_back(make_bench_command());
  commands.push_back(make_frames_command());
  commands.push_back(make_sensors_command());
  commands.push_back(make_model_command());
  commands.push_back(make_record_command());
  commands.push_back(make_simulate_command());
  commands.push_back(make_layers_command());
  commands.push_back(make_stats_command());
  commands.push_back(make_kernels_command());
  commands.push_back(make_memcpy_command());
  commands.push_back(make_explain_command());
  commands.push_back(make_idle_command());
  commands.push_back(make_launches_command());
  commands.push_back(make_advise_command());
  commands.push_back(make_compare_command());
  commands.push_back(make_query_command());
  commands.push_back(make_critical_path_command());
  commands.push_back(make_what_if_command());
  commands.push_back(make_blame_command());
  commands.push_back(make_forecast_command());
  commands.push_back(make_predictability_command());
  commands.push_back(make_deadline_command());
  commands.push_back(make_report_command());
  commands.push_back(make_recover_command());
  commands.push_back(make_import_command());
  commands.push_back(make_export_command());
  commands.push_back(make_view_command());
  commands.push_back(make_info_command());
  commands.push_back(make_doctor_command());
  commands.push_back(make_calibrate_command());
  return commands;
}

int report_error(const Error& error) {
  std::fprintf(stderr, "strobe: %s\n", error.to_string().c_str());
  return error.exit_code();
}

// CLI11 would say only that a command is missing.
Result<void> check_command_word(int argc, char** argv, const std::vector<std::unique_ptr<Command>>& commands) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::vector<std::string> names;
  for (const auto& command : commands) names.emplace_back(command->name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return {};
  return usage_error(std::string("no command '") + argv[1] + "'; " + suggest(argv[1], names));
}

std::vector<CLI::App*> declare_commands(CLI::App& app, const std::vector<std::unique_ptr<Command>>& commands) {
  std::vector<CLI::App*> parsers;
  for (const auto& command : commands) {
    CLI::App* sub = app.add_subcommand(command->name(), command->summary())->group(command->group());
    sub->footer(std::string("Example:\n  ") + command->example());
    command->declare(*sub);
    parsers.push_back(sub);
  }
  return parsers;
}

int main_checked(int argc, char** argv) {
  CLI::App app{"Strobe runs, records, explains and predicts the performance of DNN vision pipelines.", "strobe"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("strobe ") + version() + " (" + git_revision() + ")");
  app.failure_message(
      [](const CLI::App*, const CLI::Error& error) { return std::string("strobe: ") + error.what() + "\n"; });

  const auto commands = all_commands();
  const std::vector<CLI::App*> parsers = declare_commands(app, commands);
  check_number_options(app);
  if (argc < 2) {
    std::fputs(app.help().c_str(), stderr);
    return 2;
  }
  if (auto known = check_command_word(argc, argv, commands); !known) return report_error(known.error());
  try {
    std::vector<std::string> words = bench_words({argv + 1, argv + argc});
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!parsers[i]->parsed()) continue;
    auto code = commands[i]->run();
    return code ? *code : report_error(code.error());
  }
  return 2;
}

}  // namespace
}  // namespace strobe::app

int main(int argc, char** argv) {
  // A reader that closed the pipe is no error of ours.
  std::signal(SIGPIPE, SIG_IGN);
  // A file that may not grow further (RLIMIT_FSIZE) is a failed write, not the end of the program.
  std::signal(SIGXFSZ, SIG_IGN);
  strobe::gpu::provide_to_recorder();
  try {
    const int code = strobe::app::main_checked(argc, argv);
    std::fflush(stdout);
    return code;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "strobe: internal fault: %s\n", fault.what());
    return 3;
  }
}
