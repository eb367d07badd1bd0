#include "kernels/cuda/outer/outer.cuh"

#include "kernels/cuda/outer/outer_program.h"
#include "kernels/cuda/program.cuh"

namespace longview::kernels::cuda {
namespace {

Status Append(Stream* stream, const AppendOuterRows& args) {
  return Launch<OuterProgram>(stream, args);
}

}  // namespace

const OuterApi kOuterApi = {.append = Append};

}  // namespace longview::kernels::cuda
