#include "kernels/cuda/vision/performer.cuh"

#include "kernels/cuda/program.cuh"
#include "kernels/cuda/vision/performer_programs.h"

namespace longview::kernels::cuda {
namespace {

template <typename T>
Status RunTyped(Stream* stream, const PerformerRows& args) {
  if (const Status status = Launch<PerformerTopsProgram<T>>(stream, args); status != 0) {
    return status;
  }
  if (const Status status = Launch<PerformerKeysProgram<T>>(stream, args); status != 0) {
    return status;
  }
  return Launch<PerformerQueriesProgram<T>>(stream, args);
}

Status Run(Stream* stream, const PerformerRows& args) {
  return args.dtype == DType::kFloat32 ? RunTyped<float>(stream, args)
                                       : RunTyped<BFloat16>(stream, args);
}

}  // namespace

const PerformerApi kPerformerApi = {.run = Run};

}  // namespace longview::kernels::cuda
