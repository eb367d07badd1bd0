#include "models/vil/block.h"

#include <cstring>
#include <optional>

#include "models/layers/block_tail.h"
#include "models/layers/panels.h"
#include "models/long_short/large_map.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// The steps of one block over one batch.
class Block {
 public:
  Block(const VilContext& context, size_t stage, int block, const VilStagePlan& plan,
        const VilBuffers& buffers, EncoderTimes* times)
      : context_(context),
        index_(stage),
        number_(block),
        stage_(context.config->stages[stage]),
        stage_weights_(context.weights->stages[stage]),
        weights_(stage_weights_.blocks[block]),
        plan_(plan),
        buffers_(buffers),
        kernels_(ChooseRowKernels(context.compute)),
        x_(buffers.x),
        width_(stage_.width),
        row_bytes_(width_ * ElementBytes(context.compute)),
        times_(times) {}

  void Run() {
    for (const VilBand& band : plan_.bands) {
      if (band.is_slice()) {
        RunSlice(band);
      } else {
        RunWhole(band);
      }
    }
    for (size_t i = 0; i < plan_.long_short.size(); ++i) {
      RunLongShort(plan_.long_short[i], plan_.biases[i]);
    }
  }

 private:
  void RunWhole(const VilBand& band) {
    NormRows(band.row0, band.rows);
    Project(*weights_.qkv.host, 0, band.rows, buffers_.qkv);
    if (Has(weights_.global_query)) ProjectGlobals();
    {
      const Stopwatch watch(times_ ? &times_->attention : nullptr);
      Attend(band);
    }
    Finish(band);
  }

  // LN(x) of rows of the batch, to the front of buffers.rows.
  void NormRows(int64_t first, int64_t count) const {
    const Stopwatch watch(times_ ? &times_->rest : nullptr);
    const NormWeights norm = weights_.attention_norm.host.view();
    ParallelRanges(*context_.pool, count, 8, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) {
        kernels_.norm(x_ + (first + i) * width_, norm, width_, buffers_.rows + i * row_bytes_);
      }
    });
  }

  // Rows [first, first + count) of a linear over LN(x), with its bias.
  void Project(const DenseLayer& layer, int64_t first, int64_t count, std::byte* out) const {
    const int64_t out_bytes = layer.out() * ElementBytes(context_.compute);
    ForEachRow(layer, buffers_.rows + first * row_bytes_, count, stage_weights_.sizes,
               *context_.pool, times_, [&](int64_t row, std::byte* y) {
                 kernels_.bias_copy(y, layer.bias.data(), layer.out(), out + row * out_bytes);
               });
  }

  // The global rows' own keys and values are of every token.
  void ProjectGlobals() const {
    Project(*weights_.global_key_value.host, 0, plan_.rows, buffers_.global_kv);
    for (const MapTokens& image : plan_.images) {
      Project(*weights_.global_query.host, image.row0, stage_.globals,
              buffers_.global_q + image.row0 * row_bytes_);
    }
  }

  struct SlicedRows;

  void RunSlice(const VilBand& band);
  void LoadSlice(const VilBand& band);
  void AppendGlobals(int64_t first, int64_t count, const OpenRowsBias& bias);
  void RunLongShort(const LongShortBand& band, const std::vector<VilMapEntry>& biases) const;
  void AttendWhole(const LongShortBand& band, std::span<const kernels::Table> tables) const;
  void AttendSlices(const LongShortBand& band, std::span<const kernels::Table> tables) const;
  void ProjectTokens(int64_t count, std::byte* out) const;
  void ProjectScores(int64_t count, float* out) const;
  void Attend(const VilBand& band) const;
  void RunRandomFeatures() const;
  void RunSpans(const VilAttentionPlan& attention, bool separate_globals) const;
  void Finish(const VilBand& band) const;
  void FinishRows(const DenseLayer& out, int64_t first, int64_t count, int64_t from) const {
    RunTail(out, first, count, buffers_.rows + from * row_bytes_);
  }
  void RunTail(const DenseLayer& out, int64_t first, int64_t count, std::byte* outputs) const;

  const VilContext& context_;
  const size_t index_;
  const int number_;
  const VilStage& stage_;
  const VilStageWeights& stage_weights_;
  const VilBlock& weights_;
  const VilStagePlan& plan_;
  const VilBuffers& buffers_;
  const RowKernels& kernels_;
  float* const x_;
  const int64_t width_;
  const int64_t row_bytes_;
  EncoderTimes* const times_;
  // Of the image that is in slices: its global rows, and which tokens lie in buffers.qkv.
  std::optional<OpenRows> globals_;
  int64_t load_begin_ = 0, load_end_ = 0;
};

// What the image's global rows see of rows [first, first + count) of qkv.
void Block::AppendGlobals(int64_t first, int64_t count, const OpenRowsBias& bias) {
  const auto part = [&](int64_t which) {
    return Column(buffers_.qkv, (3 * first + which) * width_, context_.compute);
  };
  globals_->Append({part(1), part(2), 3 * width_, count},
                   stage_.relative_bias() ? bias : OpenRowsBias());
}

// Projects the tokens that the slice before has not; the rest moves to the front.
void Block::LoadSlice(const VilBand& band) {
  const int64_t g = stage_.globals, stride = 3 * row_bytes_;
  std::byte* const locals = buffers_.qkv + g * stride;
  if (band.begin == 0) {
    load_end_ = 0;
    globals_.emplace(GlobalRows(stage_), context_, buffers_.globals);
    if (g > 0) {
      NormRows(band.row0, g);
      Project(*weights_.qkv.host, 0, g, buffers_.qkv);
      const Stopwatch watch(times_ ? &times_->attention : nullptr);
      globals_->Begin(buffers_.qkv, 3 * width_);
      AppendGlobals(0, g, {weights_.bias.global.values(), g * g, g, 1});
    }
  } else {
    std::memmove(locals, locals + (band.load_begin - load_begin_) * stride,
                 static_cast<size_t>((load_end_ - band.load_begin) * stride));
  }
  const int64_t first = load_end_ - band.load_begin, count = band.load_end - load_end_;
  if (count > 0) {
    NormRows(band.row0 + g + load_end_, count);
    Project(*weights_.qkv.host, 0, count, locals + first * stride);
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    if (g > 0) AppendGlobals(g + first, count, {weights_.bias.mixed.values(), 2 * g, 1, 0});
  }
  load_begin_ = band.load_begin;
  load_end_ = band.load_end;
}

// Rows of x below the slice are still those that this block began with.
void Block::RunSlice(const VilBand& band) {
  LoadSlice(band);
  {
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    RunSpans(band.attention, false);
  }
  const int64_t g = stage_.globals;
  FinishRows(*weights_.out.host, band.row0 + g + band.begin, band.end - band.begin,
             g + band.begin - band.load_begin);
  if (g == 0 || band.end < plan_.images[band.image].count()) return;
  globals_->Finish(buffers_.rows);
  FinishRows(*weights_.out.host, band.row0, g, 0);
}

// Of the first rows of LN(x): q as it is, k and v normalised.
void Block::ProjectTokens(int64_t count, std::byte* out) const {
  const DenseLayer& qkv = *weights_.qkv.host;
  const float* bias = qkv.bias.data();
  const NormWeights norm = weights_.token_norm.host.view();
  ForEachRow(qkv, buffers_.rows, count, stage_weights_.sizes, *context_.pool, times_,
             [&](int64_t row, std::byte* y) {
               std::byte* to = out + 3 * row * row_bytes_;
               kernels_.bias_copy(y, bias, width_, to);
               for (int part = 1; part < 3; ++part) {
                 kernels_.bias_norm(y + part * row_bytes_, bias + part * width_, norm, width_,
                                    to + part * row_bytes_);
               }
             });
}

// The landmarks' scores of the first rows of LN(x).
void Block::ProjectScores(int64_t count, float* out) const {
  const DenseLayer& landmarks = *weights_.landmarks.host;
  const int64_t columns = landmarks.out();
  ForEachRow(landmarks, buffers_.rows, count, stage_weights_.sizes, *context_.pool, times_,
             [&](int64_t row, std::byte* y) {
               kernels_.bias_widen(y, landmarks.bias.data(), columns, out + row * columns);
             });
}

void Block::RunLongShort(const LongShortBand& band, const std::vector<VilMapEntry>& biases) const {
  const std::vector<kernels::Table> tables = LocalTables(biases, stage_.heads, number_);
  if (band.is_large()) {
    AttendSlices(band, tables);
    RunTail(*weights_.out.host, band.row0, band.rows, buffers_.outputs);
  } else {
    AttendWhole(band, tables);
    FinishRows(*weights_.out.host, band.row0, band.rows, 0);
  }
}

void Block::AttendWhole(const LongShortBand& band, std::span<const kernels::Table> tables) const {
  NormRows(band.row0, band.rows);
  ProjectTokens(band.rows, buffers_.qkv);
  if (Has(weights_.landmarks)) ProjectScores(band.rows, buffers_.scores);
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  LongShortRows rows;
  rows.qkv = buffers_.qkv;
  rows.z = buffers_.rows;
  rows.scores = buffers_.scores;
  rows.landmarks = buffers_.long_short;
  rows.workspace = buffers_.workspace;
  models::RunLongShort(LongShortOf(stage_), *band.whole, &weights_.landmark_norm.host, tables,
                       context_, rows);
}

// The rows of x that RunLargeMap asks for; x changes once all outputs are there.
struct Block::SlicedRows {
  void Score(int64_t begin, int64_t end) const {
    block.NormRows(local0 + begin, end - begin);
    block.ProjectScores(end - begin, scores + begin * block.weights_.landmarks.out);
  }
  void Project(int64_t begin, int64_t end, bool, std::byte* to) const {
    block.NormRows(local0 + begin, end - begin);
    block.ProjectTokens(end - begin, to);
  }
  void ProjectClass(std::byte* to) const {
    const int64_t g = block.stage_.globals;
    block.NormRows(local0 - g, g);
    block.ProjectTokens(g, to);
  }
  std::vector<kernels::Table> Tables(size_t shape) const {
    if (tables.empty()) return {};
    return {tables[shape]};
  }

  const Block& block;
  int64_t local0;
  float* scores;
  std::span<const kernels::Table> tables;  // By shape; empty without.
};

void Block::AttendSlices(const LongShortBand& band, std::span<const kernels::Table> tables) const {
  LongShortSliceRows rows;
  rows.qkv = buffers_.qkv;
  rows.z = buffers_.outputs;
  rows.weights = reinterpret_cast<float*>(buffers_.outputs);
  rows.scratch = buffers_.long_short;
  rows.workspace = buffers_.workspace;
  RunLargeMap(LongShortOf(stage_), band, &weights_.landmark_norm.host, context_, rows,
              times_ ? &times_->attention : nullptr,
              SlicedRows{*this, band.row0 + stage_.globals, rows.weights, tables});
}

void Block::RunSpans(const VilAttentionPlan& attention, bool separate_globals) const {
  if (attention.empty()) return;
  const VilCall call(context_, index_, attention, number_, buffers_, separate_globals);
  models::RunSpans(context_, attention.made->plan, call.call(), buffers_.workspace);
}

void Block::RunRandomFeatures() const {
  kernels::PerformerCall call = MakePerformerCall(context_, stage_, plan_, buffers_);
  call.projection = weights_.features.values();
  const kernels::WorkspaceBytes bytes = MeasurePerformer(call);
  RunPerformer(call, kernels::CarveWorkspace(buffers_.workspace, bytes), *context_.pool);
}

void Block::Attend(const VilBand& band) const {
  switch (stage_.attention) {
    case VilAttention::kPerformer:
      RunRandomFeatures();
      return;
    case VilAttention::kLinformer:
      ProjectByPositions(context_, stage_, weights_, plan_, buffers_);
      break;
    case VilAttention::kReduction:
      ProjectByReduction(context_, stage_, weights_, plan_, buffers_);
      break;
    default:
      break;
  }
  RunSpans(band.attention, false);
  RunSpans(plan_.globals, true);
}

void Block::Finish(const VilBand& band) const {
  if (!Has(weights_.global_out)) {
    FinishRows(*weights_.out.host, band.row0, band.rows, 0);
    return;
  }
  for (const MapTokens& image : plan_.images) {
    const int64_t local0 = image.row0 + stage_.globals;
    FinishRows(*weights_.global_out.host, image.row0, stage_.globals, image.row0);
    FinishRows(*weights_.out.host, local0, image.count(), local0);
  }
}

// What follows attention in rows [first, first + count) of the batch.
void Block::RunTail(const DenseLayer& out, int64_t first, int64_t count, std::byte* outputs) const {
  BlockTail tail;
  tail.out = &out;
  tail.after_attention = &weights_.mlp_norm.host;
  tail.expand = &*weights_.expand.host;
  tail.contract = &*weights_.contract.host;
  tail.norms = NormPlace::kPre;
  RunBlockTail(tail, {x_ + first * width_, outputs, outputs, count}, stage_weights_.sizes,
               *context_.pool, times_);
}

}  // namespace

void RunVilBlock(const VilContext& context, size_t stage, int block, const VilStagePlan& plan,
                 const VilBuffers& buffers, EncoderTimes* times) {
  Block(context, stage, block, plan, buffers, times).Run();
}

}  // namespace longview::models
