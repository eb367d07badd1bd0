#include "models/cst/encoder.h"

#include <cstring>

#include "kernels/pool/place_mix.h"
#include "models/cst/heads.h"
#include "models/cst/rows.h"
#include "models/layers/panels.h"
#include "models/layers/span_rows.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

size_t Measured(const CstContext& context, const CstPlan& plan) {
  Carver carver(nullptr);
  CarveCstBuffers(context, CstSizesOf(context, plan), carver);
  return carver.used();
}

}  // namespace

CstPlan CstBatch::MakePlan(const CstContext& context, const RaggedBatch& batch) {
  return PlanCst(*context.config, batch, context.tile_rows());
}

size_t CstBatch::ScratchBytes(const CstContext& context, Sequences sequences) {
  return Measured(context, MakePlan(context, RaggedBatch(sequences)));
}

CstBatch::CstBatch(const CstContext& context, Sequences sequences, ScratchKeeper& scratch,
                   EncoderTimes* times)
    : context_(context),
      config_(*context.config),
      weights_(*context.weights),
      kernels_(ChooseRowKernels(context.compute)),
      width_(config_.width),
      row_bytes_(width_ * ElementBytes(context.compute)),
      zeros_(static_cast<size_t>(width_)),
      no_mixer_bias_(static_cast<size_t>(config_.mixer_size * width_)),
      times_(times),
      batch_(sequences),
      plan_(MakePlan(context, batch_)),
      scratch_(scratch, Measured(context, plan_)) {
  const CstSizes sizes = CstSizesOf(context_, plan_);
  Carver carver(scratch_.data());
  buffers_ = CarveCstBuffers(context_, sizes, carver);
  ClearTails(context_, sizes, buffers_);
}

void CstBatch::LeaveDropped() {
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    if (layer_ > 0) RowsBeside(buffers_.input).Move(from.row, to.row, rows);
  });
  plan_ = MakePlan(context_, batch_);
}

void CstBatch::Embed() {
  const int threads = context_.pool->threads();
  const int64_t width = config_.embedding_width;
  {
    const Stopwatch watch(times_ ? &times_->rest : nullptr);
    kernels::RunOnThreads(*context_.pool, [&](int thread) {
      float* scratch = buffers_.thread_rows + ThreadRowFloats(config_) * thread;
      batch_.ForRowsOf(thread, threads, [&](int64_t row, int s, int token) {
        const EncoderSequence& sequence = *batch_.sequences()[s];
        const bool projects = buffers_.embedded != nullptr;
        float* sum = projects ? scratch + width : buffers_.x + row * width;
        EmbedToken(context_, sequence.ids[token], sequence.positions[token],
                   sequence.types.empty() ? 0 : sequence.types[token], scratch, sum);
        if (!projects) return;
        kernels_.narrow(sum, width,
                        buffers_.embedded + row * width * ElementBytes(context_.compute));
      });
    });
  }
  ProjectEmbeddings(context_, plan_.rows(), buffers_, times_);
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  EnterLayers(context_, plan_.rows(), buffers_);
}

void CstBatch::AttendTokens(const CstLayer& layer, const std::byte* from) {
  ForEachRow(*layer.token_project, from, plan_.rows(), weights_.sizes, *context_.pool, times_,
             [&](int64_t row, std::byte* y) {
               kernels_.bias_copy(y, layer.token_bias.Row(plan_.PlaceOf(row)), 3 * width_,
                                  buffers_.qkv + 3 * row * row_bytes_);
             });
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  MakeTokenCall(context_, &layer, buffers_, call_);
  Run(plan_.tokens);
}

void CstBatch::Run(const kernels::Plan& plan) {
  RunSpans(context_, plan, call_.call, buffers_.workspace);
}

// One slice through both linears, masked and absent places reading as zeros. `from` may be z: the
// first linear has read the slice when the second writes it.
void CstBatch::MixSlice(const CstMixer& mixer, const CstSlice& slice, const std::byte* from,
                        float* scratch) {
  float* hidden = scratch;
  float* mixed = scratch + config_.mixer_size * width_;
  kernels::PlaceMix mix;
  mix.channels = config_.width;
  mix.out_stride = width_;
  mix.weights = mixer.in_weights.data();
  mix.bias = mixer.in_bias.data();
  mix.outputs = mix.wanted = config_.mixer_size;
  mix.rows = from + slice.row0 * row_bytes_;
  mix.dtype = SpanType(context_.compute);
  mix.row_stride = width_;
  mix.visible = batch_.roles().data() + slice.row0;
  mix.places = slice.rows;
  mix.out = hidden;
  MixPlaces(mix);
  ChooseRowKernels(Compute::kFp32)
      .bias_act(hidden, no_mixer_bias_.data(), config_.mixer_size * width_, Activation::kGelu);
  mix.weights = mixer.out_weights.data();
  mix.bias = mixer.out_bias.data();
  mix.outputs = config_.slice;
  mix.wanted = slice.rows;
  mix.rows = hidden;
  mix.dtype = kernels::DType::kFloat32;
  mix.visible = nullptr;
  mix.places = config_.mixer_size;
  mix.out = mixed;
  MixPlaces(mix);
  for (int32_t i = 0; i < slice.rows; ++i) {
    kernels_.narrow(mixed + i * width_, width_, buffers_.z + (slice.row0 + i) * row_bytes_);
  }
}

void CstBatch::MixTokens(const CstLayer& layer, const std::byte* from) {
  if (!layer.mixer) return AttendTokens(layer, from);
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  const int threads = context_.pool->threads();
  const int64_t slices = plan_.slice_rows();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* scratch = buffers_.thread_rows + ThreadRowFloats(config_) * thread;
    for (int64_t s = slices * thread / threads; s < slices * (thread + 1) / threads; ++s) {
      MixSlice(*layer.mixer, plan_.slice_list[static_cast<size_t>(s)], from, scratch);
    }
  });
  for (int64_t row = 0; row < plan_.rows(); ++row) {
    if (plan_.slice_of_row[static_cast<size_t>(row)] >= 0) continue;
    std::memset(buffers_.z + row * row_bytes_, 0, static_cast<size_t>(row_bytes_));
  }
}

// A slice's tokens end to end through a linear; masked and absent ones are zeros.
void CstBatch::PoolLinearly(const DenseLayer& pool, const std::byte* from) {
  const int64_t slice_bytes = config_.slice * row_bytes_;
  ParallelRanges(*context_.pool, plan_.slice_rows(), 4, [&](long begin, long end) {
    for (long s = begin; s < end; ++s) {
      const CstSlice& slice = plan_.slice_list[static_cast<size_t>(s)];
      std::byte* tokens = buffers_.slice_tokens + s * slice_bytes;
      std::memset(tokens, 0, static_cast<size_t>(slice_bytes));
      for (int32_t i = 0; i < slice.rows; ++i) {
        if (batch_.roles()[static_cast<size_t>(slice.row0 + i)] == 0) continue;
        std::memcpy(tokens + i * row_bytes_, from + (slice.row0 + i) * row_bytes_,
                    static_cast<size_t>(row_bytes_));
      }
    }
  });
  ForEachRow(pool, buffers_.slice_tokens, plan_.slice_rows(), weights_.sizes, *context_.pool,
             times_, [&](int64_t s, std::byte* y) {
               float* pooled = buffers_.pooled + s * width_;
               // Not even the bias of a slice without tokens.
               if (plan_.slice_list[static_cast<size_t>(s)].visible == 0) {
                 std::memset(pooled, 0, static_cast<size_t>(width_) * sizeof(float));
               } else {
                 kernels_.bias_widen(y, pool.bias.data(), width_, pooled);
               }
             });
}

void CstBatch::Pool(const CstLayer& layer, const std::byte* from) {
  if (layer.pool) {
    PoolLinearly(*layer.pool, from);
  } else {
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    pieces_.clear();
    for (const CstSlice& slice : plan_.slice_list) {
      float* out = buffers_.pooled + static_cast<int64_t>(pieces_.size()) * width_;
      pieces_.push_back({slice.row0, slice.rows, true, slice.visible, out});
    }
    kernels::SlicePoolCall pool;
    pool.pooling = config_.slice_pooling == CstPooling::kMax ? kernels::SlicePooling::kMax
                                                             : kernels::SlicePooling::kMean;
    pool.rows = from;
    pool.dtype = SpanType(context_.compute);
    pool.row_stride = width_;
    pool.channels = config_.width;
    pool.visible = batch_.roles().data();
    pool.pieces = pieces_;
    PoolSlices(pool, *context_.pool);
  }
  if (context_.compute == Compute::kFp32) return;
  ParallelRanges(*context_.pool, plan_.slice_rows(), 8, [&](long begin, long end) {
    for (long s = begin; s < end; ++s) {
      kernels_.narrow(buffers_.pooled + s * width_, width_, buffers_.slice_input + s * row_bytes_);
    }
  });
}

void CstBatch::AttendSlices(const CstLayer& layer, const std::byte* from) {
  Pool(layer, from);
  ForEachRow(layer.slice_project(), buffers_.slice_input, plan_.slice_rows(), weights_.sizes,
             *context_.pool, times_, [&](int64_t s, std::byte* y) {
               const int32_t number = plan_.slice_list[static_cast<size_t>(s)].number;
               kernels_.bias_copy(y, layer.slice_bias.Row(number), 3 * width_,
                                  buffers_.slice_qkv + 3 * s * row_bytes_);
             });
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  MakeSliceCall(context_, buffers_, call_);
  Run(plan_.slices);
  if (context_.compute == Compute::kFp32) return;
  ParallelRanges(*context_.pool, plan_.slice_rows(), 8, [&](long begin, long end) {
    for (long s = begin; s < end; ++s) {
      kernels_.bias_widen(buffers_.slice_z + s * row_bytes_, zeros_.data(), width_,
                          buffers_.slice_sum + s * width_);
    }
  });
}

void CstBatch::AddSlices(const std::byte* from) {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  ParallelRanges(*context_.pool, plan_.rows(), 8, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      const int32_t slice = plan_.slice_of_row[static_cast<size_t>(row)];
      const float* add = slice < 0 ? zeros_.data() : buffers_.slice_sum + slice * width_;
      kernels_.bias_copy(from + row * row_bytes_, add, width_, buffers_.z + row * row_bytes_);
    }
  });
}

void CstBatch::Attend(const CstLayer& layer) {
  switch (config_.order) {
    case CstOrder::kComposition:
      MixTokens(layer, buffers_.input);
      AttendSlices(layer, buffers_.z);
      break;
    case CstOrder::kParallel:
      AttendSlices(layer, buffers_.input);
      MixTokens(layer, buffers_.input);
      break;
    case CstOrder::kGlobalFirst:
      AttendSlices(layer, buffers_.input);
      AddSlices(buffers_.input);
      MixTokens(layer, buffers_.z);
      break;
  }
  AddSlices(buffers_.z);
}

bool CstBatch::Advance() {
  if (batch_.drops_pending()) LeaveDropped();
  if (batch_.size() == 0 || layer_ >= config_.layers) return false;
  const CstLayer& layer = weights_.layers[layer_];
  if (layer_ == 0) Embed();
  Attend(layer);
  const bool last = layer_ + 1 == config_.layers;
  const int64_t rows =
      last ? KeepWantedRows(batch_, RowsBeside(buffers_.z), first_row_) : plan_.rows();
  RunBlockTail(TailOf(context_, layer_), {buffers_.x, buffers_.input, buffers_.z, rows},
               weights_.sizes, *context_.pool, times_);
  if (last && weights_.norm) NormLastRows(*weights_.norm, buffers_.x, rows, *context_.pool);
  return ++layer_ < config_.layers;
}

const float* CstBatch::Rows(int i) const {
  return buffers_.x + first_row_[batch_.PlaceOf(i)] * width_;
}

std::vector<HeadOutput> CstBatch::ComputeHeads(std::span<const HeadInput> inputs) const {
  return ComputeCstHeads(context_, inputs);
}

}  // namespace longview::models
