#include "kernels/cuda/sampling/sampling.cuh"

#include "kernels/cuda/program.cuh"
#include "kernels/cuda/sampling/sample_program.h"

namespace longview::kernels::cuda {
namespace {

Status Sample(Stream* stream, const SampleRows& args) {
  return Launch<SampleProgram>(stream, args);
}

}  // namespace

const SamplingApi kSamplingApi = {.sample = Sample};

}  // namespace longview::kernels::cuda
