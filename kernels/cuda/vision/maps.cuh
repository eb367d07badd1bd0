// The kernels of feature maps in the plugin's table.
#pragma once

#include "kernels/cuda/vision/maps_api.h"

namespace longview::kernels::cuda {

extern const MapsApi kMapsApi;

}  // namespace longview::kernels::cuda
