#include "model_command.h"

namespace strobe::app {

namespace {

std::vector<std::unique_ptr<Word>> all_words() {
  std::vector<std::unique_ptr<Word>> words;
  words.push_back(make_model_show());
  words.push_back(make_model_prune());
  words.push_back(make_model_export());
  words.push_back(make_model_profile());
  words.push_back(make_model_fit());
  words.push_back(make_model_predict());
  words.push_back(make_model_evaluate());
  words.push_back(make_model_transfer());
  return words;
}

class ModelCommands : public WordsCommand {
 public:
  ModelCommands() : WordsCommand(all_words()) {}
  const char* name() const override { return "model"; }
  const char* summary() const override { return "Networks: show, prune, export, measure and predict them"; }
  const char* group() const override { return "Run"; }
  const char* example() const override { return "strobe model show resnet18"; }
};

}  // namespace

std::unique_ptr<Command> make_model_command() {
  return std::make_unique<ModelCommands>();
}

}  // namespace strobe::app
