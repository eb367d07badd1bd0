// The programs of causal sums as a table; see program_runner.h.
#pragma once

#include "kernels/cuda/outer/outer_program.h"
#include "kernels/cuda/program_runner.h"
#include "kernels/cuda/rows/column_programs.h"

namespace longview::kernels::cuda {

template <class Runner>
constexpr OuterApi OuterTable() {
  return {
      .append = Runner::template Run<OuterProgram>,
      .pack = Runner::template Run<ElementProgram<PackOuterElements>>,
  };
}

}  // namespace longview::kernels::cuda
