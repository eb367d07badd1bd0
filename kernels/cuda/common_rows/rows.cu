#include "kernels/cuda/base/plugin_tables.cuh"
#include "kernels/cuda/base/program.cuh"
#include "kernels/cuda/common_rows/rows_table.h"

namespace longview::kernels::cuda {

const RowsApi kRowsApi = RowsTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
