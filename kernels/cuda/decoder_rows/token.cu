#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/decoder_rows/token_table.h"

namespace longview::kernels::cuda {

const TokenApi kTokenApi = TokenTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
