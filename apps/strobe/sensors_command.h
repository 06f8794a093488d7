// The words after `strobe sensors`.
#pragma once

#include "words_command.h"

namespace strobe::app {

std::unique_ptr<Word> make_sensors_info();
std::unique_ptr<Word> make_sensors_dump();
std::unique_ptr<Word> make_sensors_convert();
std::unique_ptr<Word> make_sensors_publish();
std::unique_ptr<Word> make_sensors_replay();
std::unique_ptr<Word> make_sensors_weather();
std::unique_ptr<Word> make_sensors_evaluate();

}  // namespace strobe::app
