// The programs of causal sums as a table; see program_runner.h.
#pragma once

#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/common_rows/column_programs.h"
#include "kernels/cuda/linear_attention/outer_program.h"

namespace longview::kernels::cuda {

template <class Runner>
constexpr OuterApi OuterTable() {
  return {
      .append = Runner::template Run<OuterProgram>,
      .pack = Runner::template Run<ElementProgram<PackOuterElements>>,
  };
}

}  // namespace longview::kernels::cuda
