#include "models/luna/encoder.h"

#include <cstring>

#include "models/checkpoint/convert.h"
#include "models/encoder/residual_rows.h"
#include "models/layers/block_tail.h"
#include "models/layers/panels.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

LunaPlan MakePlan(const LunaContext& context, const RaggedBatch& batch) {
  return PlanLuna(*context.config, batch, context.tile_rows());
}

size_t Measured(const LunaContext& context, const LunaSizes& sizes) {
  Carver carver(nullptr);
  CarveLunaBuffers(context, sizes, carver);
  return carver.used();
}

}  // namespace

size_t LunaBatch::ScratchBytes(const LunaContext& context, Sequences sequences) {
  const RaggedBatch batch(sequences);
  return Measured(context, LunaSizesOf(context, batch, MakePlan(context, batch)));
}

LunaBatch::LunaBatch(const LunaContext& context, Sequences sequences, ScratchKeeper& scratch,
                     EncoderTimes* times)
    : context_(context),
      config_(*context.config),
      kernels_(ChooseRowKernels(context.compute)),
      width_(config_.width),
      row_bytes_(width_ * ElementBytes(context.compute)),
      zeros_(static_cast<size_t>(width_)),
      times_(times),
      batch_(sequences),
      plan_(MakePlan(context, batch_)),
      scratch_(scratch, Measured(context, LunaSizesOf(context, batch_, plan_))) {
  const LunaSizes sizes = LunaSizesOf(context_, batch_, plan_);
  Carver carver(scratch_.data());
  buffers_ = CarveLunaBuffers(context_, sizes, carver);
  // Rows past the end are read by last panels: their values never matter, but they must not be
  // numbers that slow arithmetic down.
  const auto tail = static_cast<size_t>(kPanelRows * row_bytes_);
  std::memset(buffers_.input + sizes.rows * row_bytes_, 0, tail);
  std::memset(buffers_.z + sizes.rows * row_bytes_, 0, tail);
  std::memset(buffers_.p_input + sizes.projected_rows * row_bytes_, 0, tail);
  std::memset(buffers_.packed + sizes.projected_rows * row_bytes_, 0, tail);
}

// Rows of tokens and of P move to the front, each in their own tensors.
void LunaBatch::LeaveDropped() {
  const std::vector<int32_t> projected = plan_.projected_offsets;
  int64_t to_projected = 0;
  const ResidualRows x{buffers_.x, buffers_.input, width_, row_bytes_};
  const ResidualRows p{buffers_.p, buffers_.p_input, width_, row_bytes_};
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    if (layer_ > 0) x.Move(from.row, to.row, rows);
    const int64_t count = projected[from.index + 1] - projected[from.index];
    if (layer_ > 0) p.Move(projected[from.index], to_projected, count);
    to_projected += count;
  });
  plan_ = MakePlan(context_, batch_);
}

void LunaBatch::Embed() {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  const LunaWeights& weights = *context_.weights;
  const VectorKernels& vectors = ChooseVectorKernels();
  const auto width = static_cast<size_t>(width_);
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* word = buffers_.thread_rows + 2 * width_ * thread;
    float* position = word + width_;
    batch_.ForRowsOf(thread, threads, [&](int64_t row, int s, int token) {
      const EncoderSequence& sequence = *batch_.sequences()[s];
      float* x = buffers_.x + row * width_;
      CopyFloat32(*weights.words, sequence.ids[token] * width_, {word, width});
      const int64_t place = sequence.positions[token] * width_;
      if (config_.positions == LunaPositions::kLearned) {
        CopyFloat32(*weights.positions, place, {position, width});
      } else if (config_.positions == LunaPositions::kSinusoidal) {
        std::memcpy(position, weights.sinusoids.data() + place, width * sizeof(float));
      } else {
        std::memset(position, 0, width * sizeof(float));
      }
      vectors.add_scaled(position, word, config_.embed_scale, width_);
      std::memcpy(x, position, width * sizeof(float));
      std::byte* input = buffers_.input + row * row_bytes_;
      if (config_.embedding_norm) {
        kernels_.residual_norm(x, nullptr, zeros_.data(), weights.embedding_norm.view(), width_,
                               input);
      } else if (!pre_norm() && HasOwnInput(context_)) {
        kernels_.narrow(x, width_, input);
      }
    });
  });
}

void LunaBatch::EnterProjected() {
  for (int s = 0; s < batch_.size(); ++s) {
    const int64_t first = plan_.projected_offsets[s];
    const int64_t count = plan_.projected_offsets[s + 1] - first;
    std::memcpy(buffers_.p + first * width_, context_.weights->projected.data(),
                static_cast<size_t>(count * width_) * sizeof(float));
  }
  if (pre_norm() || !HasOwnInput(context_)) return;
  for (int64_t row = 0; row < plan_.projected_rows(); ++row) {
    kernels_.narrow(buffers_.p + row * width_, width_, buffers_.p_input + row * row_bytes_);
  }
}

void LunaBatch::NormRows(float* x, std::byte* input, int64_t rows, const Norm& norm) {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  ParallelRanges(*context_.pool, rows, 8, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      kernels_.residual_prenorm(x + row * width_, nullptr, zeros_.data(), norm.view(), width_,
                                input + row * row_bytes_);
    }
  });
}

void LunaBatch::RunAttention(const kernels::Plan& plan, const kernels::Call& call) {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  RunSpans(context_, plan, call, buffers_.workspace);
}

// packed = Y_P, and the unpack's query of every token beside the pack's key and value.
void LunaBatch::Pack(const LunaLayer& layer) {
  const PanelSizes sizes = context_.weights->sizes;
  const auto project = [&](const DenseLayer& dense, const std::byte* input, int64_t rows,
                           std::byte* out) {
    const int64_t bytes = dense.out() * ElementBytes(context_.compute);
    ForEachRow(dense, input, rows, sizes, *context_.pool, times_, [&](int64_t row, std::byte* y) {
      kernels_.bias_copy(y, dense.bias.data(), dense.out(), out + row * bytes);
    });
  };
  project(layer.project, buffers_.input, batch_.rows(), buffers_.projections);
  project(layer.pack_query, buffers_.p_input, plan_.projected_rows(), buffers_.pack_queries);
  std::vector<kernels::Source> sources;
  RunAttention(plan_.pack, LunaPackCall(context_, buffers_, sources));
  project(layer.unpack, buffers_.packed, plan_.projected_rows(), buffers_.unpack_keys);
}

void LunaBatch::Unpack(const LunaLayer& layer) {
  std::vector<kernels::Source> sources;
  const kernels::Call call = LunaUnpackCall(context_, buffers_, last(), sources);
  if (last()) {
    const int64_t stride = layer.project.out() * ElementBytes(context_.compute);
    for (int64_t i = 0; i < plan_.wanted(); ++i) {
      std::memcpy(buffers_.queries + i * row_bytes_,
                  buffers_.projections + plan_.wanted_rows[i] * stride,
                  static_cast<size_t>(row_bytes_));
    }
  }
  RunAttention(last() ? plan_.unpack_wanted : plan_.unpack, call);
}

// p takes the packed context as it is: no output projection, no feed-forward.
void LunaBatch::UpdateProjected(const LunaLayer& layer) {
  const LunaWeights& weights = *context_.weights;
  const Norm* norm = &layer.projected_norm;
  if (pre_norm()) {
    norm = last() ? &weights.final_projected_norm : &weights.layer(layer_ + 1).projected_norm;
  }
  const auto add = pre_norm() ? kernels_.residual_prenorm : kernels_.residual_norm;
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  ParallelRanges(*context_.pool, plan_.projected_rows(), 8, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      add(buffers_.p + row * width_, buffers_.packed + row * row_bytes_, zeros_.data(),
          norm->view(), width_, buffers_.p_input + row * row_bytes_);
    }
  });
}

// The residual rows that the heads read move to the front.
void LunaBatch::KeepWanted() {
  const ResidualRows x{buffers_.x, nullptr, width_, row_bytes_};
  for (int64_t i = 0; i < plan_.wanted(); ++i) x.Move(plan_.wanted_rows[i], i);
}

void LunaBatch::FinishLayer(const LunaLayer& layer) {
  const LunaWeights& weights = *context_.weights;
  BlockTail tail;
  tail.out = &layer.out;
  tail.after_attention = pre_norm() ? &layer.output_norm : &layer.attention_norm;
  tail.expand = &layer.expand;
  tail.contract = &layer.contract;
  tail.after_layer = &layer.output_norm;
  if (pre_norm()) {
    tail.after_layer = last() ? &weights.final_norm : &weights.layer(layer_ + 1).attention_norm;
  }
  tail.activation = config_.activation;
  tail.norms = config_.norms;
  RunBlockTail(tail, {buffers_.x, buffers_.input, buffers_.z, outputs()}, weights.sizes,
               *context_.pool, times_);
}

void LunaBatch::FinishModel() {
  if (!pre_norm()) return;
  const LunaWeights& weights = *context_.weights;
  NormLastRows(weights.final_norm, buffers_.x, plan_.wanted(), *context_.pool);
  NormLastRows(weights.final_projected_norm, buffers_.p, plan_.projected_rows(), *context_.pool);
}

bool LunaBatch::Advance() {
  if (batch_.drops_pending()) LeaveDropped();
  if (batch_.size() == 0 || layer_ >= config_.layers) return false;
  const LunaLayer& layer = context_.weights->layer(layer_);
  if (layer_ == 0) {
    Embed();
    EnterProjected();
    if (pre_norm()) {
      NormRows(buffers_.x, buffers_.input, batch_.rows(), layer.attention_norm);
      NormRows(buffers_.p, buffers_.p_input, plan_.projected_rows(), layer.projected_norm);
    }
  }
  Pack(layer);
  Unpack(layer);
  UpdateProjected(layer);
  if (last()) KeepWanted();
  FinishLayer(layer);
  if (last()) FinishModel();
  return ++layer_ < config_.layers;
}

const float* LunaBatch::Rows(int i) const {
  return buffers_.x + plan_.wanted_offsets[batch_.PlaceOf(i)] * width_;
}

LunaProjectedRows LunaBatch::Projected(int i) const {
  const int place = batch_.PlaceOf(i);
  const int64_t first = plan_.projected_offsets[place];
  return {buffers_.p + first * width_, plan_.projected_offsets[place + 1] - first};
}

std::vector<HeadOutput> LunaBatch::ComputeHeads(std::span<const HeadInput> inputs) const {
  return ComputeLunaHeads(
      context_, [&](int i) { return Projected(i); }, inputs);
}

}  // namespace longview::models
