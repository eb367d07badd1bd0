// The image families of the registry, which serve as backbones too.
#pragma once

#include "models/vision/backbone.h"

namespace longview::models {

VisionBuilder VilBuilder();    // "vil"
VisionBuilder VilLsBuilder();  // "vil_ls"
VisionBuilder CvtLsBuilder();  // "cvt_ls". Three stages: strides 4, 8, 16.

}  // namespace longview::models
