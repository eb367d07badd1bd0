#include "models/cst/lm_rows.h"

#include <cstring>
#include <span>

#include "models/layers/panels.h"
#include "models/parallel.h"

namespace longview::models {

void EmbedToken(const CstContext& context, int32_t id, int32_t position, int32_t type,
                float* scratch, float* out) {
  const CstConfig& config = *context.config;
  const CstWeights& weights = *context.weights;
  const VectorKernels& vectors = ChooseVectorKernels();
  const int64_t width = config.embedding_width;
  const std::span<float> part(scratch, static_cast<size_t>(width));
  std::memset(out, 0, part.size_bytes());
  weights.words.CopyRow(id, scratch);
  vectors.add_scaled(out, scratch, config.embedding_scale, width);
  if (weights.positions) {
    weights.positions.CopyRow(position, scratch);
    vectors.add_scaled(out, scratch, 1.0f, width);
  }
  if (config.types > 0) {
    vectors.add_scaled(out, weights.types.values() + type * width, 1.0f, width);
  }
  if (!config.embedding_norm) return;
  std::memset(scratch, 0, part.size_bytes());
  ChooseRowKernels(Compute::kFp32)
      .residual_norm(out, nullptr, scratch, weights.embedding_norm.host.view(), width, nullptr);
}

void ProjectEmbeddings(const CstContext& context, int64_t rows, const CstBuffers& buffers,
                       EncoderTimes* times) {
  if (buffers.embedded == nullptr) return;
  const DenseLayer& project = *context.weights->embedding_project.host;
  const RowKernels& kernels = ChooseRowKernels(context.compute);
  const int64_t width = context.config->width;
  ForEachRow(project, buffers.embedded, rows, project.linear.sizes(), *context.pool, times,
             [&](int64_t row, std::byte* y) {
               kernels.bias_widen(y, project.bias.data(), width, buffers.x + row * width);
             });
}

void EnterLayers(const CstContext& context, int64_t rows, const CstBuffers& buffers) {
  if (buffers.input == reinterpret_cast<std::byte*>(buffers.x)) return;
  const RowKernels& kernels = ChooseRowKernels(context.compute);
  const NormWeights norm = context.weights->layers[0].attention_norm.host.view();
  const int64_t width = context.config->width;
  const bool normalises = context.config->norms == NormPlace::kPre;
  ParallelRanges(*context.pool, rows, 8, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      const float* x = buffers.x + row * width;
      std::byte* input = buffers.input + row * width * ElementBytes(context.compute);
      normalises ? kernels.norm(x, norm, width, input) : kernels.narrow(x, width, input);
    }
  });
}

BlockTail TailOf(const CstContext& context, int layer) {
  const CstWeights& weights = *context.weights;
  const CstLayer& own = weights.layers[static_cast<size_t>(layer)];
  const bool post = context.config->norms == NormPlace::kPost;
  BlockTail tail;
  tail.out = own.out.host ? &*own.out.host : nullptr;
  tail.after_attention = post ? &own.attention_norm.host : &own.ffn_norm.host;
  tail.expand = &*own.expand.host;
  tail.contract = &*own.contract.host;
  if (post) {
    tail.after_layer = &own.ffn_norm.host;
  } else if (layer + 1 < context.config->layers) {
    tail.after_layer = &weights.layers[static_cast<size_t>(layer) + 1].attention_norm.host;
  }
  tail.activation = context.config->activation;
  tail.norms = context.config->norms;
  return tail;
}

}  // namespace longview::models
