// The programs of feature maps as a table; see program_runner.h.
#pragma once

#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/vision/maps_api.h"
#include "kernels/cuda/vision/maps_elements.h"
#include "kernels/cuda/vision/maps_norms.h"
#include "kernels/cuda/vision/maps_sums.h"

namespace longview::kernels::cuda {

template <typename T>
using PatchProgram = RunProgram<PatchElements<T>>;
template <typename T>
using TapProgram = RunProgram<TapElements<T>>;
template <typename T>
using DepthwiseProgram = RunProgram<DepthwiseElements<T>>;

template <class Runner>
constexpr MapsApi MapsTable() {
  return {
      .patches = RunTyped<Runner, PatchProgram>,
      .taps = RunTyped<Runner, TapProgram>,
      .depthwise = RunTyped<Runner, DepthwiseProgram>,
      .tokens = RunTyped<Runner, MapTokensProgram>,
      .bias_table = Runner::template Run<RunProgram<BiasTableElements>>,
      .position_sums = RunTyped<Runner, PositionSumsProgram>,
      .column_norms = RunTyped<Runner, ColumnNormProgram>,
      .planes = Runner::template Run<MapPlanesProgram>,
  };
}

}  // namespace longview::kernels::cuda
