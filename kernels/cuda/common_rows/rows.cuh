// The row kernels of the plugin's table.
#pragma once

#include "kernels/cuda/common_rows/rows_api.h"

namespace longview::kernels::cuda {

extern const RowsApi kRowsApi;

}  // namespace longview::kernels::cuda
