#include "kernels/cuda/rows/rows.cuh"

#include "kernels/cuda/program.cuh"
#include "kernels/cuda/rows/rows_table.h"

namespace longview::kernels::cuda {

const RowsApi kRowsApi = RowsTable<DeviceRunner>();

}  // namespace longview::kernels::cuda
