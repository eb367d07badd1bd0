#include "models/transformer_ls_text/encoder.h"

#include <cstring>

#include "models/checkpoint/convert.h"
#include "models/layers/block_tail.h"
#include "models/layers/landmark_row.h"
#include "models/layers/panels.h"
#include "models/parallel.h"
#include "models/transformer_ls_text/heads.h"

namespace longview::models {
namespace {

size_t Measured(const LsTextContext& context, const LsTextSizes& sizes) {
  Carver carver(nullptr);
  CarveLsTextBuffers(context, sizes, carver);
  return carver.used();
}

}  // namespace

LsTextBatch::Plans LsTextBatch::MakePlans(const LsTextContext& context, const RaggedBatch& batch) {
  const LsTextConfig& config = *context.config;
  Plans plans;
  for (int layer = 0; layer < config.layers; ++layer) {
    const bool has_class = config.HasClass(layer);
    if (plans.contains(has_class)) continue;
    plans.emplace(has_class, PlanLsText(config, batch, has_class, context.tile_rows()));
  }
  return plans;
}

LsTextSizes LsTextBatch::SizesOf(const LsTextContext& context, const Plans& plans,
                                 const RaggedBatch& batch) {
  LsTextSizes sizes;
  for (const auto& [has_class, plan] : plans) sizes.Include(context, plan, batch.offsets());
  return sizes;
}

size_t LsTextBatch::ScratchBytes(const LsTextContext& context, Sequences sequences) {
  const RaggedBatch batch(sequences);
  return Measured(context, SizesOf(context, MakePlans(context, batch), batch));
}

LsTextBatch::LsTextBatch(const LsTextContext& context, Sequences sequences, ScratchKeeper& scratch,
                         EncoderTimes* times)
    : context_(context),
      config_(*context.config),
      kernels_(ChooseRowKernels(context.compute)),
      width_(config_.width),
      row_bytes_(width_ * ElementBytes(context.compute)),
      zeros_(static_cast<size_t>(width_)),
      times_(times),
      batch_(sequences),
      plans_(MakePlans(context, batch_)),
      scratch_(scratch, Measured(context, SizesOf(context, plans_, batch_))) {
  const LsTextSizes sizes = SizesOf(context_, plans_, batch_);
  Carver carver(scratch_.data());
  buffers_ = CarveLsTextBuffers(context_, sizes, carver);
  // Rows past the end are read by last panels: their values never matter, but they must not be
  // numbers that slow arithmetic down.
  const auto tail = static_cast<size_t>(kPanelRows * row_bytes_);
  std::memset(buffers_.input + sizes.rows * row_bytes_, 0, tail);
  std::memset(buffers_.z + sizes.rows * row_bytes_, 0, tail);
}

void LsTextBatch::LeaveDropped() {
  const int64_t old_class0 = batch_.rows();
  const bool moves = layer_ > 0;
  // Class rows carried from earlier layers follow the tokens; where they start is known only when
  // all sequences have moved.
  const bool carried = moves && has_class_now() && config_.HasClass(layer_ - 1);
  std::vector<int> stayed;
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    stayed.push_back(from.index);
    if (moves) RowsBeside(buffers_.input).Move(from.row, to.row, rows);
  });
  for (size_t s = 0; carried && s < stayed.size(); ++s) {
    RowsBeside(buffers_.input)
        .Move(old_class0 + stayed[s], batch_.rows() + static_cast<int64_t>(s));
  }
  plans_ = MakePlans(context_, batch_);
}

void LsTextBatch::Embed() {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  const LsTextWeights& weights = *context_.weights;
  const VectorKernels& vectors = ChooseVectorKernels();
  const auto width = static_cast<size_t>(width_);
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* position = buffers_.thread_rows + 2 * width_ * thread;
    batch_.ForRowsOf(thread, threads, [&](int64_t row, int s, int token) {
      const EncoderSequence& sequence = *batch_.sequences()[s];
      float* x = buffers_.x + row * width_;
      CopyFloat32(*weights.words, sequence.ids[token] * width_, {x, width});
      CopyFloat32(*weights.positions, sequence.positions[token] * width_, {position, width});
      vectors.add_scaled(x, position, 1.0f, width_);
    });
  });
}

// The class vector as it enters: the learned one, or the token vocab_size - 1 at position 0.
void LsTextBatch::EmbedClassRows() {
  const LsTextWeights& weights = *context_.weights;
  const auto width = static_cast<size_t>(width_);
  std::vector<float> entry = weights.class_vector;
  if (config_.cls == LsClass::kFirstToken) {
    entry.resize(width);
    std::vector<float> position(width);
    CopyFloat32(*weights.words, (config_.vocab - 1) * width_, entry);
    CopyFloat32(*weights.positions, 0, position);
    ChooseVectorKernels().add_scaled(entry.data(), position.data(), 1.0f, width_);
  }
  for (int s = 0; s < batch_.size(); ++s) {
    std::memcpy(buffers_.x + (batch_.rows() + s) * width_, entry.data(), width * sizeof(float));
  }
}

// input = LN1(x) of the tokens, before the first layer; later the layer before leaves it there.
void LsTextBatch::NormTokens(const Norm& norm) {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  ParallelRanges(*context_.pool, batch_.rows(), 8, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      kernels_.residual_prenorm(buffers_.x + row * width_, nullptr, zeros_.data(), norm.view(),
                                width_, Input(row));
    }
  });
}

// A learned class vector enters attention as it is, the class token normalised like any token.
void LsTextBatch::ReadClassRows(const Norm& norm) {
  for (int64_t row = batch_.rows(); row < batch_.rows() + batch_.size(); ++row) {
    float* x = buffers_.x + row * width_;
    if (config_.cls == LsClass::kFirstToken) {
      kernels_.residual_prenorm(x, nullptr, zeros_.data(), norm.view(), width_, Input(row));
    } else {
      kernels_.narrow(x, width_, Input(row));
    }
  }
}

// q, k, v and projection scores; keys and values of tokens normalised, the class rows' not.
void LsTextBatch::Project(const LsTextLayer& layer, const LsTextPlan& plan) {
  const float* bias = layer.project.bias.data();
  const NormWeights norm = layer.token_norm.view();
  const int columns = config_.columns();
  ForEachRow(layer.project, buffers_.input, plan.rows(), context_.weights->sizes, *context_.pool,
             times_, [&](int64_t row, std::byte* y) {
               std::byte* qkv = buffers_.qkv + 3 * row * row_bytes_;
               if (row >= plan.token_rows) {
                 kernels_.bias_copy(y, bias, 3 * width_, qkv);
                 return;
               }
               kernels_.bias_copy(y, bias, width_, qkv);
               for (int part = 1; part < 3; ++part) {
                 kernels_.bias_norm(y + part * row_bytes_, bias + part * width_, norm, width_,
                                    qkv + part * row_bytes_);
               }
               kernels_.bias_widen(y + 3 * row_bytes_, bias + 3 * width_, columns,
                                   buffers_.scores + row * columns);
             });
}

// One row of the projected keys and values: the class vector's, or a landmark with the slices of
// all heads side by side; normalised together.
void LsTextBatch::PlaceLandmark(const LsTextLayer& layer, const LsTextPlan& plan, int64_t row,
                                float* scratch) {
  const int64_t sequence = row / plan.landmarks;
  const int64_t landmark = row % plan.landmarks - (plan.has_class ? 1 : 0);
  for (int part = 0; part < 2; ++part) {
    if (landmark < 0) {
      const std::byte* own =
          buffers_.qkv + (3 * (plan.token_rows + sequence) + 1 + part) * row_bytes_;
      kernels_.bias_widen(own, zeros_.data(), width_, scratch);
    } else {
      const float* pooled = part == 0 ? buffers_.pooled_keys : buffers_.pooled_values;
      JoinLandmark(pooled, {config_.heads, config_.rank, config_.head_dim()}, sequence, landmark,
                   scratch);
    }
    kernels_.residual_prenorm(scratch, nullptr, zeros_.data(), layer.landmark_norm.view(), width_,
                              buffers_.projected + (2 * row + part) * row_bytes_);
  }
}

void LsTextBatch::PoolLandmarks(const LsTextLayer& layer, const LsTextPlan& plan) {
  if (config_.rank > 0) {
    std::vector<kernels::PoolValue> values;
    kernels::PoolCall call = LsPoolCall(context_, buffers_, batch_.offsets(), values);
    call.visible = batch_.roles().data();
    PoolSegments(call, kernels::CarveWorkspace(buffers_.workspace, MeasurePool(call)),
                 *context_.pool);
  }
  const int64_t rows = plan.projected_rows();
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* scratch = buffers_.thread_rows + 2 * width_ * thread;
    for (int64_t row = rows * thread / threads; row < rows * (thread + 1) / threads; ++row) {
      PlaceLandmark(layer, plan, row, scratch);
    }
  });
}

void LsTextBatch::Attend(const LsTextPlan& plan) {
  std::vector<kernels::Source> sources;
  RunSpans(context_, plan.tokens, LsTokenCall(context_, buffers_, sources), buffers_.workspace);
  RunSpans(context_, plan.class_rows, LsClassCall(context_, buffers_, sources), buffers_.workspace);
}

// The wanted tokens come first, then the class rows.
int64_t LsTextBatch::KeepWanted(const LsTextPlan& plan) {
  const ResidualRows rows = RowsBeside(buffers_.z);
  class_row0_ = KeepWantedRows(batch_, rows, first_row_);
  const int64_t class_rows = plan.rows() - plan.token_rows;
  rows.Move(plan.token_rows, class_row0_, class_rows);
  return class_row0_ + class_rows;
}

void LsTextBatch::FinishLayer(const LsTextLayer& layer, int64_t rows) {
  const LsTextWeights& weights = *context_.weights;
  const bool last = layer_ + 1 == config_.layers;
  BlockTail tail;
  tail.out = &layer.out;
  tail.after_attention = &layer.mlp_norm;
  tail.expand = &layer.expand;
  tail.contract = &layer.contract;
  tail.after_layer = last ? &weights.norm : &weights.layer(layer_ + 1).attention_norm;
  tail.norms = NormPlace::kPre;
  RunBlockTail(tail, {buffers_.x, buffers_.input, buffers_.z, rows}, weights.sizes, *context_.pool,
               times_);
}

bool LsTextBatch::Advance() {
  if (batch_.drops_pending()) LeaveDropped();
  if (batch_.size() == 0 || layer_ >= config_.layers) return false;
  const LsTextPlan& plan = plans_.at(has_class_now());
  const LsTextLayer& layer = context_.weights->layer(layer_);
  if (layer_ == 0) {
    Embed();
    NormTokens(layer.attention_norm);
  }
  if (plan.has_class) {
    if (layer_ == 0 || !config_.HasClass(layer_ - 1)) EmbedClassRows();
    ReadClassRows(layer.attention_norm);
  }
  Project(layer, plan);
  {
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    PoolLandmarks(layer, plan);
    Attend(plan);
  }
  const bool last = layer_ + 1 == config_.layers;
  const int64_t rows = last ? KeepWanted(plan) : plan.rows();
  FinishLayer(layer, rows);
  if (last) NormLastRows(context_.weights->norm, buffers_.x, rows, *context_.pool);
  return ++layer_ < config_.layers;
}

const float* LsTextBatch::Rows(int i) const {
  return buffers_.x + first_row_[batch_.PlaceOf(i)] * width_;
}

const float* LsTextBatch::ClassRow(int i) const {
  return buffers_.x + (class_row0_ + batch_.PlaceOf(i)) * width_;
}

std::vector<HeadOutput> LsTextBatch::ComputeHeads(std::span<const HeadInput> inputs) const {
  return ComputeLsTextHeads(
      context_, [&](int i) { return ClassRow(i); }, inputs);
}

}  // namespace longview::models
