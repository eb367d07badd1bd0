#include "models/cvt_ls/block.h"

#include "models/cvt_ls/separable.h"
#include "models/layers/block_tail.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// The steps of one block over one batch.
class Block {
 public:
  Block(const CvtContext& context, size_t stage, int block, const CvtStagePlan& plan,
        const CvtBuffers& buffers, EncoderTimes* times)
      : context_(context),
        config_(*context.config),
        number_(block),
        stage_(config_.stages[stage]),
        stage_weights_(context.weights->stages[stage]),
        weights_(stage_weights_.blocks[block]),
        plan_(plan),
        buffers_(buffers),
        kernels_(ChooseRowKernels(context.compute)),
        x_(buffers.x[stage % 2]),
        width_(stage_.width),
        row_bytes_(width_ * ElementBytes(context.compute)),
        zeros_(static_cast<size_t>(width_)),
        panels_{context.pool, buffers.panel, times},
        times_(times) {}

  void Run() {
    if (number_ == 0) NormRows();
    Project();
    Attend();
    Finish();
  }

 private:
  void NormRows() const {
    panels_.Each(plan_.rows(), [&](long i) {
      kernels_.norm(x_ + i * width_, weights_.attention_norm.view(), width_,
                    buffers_.rows + i * row_bytes_);
    });
  }

  ConvolvedRows NormedRows() const { return {buffers_.rows, row_bytes_}; }
  std::byte* Part(int64_t row, int part) const {
    return buffers_.qkv + (3 * row + part) * row_bytes_;
  }

  void Project() const;
  void ProjectPart(const Separable& separable, int part) const;
  void ProjectScores(const Separable& separable, ConvolvedRows input, float* scores) const;
  void NormTokens() const;
  void Attend() const;
  void Finish() const;

  const CvtContext& context_;
  const CvtConfig& config_;
  const int number_;
  const CvtStage& stage_;
  const CvtStageWeights& stage_weights_;
  const CvtBlock& weights_;
  const CvtStagePlan& plan_;
  const CvtBuffers& buffers_;
  const RowKernels& kernels_;
  float* const x_;
  const int64_t width_;
  const int64_t row_bytes_;
  const std::vector<float> zeros_;
  const PanelContext panels_;
  EncoderTimes* const times_;
};

void Block::ProjectPart(const Separable& separable, int part) const {
  const float* bias = separable.pointwise->bias.data();
  ConvolveRows(separable, plan_, NormedRows(), stage_weights_.sizes, panels_,
               [&](int64_t row, const std::byte* y) {
                 const bool as_is = plan_.places[row].y < 0 && !config_.class_pointwise;
                 kernels_.bias_copy(as_is ? buffers_.rows + row * row_bytes_ : y,
                                    as_is ? zeros_.data() : bias, width_, Part(row, part));
               });
}

void Block::ProjectScores(const Separable& separable, ConvolvedRows input, float* scores) const {
  const DenseLayer& pointwise = *separable.pointwise;
  ConvolveRows(separable, plan_, input, stage_weights_.sizes, panels_,
               [&](int64_t row, const std::byte* y) {
                 kernels_.bias_widen(y, pointwise.bias.data(), pointwise.out(),
                                     scores + row * pointwise.out());
               });
}

// Keys and values, after the scores may have been read off the keys as they were.
void Block::NormTokens() const {
  const NormWeights norm = weights_.token_norm.view();
  panels_.Each(plan_.rows(), [&](long row) {
    for (int part = 1; part < 3; ++part) {
      kernels_.bias_norm(Part(row, part), zeros_.data(), norm, width_, Part(row, part));
    }
  });
}

void Block::Project() const {
  ProjectPart(weights_.query, 0);
  ProjectPart(weights_.key, 1);
  ProjectPart(weights_.value, 2);
  if (stage_.ranks > 0) {
    const ConvolvedRows keys{Part(0, 1), 3 * row_bytes_};
    const ConvolvedRows input = config_.landmarks_from_keys ? keys : NormedRows();
    ProjectScores(weights_.landmarks, input, buffers_.scores);
    if (!config_.shared_landmarks) {
      ProjectScores(weights_.value_landmarks, input, buffers_.value_scores);
    }
  }
  if (config_.dual_norm) NormTokens();
}

void Block::Attend() const {
  const Stopwatch watch(times_ ? &times_->attention : nullptr);
  LongShortRows rows;
  rows.qkv = buffers_.qkv;
  rows.z = buffers_.rows;
  rows.scores = buffers_.scores;
  rows.value_scores = config_.shared_landmarks ? nullptr : buffers_.value_scores;
  rows.landmarks = buffers_.long_short;
  rows.workspace = buffers_.workspace;
  RunLongShort(LongShortOf(config_, stage_), plan_.attention,
               config_.dual_norm ? &weights_.landmark_norm : nullptr, {}, context_, rows);
}

void Block::Finish() const {
  const bool last = number_ + 1 == stage_.blocks;
  BlockTail tail;
  tail.out = weights_.out ? &*weights_.out : nullptr;
  tail.after_attention = &weights_.mlp_norm;
  tail.expand = &*weights_.expand;
  tail.contract = &*weights_.contract;
  tail.after_layer = last ? nullptr : &stage_weights_.blocks[number_ + 1].attention_norm;
  tail.activation = config_.activation;
  tail.norms = NormPlace::kPre;
  RunBlockTail(tail, {x_, buffers_.rows, buffers_.rows, plan_.rows()}, stage_weights_.sizes,
               *context_.pool, times_);
}

}  // namespace

void RunCvtBlock(const CvtContext& context, size_t stage, int block, const CvtStagePlan& plan,
                 const CvtBuffers& buffers, EncoderTimes* times) {
  Block(context, stage, block, plan, buffers, times).Run();
}

}  // namespace longview::models
