// Every problem of the planners' tests on the device's kernels too: the same hostile shapes, the
// same definitions.
#pragma once

#include <vector>

#include "kernels/span/executor.h"

namespace longview::kernels::cuda::testing {

// Runs the call on the last of TestDevices (CUDA where there is a device) and compares the given
// rows with `wanted`, one list of Dv numbers per row and head. fp32 problems run in fp32 and, on
// tensor cores, rounded to fp16; bf16 problems on tensor cores: by kTiles and, without biases, by
// kWarpgroups. `rows_of_q`: of q and out.
//
// Calls with more sources than a device takes are left out.
void CheckOnDevice(const Plan& plan, const Call& call, int rows_of_q, const std::vector<int>& rows,
                   const std::vector<std::vector<double>>& wanted);

}  // namespace longview::kernels::cuda::testing
