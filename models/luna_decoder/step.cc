#include "models/luna_decoder/step.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "kernels/span/full_planner.h"
#include "models/checkpoint/convert.h"
#include "models/layers/block_tail.h"
#include "models/layers/panels.h"
#include "models/layers/span_rows.h"
#include "models/torch_guard.h"

namespace longview::models {
namespace {

constexpr int64_t kRowGrain = 8;

int64_t TokensOf(std::span<const DecoderFeed> feeds) {
  int64_t tokens = 0;
  for (const DecoderFeed& feed : feeds) tokens += static_cast<int64_t>(feed.tokens.size());
  return tokens;
}

kernels::OuterCall CallOf(const LunaDecoderContext& context, const LunaStepBuffers& buffers) {
  const LunaDecoderConfig& config = *context.config;
  kernels::OuterCall call;
  call.q = buffers.projections;
  call.g = call.q + config.width;
  call.k = call.g + config.width;
  call.v = config.tied_kv ? call.k : call.k + config.width;
  call.row_stride = int64_t{config.parts()} * config.width;
  call.out = buffers.context;
  call.out_stride = config.width;
  call.heads = config.heads;
  call.width = config.head_dim();
  call.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
  call.activation = config.phi;
  return call;
}

// Every token over its document's packed rows. Feeds without tokens have no part in it.
LunaCrossPlan PlanCross(const LunaDecoderContext& context, std::span<const DecoderFeed> feeds) {
  LunaCrossPlan cross;
  if (context.encoder == nullptr) return cross;
  std::map<const LunaDocument*, int32_t> first_keys;
  std::vector<kernels::FullSequence> sequences;
  int32_t row = 0;
  for (const DecoderFeed& feed : feeds) {
    const auto tokens = static_cast<int32_t>(feed.tokens.size());
    if (tokens == 0) continue;
    const LunaDocument* document = static_cast<LunaSequence*>(feed.sequence)->document();
    const auto [entry, is_new] = first_keys.try_emplace(document, static_cast<int32_t>(cross.rows));
    if (is_new) {
      cross.documents.push_back(document);
      cross.rows += document->rows();
    }
    sequences.push_back({row, tokens, entry->second, document->rows(), {}});
    row += tokens;
  }
  kernels::FullPattern pattern;
  pattern.heads = context.config->heads;
  pattern.tile_rows = context.encoder->tile_rows();
  cross.plan = PlanFull(pattern, sequences);
  return cross;
}

kernels::Call CrossCall(const LunaDecoderContext& context, const LunaStepBuffers& buffers,
                        std::vector<kernels::Source>& sources) {
  const LunaDecoderConfig& config = *context.config;
  const int64_t width = config.width;
  std::byte* values = config.tied_kv ? buffers.keys : Column(buffers.keys, width, context.compute);
  sources = {RowsSource(buffers.keys, values, context.compute, KeyParts(config) * width,
                        config.head_dim())};
  kernels::Call call;
  call.dtype = SpanType(context.compute);
  call.q = buffers.queries;
  call.out = buffers.z;
  call.q_row_stride = call.out_row_stride = width;
  call.q_head_stride = call.out_head_stride = config.head_dim();
  call.Dk = call.Dv = config.head_dim();
  call.H = config.heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(config.head_dim()));
  call.sources = sources;
  return call;
}

size_t CrossWorkspace(const LunaDecoderContext& context, const LunaCrossPlan& cross) {
  if (cross.plan.items.empty()) return 0;
  std::vector<kernels::Source> sources;
  const kernels::Call call = CrossCall(context, {}, sources);
  return Measure(cross.plan, call, context.encoder->isa).total(context.pool->threads());
}

LunaStepBuffers Carve(const LunaDecoderContext& context, int64_t rows, const LunaCrossPlan& cross,
                      Carver& carver) {
  const LunaDecoderConfig& config = *context.config;
  const int64_t width = config.width, padded = rows + kPanelRows;
  const bool floats = context.compute == Compute::kFp32;
  const auto take = [&] {
    return carver.TakeBytes(static_cast<size_t>(padded * width * ElementBytes(context.compute)));
  };
  LunaStepBuffers b;
  b.x = carver.Take<float>(padded * width);
  const bool own_input = !floats || config.norms == NormPlace::kPre;
  b.input = own_input ? take() : reinterpret_cast<std::byte*>(b.x);
  b.projections = carver.Take<float>(rows * config.parts() * width);
  b.context = carver.Take<float>(padded * width);
  b.z = floats ? reinterpret_cast<std::byte*>(b.context) : take();
  const kernels::OuterSequence any = {.rows = config.projected};
  kernels::OuterCall call = CallOf(context, {});
  call.sequences = {&any, 1};
  if (context.encoder != nullptr) {
    b.queries = take();
    b.keys = carver.TakeBytes(
        static_cast<size_t>(cross.rows * KeyParts(config) * width * ElementBytes(context.compute)));
  }
  b.workspace = carver.TakeBytes(
      std::max(MeasureOuter(call).total(context.pool->threads()), CrossWorkspace(context, cross)));
  return b;
}

size_t Measured(const LunaDecoderContext& context, int64_t rows, const LunaCrossPlan& cross) {
  Carver measure(nullptr);
  Carve(context, rows, cross, measure);
  return measure.used();
}

}  // namespace

int64_t LunaStep::Feed::wanted() const {
  if (dropped || feed.wanted == WantedLogits::kNone) return 0;
  return feed.wanted == WantedLogits::kAll ? static_cast<int64_t>(feed.tokens.size()) : 1;
}

size_t LunaStep::ScratchBytes(const LunaDecoderContext& context, int64_t rows) {
  return Measured(context, rows, {});
}

size_t LunaStep::DocumentScratchBytes(const LunaDecoderContext& context) {
  if (context.encoder == nullptr) return 0;
  const LunaDecoderConfig& config = *context.config;
  const std::vector<kernels::FullSequence> one = {{0, 1, 0, config.projected, {}}};
  kernels::FullPattern pattern;
  pattern.heads = config.heads;
  pattern.tile_rows = context.encoder->tile_rows();
  LunaCrossPlan cross;
  cross.plan = PlanFull(pattern, one);
  return static_cast<size_t>(int64_t{config.projected} * KeyParts(config) * config.width *
                             ElementBytes(context.compute)) +
         CrossWorkspace(context, cross) + kernels::kAlignment;
}

LunaStep::LunaStep(const LunaDecoderContext& context, ScratchKeeper& scratch,
                   std::span<const DecoderFeed> feeds, EncoderTimes* times)
    : context_(context),
      config_(*context.config),
      kernels_(ChooseRowKernels(context.compute)),
      width_(config_.width),
      row_bytes_(width_ * ElementBytes(context.compute)),
      zeros_(static_cast<size_t>(width_)),
      times_(times),
      cross_(PlanCross(context, feeds)),
      scratch_(scratch, Measured(context, TokensOf(feeds), cross_)) {
  for (const DecoderFeed& feed : feeds) {
    feeds_.push_back({feed, static_cast<LunaSequence*>(feed.sequence), rows_, false, {}});
    rows_ += static_cast<int64_t>(feed.tokens.size());
    if (feed.encode > 0) feeds_.back().sequence->document()->Begin(feed.encode);
  }
  Carver carver(scratch_.data());
  buffers_ = Carve(context_, rows_, cross_, carver);
  // Rows past the end are read by last panels: their values never matter, but they must not be
  // numbers that slow arithmetic down.
  const auto tail = static_cast<size_t>(kPanelRows * row_bytes_);
  std::memset(buffers_.input + rows_ * row_bytes_, 0, tail);
  std::memset(buffers_.z + rows_ * row_bytes_, 0, tail);
}

bool LunaStep::OwnStates() {
  for (const Feed& feed : feeds_) {
    if (feed.feed.tokens.empty() || feed.sequence->Own()) continue;
    status_ = absl::ResourceExhaustedError("cache: no memory for a sequence's state");
    return false;
  }
  return true;
}

void LunaStep::EmbedRow(int32_t id, int64_t position, float* x, std::byte* input) const {
  const LunaDecoderWeights& weights = *context_.weights;
  const auto width = static_cast<size_t>(width_);
  CopyFloat32(*weights.words, id * width_, {x, width});
  for (size_t i = 0; i < width; ++i) x[i] *= config_.embed_scale;
  const int64_t row = (position + config_.pad + 1) * width_;
  if (config_.positions == LunaPositions::kLearned) {
    // The context buffer is free until attention writes it.
    float* learned = buffers_.context + (x - buffers_.x);
    CopyFloat32(*weights.positions, row, {learned, width});
    for (size_t i = 0; i < width; ++i) x[i] += learned[i];
  } else if (config_.positions == LunaPositions::kSinusoidal) {
    for (size_t i = 0; i < width; ++i) x[i] += weights.sinusoids[static_cast<size_t>(row) + i];
  }
  if (config_.embedding_norm) {
    kernels_.residual_norm(x, nullptr, zeros_.data(), weights.embedding_norm.view(), width_, input);
  } else if (pre_norm()) {
    kernels_.norm(x, weights.layers[0].attention_norm.view(), width_, input);
  } else if (context_.compute != Compute::kFp32) {
    kernels_.narrow(x, width_, input);
  }
}

void LunaStep::Embed() {
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  for (const Feed& feed : feeds_) {
    const auto count = static_cast<long>(feed.feed.tokens.size());
    ParallelRanges(*context_.pool, count, kRowGrain, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) {
        const int64_t row = feed.row0 + i;
        EmbedRow(feed.feed.tokens[i], feed.sequence->tokens() + i, buffers_.x + row * width_,
                 buffers_.input + row * row_bytes_);
      }
    });
  }
}

void LunaStep::Project(const LunaDecoderLayer& layer) {
  ForEachRow(layer.project, buffers_.input, rows_, context_.weights->sizes, *context_.pool, times_,
             [&](int64_t row, const std::byte* y) {
               kernels_.bias_widen(y, layer.project.bias.data(), layer.project.out(),
                                   buffers_.projections + row * layer.project.out());
             });
}

void LunaStep::Attend(const LunaDecoderLayer& layer) {
  std::vector<kernels::OuterSequence> sequences;
  for (const Feed& feed : feeds_) {
    if (feed.feed.tokens.empty()) continue;
    const LunaDocument* document = feed.sequence->document();
    const int active = document == nullptr ? config_.projected : document->rows();
    const float* packed = document == nullptr ? layer.packed.data() : document->packed(layer_);
    sequences.push_back({feed.row0, static_cast<int64_t>(feed.feed.tokens.size()),
                         feed.sequence->tokens(), active, packed, feed.sequence->state(layer_)});
  }
  kernels::OuterCall call = CallOf(context_, buffers_);
  call.sequences = sequences;
  {
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    AppendOuter(call, kernels::CarveWorkspace(buffers_.workspace, MeasureOuter(call)),
                *context_.pool, context_.isa);
  }
  if (context_.compute == Compute::kFp32) return;
  const Stopwatch watch(times_ ? &times_->rest : nullptr);
  ParallelRanges(*context_.pool, rows_, kRowGrain, [&](long begin, long end) {
    for (long row = begin; row < end; ++row) {
      kernels_.narrow(buffers_.context + row * width_, width_, buffers_.z + row * row_bytes_);
    }
  });
}

// The residual around the causal attention, where attention across follows.
void LunaStep::AddAttention(const LunaDecoderLayer& layer) {
  const auto add = pre_norm() ? kernels_.residual_prenorm : kernels_.residual_norm;
  const Norm& norm = pre_norm() ? layer.cross->norm : layer.attention_norm;
  ForEachRow(layer.out, buffers_.z, rows_, context_.weights->sizes, *context_.pool, times_,
             [&](int64_t row, const std::byte* y) {
               add(buffers_.x + row * width_, y, layer.out.bias.data(), norm.view(), width_,
                   buffers_.input + row * row_bytes_);
             });
}

void LunaStep::AttendAcross(const LunaDecoderLayer& layer) {
  const LunaCross& cross = *layer.cross;
  ForEachRow(cross.query, buffers_.input, rows_, context_.weights->sizes, *context_.pool, times_,
             [&](int64_t row, const std::byte* y) {
               kernels_.bias_copy(y, cross.query.bias.data(), width_,
                                  buffers_.queries + row * row_bytes_);
             });
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  std::byte* keys = buffers_.keys;
  for (const LunaDocument* document : cross_.documents) {
    const auto bytes = static_cast<size_t>(document->rows() * KeyParts(config_) * row_bytes_);
    std::memcpy(keys, document->keys(layer_), bytes);
    keys += bytes;
  }
  std::vector<kernels::Source> sources;
  const kernels::Call call = CrossCall(context_, buffers_, sources);
  RunSpans(*context_.encoder, cross_.plan, call, buffers_.workspace);
}

// Rows whose logits are wanted move to the front, each feed's in order; nothing else of the last
// layer is read. Returns how many.
int64_t LunaStep::KeepWanted() {
  int64_t kept = 0;
  for (const Feed& feed : feeds_) {
    const int64_t wanted = feed.wanted();
    const int64_t first = feed.row0 + static_cast<int64_t>(feed.feed.tokens.size()) - wanted;
    if (kept != first) {
      std::memmove(buffers_.x + kept * width_, buffers_.x + first * width_,
                   static_cast<size_t>(wanted * width_) * sizeof(float));
      std::memmove(buffers_.z + kept * row_bytes_, buffers_.z + first * row_bytes_,
                   static_cast<size_t>(wanted * row_bytes_));
    }
    kept += wanted;
  }
  return kept;
}

void LunaStep::Finish(const LunaDecoderLayer& layer, int64_t rows) {
  const LunaDecoderWeights& weights = *context_.weights;
  BlockTail tail;
  tail.out = layer.cross ? &layer.cross->out : &layer.out;
  tail.after_attention = pre_norm()    ? &layer.output_norm
                         : layer.cross ? &layer.cross->norm
                                       : &layer.attention_norm;
  tail.expand = &layer.expand;
  tail.contract = &layer.contract;
  tail.after_layer = &layer.output_norm;
  if (pre_norm()) {
    tail.after_layer = last() ? &weights.final_norm : &weights.layers[layer_ + 1].attention_norm;
  }
  tail.activation = config_.activation;
  tail.norms = config_.norms;
  RunBlockTail(tail, {buffers_.x, buffers_.input, buffers_.z, rows}, weights.sizes, *context_.pool,
               times_);
}

void LunaStep::ComputeLogits() {
  const DenseLayer& logits = *context_.weights->logits;
  std::vector<float*> to;
  for (Feed& feed : feeds_) {
    const int64_t wanted = feed.wanted();
    feed.logits.resize(static_cast<size_t>(wanted * config_.vocab));
    for (int64_t i = 0; i < wanted; ++i) to.push_back(feed.logits.data() + i * config_.vocab);
  }
  ForEachRow(logits, buffers_.input, static_cast<int64_t>(to.size()), logits.linear.sizes(),
             *context_.pool, times_, [&](int64_t row, const std::byte* y) {
               kernels_.bias_widen(y, logits.bias.data(), config_.vocab, to[row]);
             });
}

bool LunaStep::RunLayer() {
  if (layer_ == 0) {
    if (!OwnStates()) return false;
    Embed();
  }
  const LunaDecoderLayer& layer = context_.weights->layers[layer_];
  Project(layer);
  Attend(layer);
  if (layer.cross) {
    AddAttention(layer);
    AttendAcross(layer);
  }
  Finish(layer, last() ? KeepWanted() : rows_);
  if (last()) {
    ComputeLogits();
    for (const Feed& feed : feeds_) {
      feed.sequence->Read(static_cast<int>(feed.feed.tokens.size()));
    }
  }
  return ++layer_ < config_.layers;
}

// A layer of a document, of one after the other; then of the tokens.
bool LunaStep::RunPart() {
  for (; reading_ < feeds_.size(); ++reading_) {
    const Feed& feed = feeds_[reading_];
    if (feed.feed.encode == 0) continue;
    if (feed.sequence->document()->Advance()) return true;
  }
  return rows_ > 0 && RunLayer();
}

bool LunaStep::Advance() {
  if (!status_.ok() || feeds_.empty() || layer_ >= config_.layers) return false;
  bool more = false;
  const absl::Status status = GuardTorch("luna", [&] { more = RunPart(); });
  if (!status.ok()) status_ = status;
  return status_.ok() && more;
}

std::span<const float> LunaStep::Logits(int feed) const { return feeds_[feed].logits; }

}  // namespace longview::models
