// The kernels of text encoders in the plugin's table.
#pragma once

#include "kernels/cuda/encoder_rows/encoder_api.h"

namespace longview::kernels::cuda {

extern const EncoderApi kEncoderApi;

}  // namespace longview::kernels::cuda
