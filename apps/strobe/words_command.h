// A command whose first argument is a word: `strobe sensors info`, `strobe model show`. Each word has a file of its
// own, <command>_<word>.cc, and a line in the list of cmd_<command>.cc.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace strobe::app {

class Word {
 public:
  virtual ~Word() = default;
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;  // one line, under 60 characters
  virtual void declare(CLI::App& app) = 0;
  // As Command::run().
  virtual Result<int> run() = 0;
};

class WordsCommand : public Command {
 public:
  // In the order of the help.
  explicit WordsCommand(std::vector<std::unique_ptr<Word>> words) : words_(std::move(words)) {}

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
    return usage_error(std::string(name()) + ": a word is missing");
  }

 private:
  std::vector<std::unique_ptr<Word>> words_;
  std::vector<CLI::App*> parsers_;
};

}  // namespace strobe::app
