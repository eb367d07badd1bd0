#include "tests/bench/full_cache_decoder.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kernels/span/paged_planner.h"
#include "models/checkpoint/convert.h"

namespace longview::bench {

using kernels::CacheStep;
using models::DenseLayer;
using models::ElementBytes;
using models::LsLmLayer;

FullCacheDecoder::FullCacheDecoder(const models::LsDecoder& decoder, int sequences, int64_t tokens)
    : context_(decoder.context()),
      config_(decoder.config()),
      rows_(models::ChooseRowKernels(context_.compute)),
      shape_(FullShape(config_, context_.block_type())),
      budget_(sequences * shape_.SequenceBytes(0, tokens, 1)),
      cache_(kernels::ProjectionCache::Create(shape_, {}, &budget_)),
      step_(cache_.get()) {
  const int64_t rows = models::PaddedRows(sequences), width = config_.width;
  const auto bytes = [&](int64_t columns, int64_t size) {
    return static_cast<size_t>(rows * columns * size);
  };
  const int64_t element = ElementBytes(context_.compute);
  x_ = models::Scratch(bytes(width, sizeof(float)));
  input_ = models::Scratch(bytes(width, element));
  queries_ = models::Scratch(bytes(width, element));
  keys_ = models::Scratch(bytes(width, element));
  values_ = models::Scratch(bytes(width, element));
  z_ = models::Scratch(bytes(width, element));
  const int64_t widest = std::max<int64_t>(3 * width + config_.columns(), config_.intermediate);
  for (models::Scratch& products : products_) {
    products = models::Scratch(models::RowLinear::ScratchBytes(widest, widest, context_.compute));
  }
  logits_.resize(static_cast<size_t>(sequences) * config_.vocab);
}

const std::byte* FullCacheDecoder::Multiply(const DenseLayer& layer, const std::byte* x,
                                            int which) {
  if (layer.rows != nullptr) {
    return layer.rows->linear.Multiply(x, count_, products_[which].data(), *context_.pool);
  }
  const int64_t out_bytes = layer.out() * ElementBytes(context_.compute);
  ForEachPanel(layer.linear, x, count_, [&](int64_t row, int64_t used, void* y) {
    std::memcpy(products_[which].data() + row * out_bytes, y,
                static_cast<size_t>(used * out_bytes));
  });
  return products_[which].data();
}

void FullCacheDecoder::Attend(int layer, const kernels::Plan& plan) {
  const int64_t width = config_.width;
  const kernels::Source source = cache_->PagedSource(0, layer, step_.table(CacheStep::kDecode, 0));
  kernels::Call call;
  call.q = queries_.data();
  call.out = z_.data();
  call.dtype = models::SpanType(context_.compute);
  call.q_row_stride = call.out_row_stride = width;
  call.q_head_stride = call.out_head_stride = config_.head_dim();
  call.Dk = call.Dv = config_.head_dim();
  call.H = config_.heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim()));
  call.sources = {&source, 1};
  const kernels::WorkspaceBytes bytes = Measure(plan, call, context_.isa);
  const size_t total = bytes.total(context_.pool->threads());
  if (workspace_.bytes() < total) workspace_ = models::Scratch(total);
  RunPlan(plan, call, kernels::CarveWorkspace(workspace_.data(), bytes), *context_.pool,
          context_.isa);
}

void FullCacheDecoder::Layer(int index, const kernels::Plan& plan) {
  const LsLmLayer& layer = context_.weights->layers[index];
  const int64_t width = config_.width, element = ElementBytes(context_.compute);
  const int64_t row_bytes = width * element;
  const bool last = index + 1 == config_.layers;
  const models::Norm* next = last ? nullptr : &context_.weights->layers[index + 1].norm1;
  auto* x = reinterpret_cast<float*>(x_.data());
  const std::byte* y = Multiply(layer.project, input_.data(), 0);
  for (int64_t r = 0; r < count_; ++r) {
    const std::byte* of_row = y + r * layer.project.out() * element;
    const float* bias = layer.project.bias.data();
    const models::NormWeights norm = layer.window_norm.view();
    rows_.bias_copy(of_row, bias, width, queries_.data() + r * row_bytes);
    rows_.bias_norm(of_row + row_bytes, bias + width, norm, width, keys_.data() + r * row_bytes);
    rows_.bias_norm(of_row + 2 * row_bytes, bias + 2 * width, norm, width,
                    values_.data() + r * row_bytes);
  }
  kernels::ProjectionCache::Rows rows;
  rows.k = keys_.data();
  rows.v = values_.data();
  rows.dtype = models::SpanType(context_.compute);
  rows.k_row_stride = rows.v_row_stride = width;
  rows.k_head_stride = rows.v_head_stride = config_.head_dim();
  cache_->Write(0, index, step_.places(CacheStep::kDecode, 0), rows, *context_.pool);
  Attend(index, plan);
  const auto add = [&](const std::byte* from, const DenseLayer& dense, const models::Norm* norm) {
    for (int64_t r = 0; r < count_; ++r) {
      std::byte* copy = input_.data() + r * row_bytes;
      if (norm != nullptr) {
        rows_.residual_norm(x + r * width, from + r * row_bytes, dense.bias.data(), norm->view(),
                            width, copy);
      } else {
        rows_.residual_add(x + r * width, from + r * row_bytes, dense.bias.data(), width, copy);
      }
      // The copy is skipped where the stream has the element type already.
      if (context_.compute == models::Compute::kFp32) std::memcpy(copy, x + r * width, row_bytes);
    }
  };
  add(Multiply(layer.out, z_.data(), 0), layer.out, &layer.norm2);
  auto* expanded = const_cast<std::byte*>(Multiply(layer.expand, input_.data(), 1));
  for (int64_t r = 0; r < count_; ++r) {
    rows_.bias_act(expanded + r * layer.expand.out() * element, layer.expand.bias.data(),
                   layer.expand.out(), config_.activation);
  }
  add(Multiply(layer.contract, expanded, 0), layer.contract, next);
}

std::vector<float> FullCacheDecoder::Step(std::span<kernels::CacheSequence* const> sequences) {
  const int64_t width = config_.width;
  count_ = static_cast<int64_t>(sequences.size());
  kernels::PagedPattern pattern;
  pattern.heads = config_.heads;
  std::vector<kernels::PagedSequence> batch(sequences.size());
  const std::vector<float> zeros(static_cast<size_t>(width));
  auto* x = reinterpret_cast<float*>(x_.data());
  for (int64_t r = 0; r < count_; ++r) {
    batch[r].query_row0 = static_cast<int32_t>(r);
    batch[r].tokens = 1;
    batch[r].start = static_cast<int32_t>(sequences[r]->tokens());
    if (!step_.Append(CacheStep::kDecode, sequences[r], {&kNextId, 1})) std::abort();
    float* row = x + r * width;
    std::byte* copy = input_.data() + r * width * ElementBytes(context_.compute);
    models::CopyFloat32(*context_.weights->words, kNextId * width,
                        {row, static_cast<size_t>(width)});
    for (int64_t d = 0; d < width; ++d) row[d] *= std::sqrt(static_cast<float>(width));
    rows_.residual_norm(row, nullptr, zeros.data(), context_.weights->layers[0].norm1.view(), width,
                        copy);
    if (context_.compute == models::Compute::kFp32) std::memcpy(copy, row, width * sizeof(float));
  }
  const kernels::Plan plan = PlanPaged(pattern, batch);
  for (int i = 0; i < config_.layers; ++i) Layer(i, plan);
  const DenseLayer& logits = *context_.weights->logits;
  const std::byte* y = Multiply(logits, input_.data(), 0);
  for (int64_t r = 0; r < count_; ++r) {
    rows_.bias_widen(y + r * logits.out() * ElementBytes(context_.compute), logits.bias.data(),
                     logits.out(), logits_.data() + r * config_.vocab);
  }
  step_.End();
  return logits_;
}

}  // namespace longview::bench
