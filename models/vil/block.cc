#include "models/vil/block.h"

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
        x_(buffers.x[stage % 2]),
        width_(stage_.width),
        row_bytes_(width_ * ElementBytes(context.compute)),
        times_(times) {}

  void Run() {
    if (number_ == 0) NormRows();
    if (stage_.attention == VilAttention::kLongShort) {
      ProjectLongShort();
    } else {
      Project(*weights_.qkv, 0, plan_.rows, buffers_.qkv);
    }
    if (weights_.global_query) ProjectGlobals();
    {
      const Stopwatch watch(times_ ? &times_->attention : nullptr);
      Attend();
    }
    Finish();
  }

 private:
  // LN(x) of all rows; later blocks find it there.
  void NormRows() const {
    const Stopwatch watch(times_ ? &times_->rest : nullptr);
    const NormWeights norm = weights_.attention_norm.view();
    ParallelRanges(*context_.pool, plan_.rows, 8, [&](long begin, long end) {
      for (long i = begin; i < end; ++i) {
        kernels_.norm(x_ + i * width_, norm, width_, buffers_.rows + i * row_bytes_);
      }
    });
  }

  // Rows [first, first + count) of a linear over LN(x), with its bias, to the same rows of `out`.
  void Project(const DenseLayer& layer, int64_t first, int64_t count, std::byte* out) const {
    const int64_t out_bytes = layer.out() * ElementBytes(context_.compute);
    ForEachRow(layer, buffers_.rows + first * row_bytes_, count, stage_weights_.sizes,
               *context_.pool, times_, [&](int64_t row, std::byte* y) {
                 kernels_.bias_copy(y, layer.bias.data(), layer.out(),
                                    out + (first + row) * out_bytes);
               });
  }

  // The global rows' own keys and values are of every token.
  void ProjectGlobals() const {
    Project(*weights_.global_key_value, 0, plan_.rows, buffers_.global_kv);
    for (const MapTokens& image : plan_.images) {
      Project(*weights_.global_query, image.row0, stage_.globals, buffers_.global_q);
    }
  }

  void ProjectLongShort() const;
  void Attend() const;
  void RunRandomFeatures() const;
  void RunSpans(const kernels::Plan& plan, bool separate_globals) const;
  void RunLongShortAttention() const;
  void Finish() const;
  void FinishRows(const DenseLayer& out, int64_t first, int64_t count) const;

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
};

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

void Block::RunSpans(const kernels::Plan& plan, bool separate_globals) const {
  if (plan.items.empty()) return;
  const VilCall call(context_, index_, plan_, number_, buffers_, separate_globals);
  const kernels::WorkspaceBytes bytes = Measure(plan, call.call(), context_.isa);
  RunPlan(plan, call.call(), kernels::CarveWorkspace(buffers_.workspace, bytes), *context_.pool,
          context_.isa);
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
  if (stage_.relative_bias()) tables = LocalTables(plan_, stage_.heads, number_);
  RunLongShort(LongShortOf(stage_), plan_.long_short, &weights_.landmark_norm, tables,
               context_.device(), rows);
}

void Block::Attend() const {
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
  RunSpans(plan_.attention, false);
  RunSpans(plan_.globals, true);
}

void Block::Finish() const {
  if (!weights_.global_out) {
    FinishRows(*weights_.out, 0, plan_.rows);
    return;
  }
  for (const MapTokens& image : plan_.images) {
    FinishRows(*weights_.global_out, image.row0, stage_.globals);
    FinishRows(*weights_.out, image.row0 + stage_.globals,
               static_cast<int64_t>(image.place.size()));
  }
}

// What follows attention in rows [first, first + count).
void Block::FinishRows(const DenseLayer& out, int64_t first, int64_t count) const {
  const bool last = number_ + 1 == stage_.blocks;
  BlockTail tail;
  tail.out = &out;
  tail.after_attention = &weights_.mlp_norm;
  tail.expand = &*weights_.expand;
  tail.contract = &*weights_.contract;
  tail.after_layer = last ? nullptr : &stage_weights_.blocks[number_ + 1].attention_norm;
  tail.norms = NormPlace::kPre;
  std::byte* rows = buffers_.rows + first * row_bytes_;
  RunBlockTail(tail, {x_ + first * width_, rows, rows, count}, stage_weights_.sizes, *context_.pool,
               times_);
}

}  // namespace

void RunVilBlock(const VilContext& context, size_t stage, int block, const VilStagePlan& plan,
                 const VilBuffers& buffers, EncoderTimes* times) {
  Block(context, stage, block, plan, buffers, times).Run();
}

}  // namespace longview::models
