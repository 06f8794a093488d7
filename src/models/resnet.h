// ResNet-18 without its classifier, as the backbone of other networks.
#pragma once

#include "models/module_builder.h"

namespace strobe::models {

// The layers of torchvision's resnet18 up to `stages` (1 to 4): strides 4, 8, 16, 32 and 64, 128, 256, 512 channels.
LayerId add_resnet18_trunk(ModuleBuilder& build, LayerId picture, size_t stages);

}  // namespace strobe::models
