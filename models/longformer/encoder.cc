#include "models/longformer/encoder.h"

#include <algorithm>
#include <cstring>

#include "models/checkpoint/convert.h"
#include "models/encoder/residual_rows.h"
#include "models/layers/block_tail.h"
#include "models/layers/panels.h"
#include "models/longformer/global_rows.h"
#include "models/longformer/heads.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

constexpr int kLast = -1;  // Key of the last layer's plan where it is one of its own.

bool WantsAll(EncoderRun::Sequences sequences) {
  return std::all_of(sequences.begin(), sequences.end(), [](const EncoderSequence* sequence) {
    return static_cast<int>(sequence->wanted.size()) == sequence->tokens();
  });
}

// The first layer with the same windows: layers share its plan.
int PatternOf(const LongformerConfig& config, int layer) {
  for (int other = 0; other < layer; ++other) {
    if (config.window[other] == config.window[layer] &&
        config.dilation[other] == config.dilation[layer]) {
      return other;
    }
  }
  return layer;
}

}  // namespace

EncoderRun::Plans EncoderRun::MakePlans(const EncoderContext& context, const RaggedBatch& batch,
                                        bool subset) {
  const LongformerConfig& config = *context.config;
  const int last = config.layers - 1;
  Plans plans;
  for (int layer = 0; layer < config.layers; ++layer) {
    const bool own = subset && layer == last;
    const int key = own ? kLast : PatternOf(config, layer);
    if (plans.contains(key)) continue;
    plans.emplace(key, PlanLayer(config, layer, batch.sequences(), batch.offsets(), own,
                                 context.tile_rows()));
  }
  return plans;
}

EncoderSizes EncoderRun::SizesOf(const EncoderContext& context, const Plans& plans) {
  EncoderSizes sizes;
  for (const auto& [key, plan] : plans) sizes.Include(context, plan);
  return sizes;
}

size_t EncoderRun::ScratchBytes(const EncoderContext& context, Sequences sequences) {
  Carver carver(nullptr);
  const Plans plans = MakePlans(context, RaggedBatch(sequences), !WantsAll(sequences));
  CarveBuffers(context, SizesOf(context, plans), carver);
  return carver.used();
}

EncoderRun::EncoderRun(const EncoderContext& context, Sequences sequences, ScratchKeeper& scratch,
                       EncoderTimes* times)
    : context_(context),
      kernels_(ChooseRowKernels(context.compute)),
      width_(context.config->width),
      row_bytes_(width_ * ElementBytes(context.compute)),
      times_(times),
      subset_(!WantsAll(sequences)),
      batch_(sequences),
      plans_(MakePlans(context, batch_, subset_)) {
  const EncoderSizes sizes = SizesOf(context_, plans_);
  Carver measure(nullptr);
  CarveBuffers(context_, sizes, measure);
  scratch_.emplace(scratch, measure.used());
  Carver carver(scratch_->data());
  buffers_ = CarveBuffers(context_, sizes, carver);
  // Rows past the end are read by last panels: their values never matter, but they must not be
  // numbers that slow arithmetic down.
  const size_t tail = static_cast<size_t>(kPanelRows * row_bytes_);
  std::memset(buffers_.input + sizes.rows * row_bytes_, 0, tail);
  std::memset(buffers_.z + sizes.rows * row_bytes_, 0, tail);
}

// Rows move to the front, so buffers stay large enough.
void EncoderRun::LeaveDropped() {
  const ResidualRows x{buffers_.x, buffers_.input, width_, row_bytes_};
  batch_.Leave([&](RaggedBatch::Place from, RaggedBatch::Place to, int64_t rows) {
    if (layer_ > 0) x.Move(from.row, to.row, rows);
  });
  plans_ = MakePlans(context_, batch_, subset_);
}

void EncoderRun::EmbedRow(int64_t row, const EncoderSequence& sequence, int token, float* parts) {
  const LongformerWeights& weights = *context_.weights;
  const auto width = static_cast<size_t>(width_);
  const int type = sequence.types.empty() ? 0 : sequence.types[token];
  CopyFloat32(*weights.words, sequence.ids[token] * width_, {parts, width});
  CopyFloat32(*weights.positions, sequence.positions[token] * width_, {parts + width_, width});
  kernels_.sum_norm(buffers_.x + row * width_, parts, parts + width_,
                    weights.types.data() + type * width_, weights.embedding_norm.view(), width_,
                    buffers_.input + row * row_bytes_);
}

void EncoderRun::Embed() {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  const int threads = context_.pool->threads();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* parts = buffers_.embedding_rows + 3 * width_ * thread;
    batch_.ForRowsOf(thread, threads, [&](int64_t row, int s, int token) {
      EmbedRow(row, *batch_.sequences()[s], token, parts);
    });
  });
}

// qkv = input Wqkv + bias, for the rows that need it.
void EncoderRun::ProjectLocal(const LongformerLayer& layer, const LayerPlan& plan) {
  const std::byte* input = buffers_.input;
  if (!plan.whole) {
    for (size_t i = 0; i < plan.local_rows.size(); ++i) {
      std::memcpy(buffers_.z + static_cast<int64_t>(i) * row_bytes_,
                  buffers_.input + plan.local_rows[i] * row_bytes_,
                  static_cast<size_t>(row_bytes_));
    }
    input = buffers_.z;
  }
  ForEachRow(layer.qkv, input, plan.locals, context_.weights->sizes, *context_.pool, times_,
             [&](int64_t row, std::byte* y) {
               kernels_.bias_copy(y, layer.qkv.bias.data(), 3 * width_,
                                  buffers_.qkv + row * 3 * row_bytes_);
             });
  for (size_t i = 0; i < plan.query_rows.size(); ++i) {
    if (plan.query_rows[i] < 0) continue;
    std::memcpy(buffers_.queries + static_cast<int64_t>(i) * row_bytes_,
                buffers_.qkv + plan.query_rows[i] * 3 * row_bytes_,
                static_cast<size_t>(row_bytes_));
  }
}

void EncoderRun::AttendLocal(const LayerPlan& plan) {
  std::vector<kernels::Source> sources;
  const kernels::Call call = BandCall(context_, plan, buffers_, sources);
  RunSpans(context_, plan.band, call, buffers_.workspace);
}

// The residual rows of a last layer's outputs move to the front.
void EncoderRun::KeepOutputs(const LayerPlan& plan) {
  const ResidualRows x{buffers_.x, nullptr, width_, row_bytes_};
  for (size_t i = 0; i < plan.out_rows.size(); ++i) {
    x.Move(plan.out_rows[i], static_cast<int64_t>(i));
  }
}

bool EncoderRun::Advance() {
  if (batch_.drops_pending()) LeaveDropped();
  const LongformerConfig& config = *context_.config;
  if (batch_.size() == 0 || layer_ >= config.layers) return false;
  if (layer_ == 0) Embed();
  const auto last = plans_.find(kLast);
  const bool own = layer_ == config.layers - 1 && last != plans_.end();
  const LayerPlan& plan = own ? last->second : plans_.at(PatternOf(config, layer_));
  const LongformerLayer& layer = context_.weights->layers[layer_];
  ProjectLocal(layer, plan);
  {
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    AttendLocal(plan);
    AttendGlobal(context_, layer, plan, batch_.roles(), buffers_);
  }
  KeepOutputs(plan);
  const BlockTail tail = {&layer.out,      &layer.attention_norm, &layer.expand,
                          &layer.contract, &layer.output_norm,    config.activation};
  RunBlockTail(tail, {buffers_.x, buffers_.input, buffers_.z, plan.outputs},
               context_.weights->sizes, *context_.pool, times_);
  return ++layer_ < config.layers;
}

const float* EncoderRun::Rows(int i) const {
  int64_t row = 0;
  for (int s = 0; s < batch_.PlaceOf(i); ++s) {
    row += static_cast<int64_t>(batch_.sequences()[s]->wanted.size());
  }
  return buffers_.x + row * width_;
}

std::vector<HeadOutput> EncoderRun::ComputeHeads(std::span<const HeadInput> inputs) const {
  return models::ComputeHeads(context_, inputs);
}

}  // namespace longview::models
