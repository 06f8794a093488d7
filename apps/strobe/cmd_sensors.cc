#include "sensors_command.h"

namespace strobe::app {

namespace {

std::vector<std::unique_ptr<Word>> all_words() {
  std::vector<std::unique_ptr<Word>> words;
  words.push_back(make_sensors_info());
  words.push_back(make_sensors_dump());
  words.push_back(make_sensors_convert());
  words.push_back(make_sensors_publish());
  words.push_back(make_sensors_replay());
  words.push_back(make_sensors_weather());
  words.push_back(make_sensors_evaluate());
  return words;
}

class SensorsCommands : public WordsCommand {
 public:
  SensorsCommands() : WordsCommand(all_words()) {}
  const char* name() const override { return "sensors"; }
  const char* summary() const override { return "Recordings of sensors: bags, ROS 2 topics, weather"; }
  const char* group() const override { return "Run"; }
  const char* example() const override { return "strobe sensors info drive.mcap"; }
};

}  // namespace

std::unique_ptr<Command> make_sensors_command() {
  return std::make_unique<SensorsCommands>();
}

}  // namespace strobe::app
