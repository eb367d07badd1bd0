#include "kernels/cuda/token/token.cuh"

#include "kernels/cuda/program.cuh"
#include "kernels/cuda/token/token_table.h"

namespace longview::kernels::cuda {

const TokenApi kTokenApi = TokenTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
