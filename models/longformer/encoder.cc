#include "models/longformer/encoder.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "models/checkpoint/convert.h"
#include "models/layers/block_tail.h"
#include "models/layers/panels.h"
#include "models/layers/span_rows.h"
#include "models/longformer/global_rows.h"
#include "models/longformer/heads.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

constexpr int kLast = -1;  // Key of the last layer's plan where it is one of its own.

std::vector<int32_t> OffsetsOf(EncoderRun::Sequences sequences) {
  std::vector<int32_t> offsets = {0};
  for (const EncoderSequence* sequence : sequences) {
    offsets.push_back(offsets.back() + sequence->tokens());
  }
  return offsets;
}

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

EncoderRun::Plans EncoderRun::MakePlans(const EncoderContext& context, Sequences sequences,
                                        std::span<const int32_t> offsets, bool subset) {
  const LongformerConfig& config = *context.config;
  const int tile_rows =
      kernels::TileRows(kernels::EffectiveIsa(context.isa, SpanType(context.compute)));
  const int last = config.layers - 1;
  Plans plans;
  for (int layer = 0; layer < config.layers; ++layer) {
    const bool own = subset && layer == last;
    const int key = own ? kLast : PatternOf(config, layer);
    if (plans.contains(key)) continue;
    plans.emplace(key, PlanLayer(config, layer, sequences, offsets, own, tile_rows));
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
  const std::vector<int32_t> offsets = OffsetsOf(sequences);
  CarveBuffers(context,
               SizesOf(context, MakePlans(context, sequences, offsets, !WantsAll(sequences))),
               carver);
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
      sequences_(sequences.begin(), sequences.end()),
      members_(sequences.size()),
      dropped_(sequences.size()) {
  std::iota(members_.begin(), members_.end(), 0);
  Plan();
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

void EncoderRun::Plan() {
  offsets_ = OffsetsOf(sequences_);
  roles_.clear();
  for (const EncoderSequence* sequence : sequences_) {
    roles_.insert(roles_.end(), sequence->roles.begin(), sequence->roles.end());
  }
  plans_ = MakePlans(context_, sequences_, offsets_, subset_);
}

void EncoderRun::Drop(int i) {
  if (dropped_[i]) return;
  dropped_[i] = true;
  drops_pending_ = true;
}

// Closes the gaps of dropped sequences. Rows move to the front, so buffers stay large enough.
void EncoderRun::LeaveDropped() {
  drops_pending_ = false;
  size_t kept = 0;
  int64_t row = 0;
  for (size_t s = 0; s < sequences_.size(); ++s) {
    const int64_t rows = offsets_[s + 1] - offsets_[s];
    if (dropped_[members_[s]]) continue;
    if (layer_ > 0 && row != offsets_[s]) {
      std::memmove(buffers_.x + row * width_, buffers_.x + offsets_[s] * width_,
                   static_cast<size_t>(rows * width_) * sizeof(float));
      if (context_.compute == Compute::kBf16) {
        std::memmove(buffers_.input + row * row_bytes_, buffers_.input + offsets_[s] * row_bytes_,
                     static_cast<size_t>(rows * row_bytes_));
      }
    }
    sequences_[kept] = sequences_[s];
    members_[kept++] = members_[s];
    row += rows;
  }
  sequences_.resize(kept);
  members_.resize(kept);
  Plan();
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
  const int64_t total = offsets_.back();
  kernels::RunOnThreads(*context_.pool, [&](int thread) {
    float* parts = buffers_.embedding_rows + 3 * width_ * thread;
    const int64_t begin = total * thread / threads, end = total * (thread + 1) / threads;
    auto s = std::upper_bound(offsets_.begin(), offsets_.end(), begin) - offsets_.begin() - 1;
    for (int64_t row = begin; row < end; ++row) {
      while (row >= offsets_[s + 1]) ++s;
      EmbedRow(row, *sequences_[s], static_cast<int>(row - offsets_[s]), parts);
    }
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
  if (plan.band.items.empty()) return;
  std::vector<kernels::Source> sources;
  const kernels::Call call = BandCall(context_, plan, buffers_, sources);
  const kernels::WorkspaceBytes bytes = Measure(plan.band, call, context_.isa);
  RunPlan(plan.band, call, kernels::CarveWorkspace(buffers_.workspace, bytes), *context_.pool,
          context_.isa);
}

// The residual rows of a last layer's outputs move to the front.
void EncoderRun::KeepOutputs(const LayerPlan& plan) {
  for (size_t i = 0; i < plan.out_rows.size(); ++i) {
    std::memmove(buffers_.x + static_cast<int64_t>(i) * width_,
                 buffers_.x + plan.out_rows[i] * width_,
                 static_cast<size_t>(width_) * sizeof(float));
  }
}

bool EncoderRun::Advance() {
  if (drops_pending_) LeaveDropped();
  const LongformerConfig& config = *context_.config;
  if (sequences_.empty() || layer_ >= config.layers) return false;
  if (layer_ == 0) Embed();
  const auto last = plans_.find(kLast);
  const bool own = layer_ == config.layers - 1 && last != plans_.end();
  const LayerPlan& plan = own ? last->second : plans_.at(PatternOf(config, layer_));
  const LongformerLayer& layer = context_.weights->layers[layer_];
  ProjectLocal(layer, plan);
  {
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    AttendLocal(plan);
    AttendGlobal(context_, layer, plan, roles_, buffers_);
  }
  KeepOutputs(plan);
  const BlockTail tail = {&layer.out,      &layer.attention_norm, &layer.expand,
                          &layer.contract, &layer.output_norm,    config.activation};
  RunBlockTail(tail, {buffers_.x, buffers_.input, buffers_.z, plan.outputs},
               context_.weights->sizes, *context_.pool, times_);
  return ++layer_ < config.layers;
}

const float* EncoderRun::Rows(int i) const {
  const auto member = std::find(members_.begin(), members_.end(), i);
  const auto place = static_cast<size_t>(member - members_.begin());
  int64_t row = 0;
  for (size_t s = 0; s < place; ++s) row += static_cast<int64_t>(sequences_[s]->wanted.size());
  return buffers_.x + row * width_;
}

std::vector<HeadOutput> EncoderRun::ComputeHeads(std::span<const HeadInput> inputs) const {
  return models::ComputeHeads(context_, inputs);
}

}  // namespace longview::models
