#include "kernels/cuda/program.cuh"
#include "kernels/cuda/rows/column_programs.h"
#include "kernels/cuda/rows/fold_programs.h"
#include "kernels/cuda/rows/norm_program.h"
#include "kernels/cuda/rows/rows.cuh"

namespace longview::kernels::cuda {
namespace {

// Calls launch<float>() or launch<BFloat16>().
template <typename LaunchTyped>
Status ByType(DType dtype, LaunchTyped&& launch) {
  return dtype == DType::kFloat32 ? launch.template operator()<float>()
                                  : launch.template operator()<BFloat16>();
}

Status Embed(Stream* stream, const EmbedRows& args) {
  return ByType(args.dtype,
                [&]<typename T>() { return Launch<NormProgram<EmbedRows, T>>(stream, args); });
}

Status Bias(Stream* stream, const BiasRows& args) {
  return ByType(args.dtype, [&]<typename T>() {
    return Launch<ElementProgram<BiasElements<T>>>(stream, args);
  });
}

Status WidenAll(Stream* stream, const WidenRows& args) {
  return ByType(args.dtype, [&]<typename T>() {
    return Launch<ElementProgram<WidenElements<T>>>(stream, args);
  });
}

Status Residual(Stream* stream, const ResidualRows& args) {
  return ByType(args.dtype,
                [&]<typename T>() { return Launch<NormProgram<ResidualRows, T>>(stream, args); });
}

Status CopyAll(Stream* stream, const CopyRows& args) {
  return Launch<ElementProgram<CopyElements>>(stream, args);
}

Status Keys(Stream* stream, const FoldKeys& args) { return Launch<FoldKeysProgram>(stream, args); }

Status Scores(Stream* stream, const FoldScores& args) {
  return Launch<FoldScoresProgram>(stream, args);
}

Status Values(Stream* stream, const FoldValues& args) {
  return ByType(args.dtype,
                [&]<typename T>() { return Launch<FoldValuesProgram<T>>(stream, args); });
}

}  // namespace

const RowsApi kRowsApi = {
    .embed = Embed,
    .bias = Bias,
    .widen = WidenAll,
    .residual = Residual,
    .copy = CopyAll,
    .fold_keys = Keys,
    .fold_scores = Scores,
    .fold_values = Values,
};

}  // namespace longview::kernels::cuda
