// The plugin's part of its table for passes of generating models.
#pragma once

#include "kernels/cuda/decoder_rows/token_api.h"

namespace longview::kernels::cuda {

extern const TokenApi kTokenApi;

}  // namespace longview::kernels::cuda
