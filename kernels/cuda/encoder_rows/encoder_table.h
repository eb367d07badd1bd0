// The programs of text encoders as a table; see program_runner.h.
#pragma once

#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/encoder_rows/encoder_api.h"
#include "kernels/cuda/encoder_rows/landmark_program.h"
#include "kernels/cuda/encoder_rows/slice_programs.h"
#include "kernels/cuda/encoder_rows/stream_programs.h"

namespace longview::kernels::cuda {

template <typename T>
using PrenormProgram = NormProgram<PrenormRows, T>;
template <typename T>
using GateProgram = ElementProgram<GatedElements<T>>;
template <typename T>
using RotateProgram = ElementProgram<RotatedElements<T>>;
template <typename T>
using PlaceBiasProgram = ElementProgram<PlaceBiasElements<T>>;
template <typename T>
using AddedProgram = ElementProgram<AddedElements<T>>;
template <typename T>
using PoolSlicesProgram = ElementProgram<PoolSliceElements<T>>;
template <typename T>
using PoolPartsProgram = ElementProgram<PoolPartElements<T>>;
template <typename T>
using MixInProgram = ElementProgram<MixInElements<T>>;
template <typename T>
using MixOutProgram = ElementProgram<MixOutElements<T>>;

template <class Runner>
constexpr EncoderApi EncoderTable() {
  return {
      .embed = Runner::template Run<ElementProgram<EmbedSumElements>>,
      .prenorm = RunTyped<Runner, PrenormProgram>,
      .gate = RunTyped<Runner, GateProgram>,
      .rotate = RunTyped<Runner, RotateProgram>,
      .place_bias = RunTyped<Runner, PlaceBiasProgram>,
      .add = RunTyped<Runner, AddedProgram>,
      .landmarks = RunTyped<Runner, LandmarkProgram>,
      .pool_slices = RunTyped<Runner, PoolSlicesProgram>,
      .pool_parts = RunTyped<Runner, PoolPartsProgram>,
      .mix_in = RunTyped<Runner, MixInProgram>,
      .mix_out = RunTyped<Runner, MixOutProgram>,
  };
}

}  // namespace longview::kernels::cuda
