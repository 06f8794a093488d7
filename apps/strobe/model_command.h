// The words after `strobe model`.
#pragma once

#include "words_command.h"

namespace strobe::app {

std::unique_ptr<Word> make_model_show();
std::unique_ptr<Word> make_model_prune();
std::unique_ptr<Word> make_model_export();
std::unique_ptr<Word> make_model_profile();
std::unique_ptr<Word> make_model_fit();
std::unique_ptr<Word> make_model_predict();
std::unique_ptr<Word> make_model_evaluate();
std::unique_ptr<Word> make_model_transfer();

}  // namespace strobe::app
