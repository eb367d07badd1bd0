#include "kernels/cuda/encoder/encoder.cuh"

#include "kernels/cuda/encoder/encoder_table.h"
#include "kernels/cuda/program.cuh"

namespace longview::kernels::cuda {

const EncoderApi kEncoderApi = EncoderTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
