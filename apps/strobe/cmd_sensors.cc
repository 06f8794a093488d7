#include <vector>

#include "command.h"
#include "sensors_command.h"

namespace strobe::app {

namespace {

// In the order of the help.
std::vector<std::unique_ptr<SensorsCommand>> all_words() {
  std::vector<std::unique_ptr<SensorsCommand>> words;
  words.push_back(make_sensors_info());
  words.push_back(make_sensors_dump());
  words.push_back(make_sensors_convert());
  words.push_back(make_sensors_publish());
  words.push_back(make_sensors_replay());
  words.push_back(make_sensors_weather());
  words.push_back(make_sensors_evaluate());
  return words;
}

class SensorsCommands : public Command {
 public:
  const char* name() const override { return "sensors"; }
  const char* summary() const override { return "Recordings of sensors: bags, ROS 2 topics, weather"; }
  const char* group() const override { return "Run"; }
  const char* example() const override { return "strobe sensors info drive.mcap"; }

  void declare(CLI::App& app) override {
    app.require_subcommand(1);
    for (const auto& word : words_) {
      CLI::App* sub = app.add_subcommand(word->name(), word->summary());
      word->declare(*sub);
      parsers_.push_back(sub);
    }
  }

  Result<int> run() override {
    for (size_t i = 0; i < words_.size(); ++i)
      if (parsers_[i]->parsed()) return words_[i]->run();
    return usage_error("sensors: a word is missing");
  }

 private:
  std::vector<std::unique_ptr<SensorsCommand>> words_ = all_words();
  std::vector<CLI::App*> parsers_;
};

}  // namespace

std::unique_ptr<Command> make_sensors_command() {
  return std::make_unique<SensorsCommands>();
}

}  // namespace strobe::app
