#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/vision/maps_table.h"

namespace longview::kernels::cuda {

const MapsApi kMapsApi = MapsTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
