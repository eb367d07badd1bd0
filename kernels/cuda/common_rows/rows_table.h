// The programs between two linears as a table; see program_runner.h.
#pragma once

#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/common_rows/column_programs.h"
#include "kernels/cuda/common_rows/fold_programs.h"
#include "kernels/cuda/common_rows/rows_api.h"

namespace longview::kernels::cuda {

template <typename T>
using BiasProgram = ElementProgram<BiasElements<T>>;
template <typename T>
using WidenProgram = ElementProgram<WidenElements<T>>;

template <class Runner>
constexpr RowsApi RowsTable() {
  return {
      .bias = RunTyped<Runner, BiasProgram>,
      .widen = RunTyped<Runner, WidenProgram>,
      .copy = Runner::template Run<ElementProgram<CopyElements>>,
      .fold_keys = Runner::template Run<FoldKeysProgram>,
      .fold_scores = Runner::template Run<FoldScoresProgram>,
      .fold_values = RunTyped<Runner, FoldValuesProgram>,
  };
}

}  // namespace longview::kernels::cuda
