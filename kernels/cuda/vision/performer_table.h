// Performer's three programs as one call of a table; see program_runner.h.
#pragma once

#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/vision/performer_api.h"
#include "kernels/cuda/vision/performer_programs.h"

namespace longview::kernels::cuda {

template <class Runner>
Status RunPerformer(Stream* stream, const PerformerRows& args) {
  Status status = RunTyped<Runner, PerformerTopsProgram>(stream, args);
  if (status == 0) status = RunTyped<Runner, PerformerKeysProgram>(stream, args);
  if (status == 0) status = RunTyped<Runner, PerformerQueriesProgram>(stream, args);
  return status;
}

template <class Runner>
constexpr PerformerApi PerformerTable() {
  return {.run = RunPerformer<Runner>};
}

}  // namespace longview::kernels::cuda
