// The programs of means over segments as a table; see program_runner.h.
#pragma once

#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/pool/pool_api.h"
#include "kernels/cuda/pool/pool_programs.h"

namespace longview::kernels::cuda {

template <class Runner>
constexpr PoolApi PoolTable() {
  return {
      .pieces = RunTyped<Runner, PoolPiecesProgram>,
      .merge = Runner::template Run<PoolMergeProgram>,
      .append = RunTyped<Runner, PoolAppendProgram>,
  };
}

}  // namespace longview::kernels::cuda
