#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/encoder_rows/encoder_table.h"

namespace longview::kernels::cuda {

const EncoderApi kEncoderApi = EncoderTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
