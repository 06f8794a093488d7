// How a picture becomes the input of a network.
#pragma once

#include "media/preprocess.h"
#include "strobe/models/graph.h"

namespace strobe::pipeline {

media::InputFormat input_format(const models::InputRule& rule, int width, int height);

// A grey pixel that fills the input: what a preprocessor warms up on.
PictureBytes grey_picture(const media::InputFormat& format);

}  // namespace strobe::pipeline
