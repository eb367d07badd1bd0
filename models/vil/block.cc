#include "models/vil/block.h"

#include <cstring>
#include <optional>

#include "models/layers/block_tail.h"
#include "models/layers/panels.h"
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
  }

 private:
  void RunWhole(const VilBand& band) {
    NormRows(band.row0, band.rows);
    if (stage_.attention == VilAttention::kLongShort) {
      ProjectLongShort();
    } else {
      Project(*weights_.qkv, 0, band.rows, buffers_.qkv);
    }
    if (weights_.global_query) ProjectGlobals();
    {
      const Stopwatch watch(times_ ? &times_->attention : nullptr);
      Attend(band);
    }
    Finish(band);
  }

  // LN(x) of rows of the batch, to the front of buffers.rows.
  void NormRows(int64_t first, int64_t count) const {
    const Stopwatch watch(times_ ? &times_->rest : nullptr);
    const NormWeights norm = weights_.attention_norm.view();
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
    Project(*weights_.global_key_value, 0, plan_.rows, buffers_.global_kv);
    for (const MapTokens& image : plan_.images) {
      Project(*weights_.global_query, image.row0, stage_.globals,
              buffers_.global_q + image.row0 * row_bytes_);
    }
  }

  void RunSlice(const VilBand& band);
  void LoadSlice(const VilBand& band);
  void ProjectLongShort() const;
  void Attend(const VilBand& band) const;
  void RunRandomFeatures() const;
  void RunSpans(const VilAttentionPlan& attention, bool separate_globals) const;
  void RunLongShortAttention() const;
  void Finish(const VilBand& band) const;
  void FinishRows(const DenseLayer& out, int64_t first, int64_t count, int64_t from) const;

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
  std::optional<VilGlobalRows> globals_;
  int64_t load_begin_ = 0, load_end_ = 0;
};

// Projects the tokens that the slice before has not; the rest moves to the front.
void Block::LoadSlice(const VilBand& band) {
  const int64_t g = stage_.globals, stride = 3 * row_bytes_;
  std::byte* const locals = buffers_.qkv + g * stride;
  if (band.begin == 0) {
    load_end_ = 0;
    globals_.emplace(context_, stage_, weights_.bias, buffers_.qkv, buffers_.globals);
    if (g > 0) {
      NormRows(band.row0, g);
      Project(*weights_.qkv, 0, g, buffers_.qkv);
      const Stopwatch watch(times_ ? &times_->attention : nullptr);
      globals_->Begin();
    }
  } else {
    std::memmove(locals, locals + (band.load_begin - load_begin_) * stride,
                 static_cast<size_t>((load_end_ - band.load_begin) * stride));
  }
  const int64_t first = load_end_ - band.load_begin, count = band.load_end - load_end_;
  if (count > 0) {
    NormRows(band.row0 + g + load_end_, count);
    Project(*weights_.qkv, 0, count, locals + first * stride);
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    if (g > 0) globals_->Append(g + first, count);
  }
  load_begin_ = band.load_begin;
  load_end_ = band.load_end;
}

// Rows of x below the slice are still those that this block began with.
void Block::RunSlice(const VilBand& band) {
  LoadSlice(band);
  {
    const Stopwatch watch(times_ ? &times_->attention : nullptr);
    RunSpans(plan_.attention[band.attention], false);
  }
  const int64_t g = stage_.globals;
  FinishRows(*weights_.out, band.row0 + g + band.begin, band.end - band.begin,
             g + band.begin - band.load_begin);
  if (g == 0 || band.end < plan_.images[band.image].count()) return;
  globals_->Finish(buffers_.rows);
  FinishRows(*weights_.out, band.row0, g, 0);
}

// q as it is, k and v normalised, and the scores of the landmarks.
void Block::ProjectLongShort() const {
  const DenseLayer& qkv = *weights_.qkv;
  const float* bias = qkv.bias.data();
  const NormWeights norm = weights_.token_norm.view();
  const int64_t columns = qkv.out() - 3 * width_;
  ForEachRow(qkv, buffers_.rows, plan_.rows, stage_weights_.sizes, *context_.pool, times_,
             [&](int64_t row, std::byte* y) {
               std::byte* out = buffers_.qkv + 3 * row * row_bytes_;
               kernels_.bias_copy(y, bias, width_, out);
               for (int part = 1; part < 3; ++part) {
                 kernels_.bias_norm(y + part * row_bytes_, bias + part * width_, norm, width_,
                                    out + part * row_bytes_);
               }
               kernels_.bias_widen(y + 3 * row_bytes_, bias + 3 * width_, columns,
                                   buffers_.scores + row * columns);
             });
}

void Block::RunSpans(const VilAttentionPlan& attention, bool separate_globals) const {
  if (attention.plan.items.empty()) return;
  const VilCall call(context_, index_, attention, number_, buffers_, separate_globals);
  models::RunSpans(context_, attention.plan, call.call(), buffers_.workspace);
}

void Block::RunRandomFeatures() const {
  kernels::PerformerCall call = MakePerformerCall(context_, stage_, plan_, buffers_);
  call.projection = weights_.features.data();
  const kernels::WorkspaceBytes bytes = MeasurePerformer(call);
  RunPerformer(call, kernels::CarveWorkspace(buffers_.workspace, bytes), *context_.pool);
}

void Block::RunLongShortAttention() const {
  LongShortRows rows;
  rows.qkv = buffers_.qkv;
  rows.z = buffers_.rows;
  rows.scores = buffers_.scores;
  rows.landmarks = buffers_.long_short;
  rows.workspace = buffers_.workspace;
  std::vector<kernels::Table> tables;
  if (stage_.relative_bias()) tables = LocalTables(plan_.maps, stage_.heads, number_);
  RunLongShort(LongShortOf(stage_), plan_.long_short, &weights_.landmark_norm, tables, context_,
               rows);
}

void Block::Attend(const VilBand& band) const {
  switch (stage_.attention) {
    case VilAttention::kLongShort:
      RunLongShortAttention();
      return;
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
  RunSpans(plan_.attention[band.attention], false);
  RunSpans(plan_.globals, true);
}

void Block::Finish(const VilBand& band) const {
  if (!weights_.global_out) {
    FinishRows(*weights_.out, band.row0, band.rows, 0);
    return;
  }
  for (const MapTokens& image : plan_.images) {
    const int64_t local0 = image.row0 + stage_.globals;
    FinishRows(*weights_.global_out, image.row0, stage_.globals, image.row0);
    FinishRows(*weights_.out, local0, static_cast<int64_t>(image.place.size()), local0);
  }
}

// What follows attention in rows [first, first + count) of the batch, whose outputs lie from row
// `from` on.
void Block::FinishRows(const DenseLayer& out, int64_t first, int64_t count, int64_t from) const {
  BlockTail tail;
  tail.out = &out;
  tail.after_attention = &weights_.mlp_norm;
  tail.expand = &*weights_.expand;
  tail.contract = &*weights_.contract;
  tail.norms = NormPlace::kPre;
  std::byte* rows = buffers_.rows + from * row_bytes_;
  RunBlockTail(tail, {x_ + first * width_, rows, rows, count}, stage_weights_.sizes, *context_.pool,
               times_);
}

}  // namespace

void RunVilBlock(const VilContext& context, size_t stage, int block, const VilStagePlan& plan,
                 const VilBuffers& buffers, EncoderTimes* times) {
  Block(context, stage, block, plan, buffers, times).Run();
}

}  // namespace longview::models
