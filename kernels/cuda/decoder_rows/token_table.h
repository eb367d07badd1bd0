// The programs of a generating model as a table; see program_runner.h.
#pragma once

#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/decoder_rows/adaptive_program.h"
#include "kernels/cuda/decoder_rows/cache_programs.h"
#include "kernels/cuda/decoder_rows/product_programs.h"
#include "kernels/cuda/decoder_rows/stream_programs.h"
#include "kernels/cuda/decoder_rows/token_api.h"

namespace longview::kernels::cuda {

template <typename T>
using StreamNormProgram = NormProgram<StreamRows, T>;
template <typename T>
using StreamProgram = ElementProgram<StreamElements<T>>;
template <typename T>
using StoreProgram = ElementProgram<StoreElements<T>>;
template <typename T>
using LoadProgram = ElementProgram<LoadElements<T>>;
template <typename T>
using StateProgram = ElementProgram<StateElements<T>>;
template <typename T>
using PooledPages = PageProgram<PageRows, T>;
template <typename T>
using LinearPageProgram = PageProgram<LinearPages, T>;
template <typename T>
using MeanProgram = ElementProgram<MeanElements<T>>;

template <class Runner>
Status RunStream(Stream* stream, const StreamRows& args) {
  return args.norm.gamma != nullptr ? RunTyped<Runner, StreamNormProgram>(stream, args)
                                    : RunTyped<Runner, StreamProgram>(stream, args);
}

template <class Runner>
constexpr TokenApi TokenTable() {
  return {
      .stream = RunStream<Runner>,
      .project = RunTyped<Runner, ProjectProgram>,
      .store = RunTyped<Runner, StoreProgram>,
      .load = RunTyped<Runner, LoadProgram>,
      .states = RunTyped<Runner, StateProgram>,
      .adaptive = Runner::template Run<AdaptiveProgram>,
      .pages = RunTyped<Runner, PooledPages>,
      .means = RunTyped<Runner, MeanProgram>,
      .linear_pages = RunTyped<Runner, LinearPageProgram>,
      .product = RunTyped<Runner, ProductProgram>,
      .positions = RunTyped<Runner, PositionProgram>,
  };
}

}  // namespace longview::kernels::cuda
