#include "models/cvt_ls/block.h"

#include <algorithm>
#include <cstring>

#include "models/cvt_ls/separable.h"
#include "models/layers/block_tail.h"
#include "models/long_short/large_map.h"
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
        pattern_(LongShortOf(config_, stage_)),
        buffers_(buffers),
        kernels_(ChooseRowKernels(context.compute)),
        width_(stage_.width),
        row_bytes_(width_ * ElementBytes(context.compute)),
        zeros_(static_cast<size_t>(width_)),
        panels_{context.pool, buffers.panel, times},
        times_(times) {}

  void Run() {
    for (const LongShortBand& band : plan_.bands) {
      if (band.is_large()) {
        RunLarge(band);
      } else {
        RunWhole(band);
      }
    }
  }

 private:
  // Rows of the batch whose LN(x) lies in buffers.rows.
  ConvolvedRows NormedRows(int64_t row0) const { return {buffers_.rows, row_bytes_, row0}; }
  void NormRows(RowRange range) const {
    panels_.Each(range.count, [&](long i) {
      kernels_.norm(buffers_.x + (range.first + i) * width_, weights_.attention_norm.view(), width_,
                    buffers_.rows + i * row_bytes_);
    });
  }

  void RunWhole(const LongShortBand& band) const;
  void RunLarge(const LongShortBand& band) const;
  struct SlicedRows;
  ConvolvedRows NormAround(const LongShortBand& band, int64_t begin, int64_t end) const;
  void ProjectTokens(ConvolvedRows normed, RowRange range, bool queries, std::byte* qkv) const;
  void ProjectPart(const Separable& separable, ConvolvedRows normed, RowRange range, int part,
                   std::byte* qkv) const;
  void ProjectScores(const Separable& separable, ConvolvedRows input, RowRange range,
                     float* scores) const;
  void NormTokens(int64_t count, std::byte* qkv) const;
  const Norm* landmark_norm() const {
    return config_.dual_norm ? &weights_.landmark_norm : nullptr;
  }
  void Finish(const LongShortBand& band, std::byte* outputs, const Norm* next) const;

  const CvtContext& context_;
  const CvtConfig& config_;
  const int number_;
  const CvtStage& stage_;
  const CvtStageWeights& stage_weights_;
  const CvtBlock& weights_;
  const CvtStagePlan& plan_;
  const LongShortPattern pattern_;
  const CvtBuffers& buffers_;
  const RowKernels& kernels_;
  const int64_t width_;
  const int64_t row_bytes_;
  const std::vector<float> zeros_;
  const PanelContext panels_;
  EncoderTimes* const times_;
};

// One of queries, keys and values: row i of the range becomes row i of `qkv`.
void Block::ProjectPart(const Separable& separable, ConvolvedRows normed, RowRange range, int part,
                        std::byte* qkv) const {
  const float* bias = separable.pointwise->bias.data();
  ConvolveRows(separable, plan_, normed, range, stage_weights_.sizes, panels_,
               [&](int64_t row, const std::byte* y) {
                 const bool as_is = plan_.PlaceOf(row).y < 0 && !config_.class_pointwise;
                 kernels_.bias_copy(as_is ? normed.at(row) : y, as_is ? zeros_.data() : bias,
                                    width_, qkv + (3 * (row - range.first) + part) * row_bytes_);
               });
}

void Block::ProjectScores(const Separable& separable, ConvolvedRows input, RowRange range,
                          float* scores) const {
  const DenseLayer& pointwise = *separable.pointwise;
  ConvolveRows(separable, plan_, input, range, stage_weights_.sizes, panels_,
               [&](int64_t row, const std::byte* y) {
                 kernels_.bias_widen(y, pointwise.bias.data(), pointwise.out(),
                                     scores + (row - range.first) * pointwise.out());
               });
}

void Block::ProjectTokens(ConvolvedRows normed, RowRange range, bool queries,
                          std::byte* qkv) const {
  if (queries) ProjectPart(weights_.query, normed, range, 0, qkv);
  ProjectPart(weights_.key, normed, range, 1, qkv);
  ProjectPart(weights_.value, normed, range, 2, qkv);
}

// Keys and values, after the scores may have been read off the keys as they were.
void Block::NormTokens(int64_t count, std::byte* qkv) const {
  if (!config_.dual_norm) return;
  const NormWeights norm = weights_.token_norm.view();
  panels_.Each(count, [&](long row) {
    for (int part = 1; part < 3; ++part) {
      std::byte* at = qkv + (3 * row + part) * row_bytes_;
      kernels_.bias_norm(at, zeros_.data(), norm, width_, at);
    }
  });
}

// Where all images are one band, what follows attention leaves LN(x) for the next block.
void Block::RunWhole(const LongShortBand& band) const {
  const bool alone = plan_.bands.size() == 1;
  const RowRange range = {band.row0, band.rows};
  if (number_ == 0 || !alone) NormRows(range);
  ProjectTokens(NormedRows(band.row0), range, true, buffers_.qkv);
  if (stage_.ranks > 0) {
    const ConvolvedRows keys{buffers_.qkv + row_bytes_, 3 * row_bytes_, band.row0};
    const ConvolvedRows input = config_.landmarks_from_keys ? keys : NormedRows(band.row0);
    ProjectScores(weights_.landmarks, input, range, buffers_.scores);
    if (!config_.shared_landmarks) {
      ProjectScores(weights_.value_landmarks, input, range, buffers_.value_scores);
    }
  }
  NormTokens(band.rows, buffers_.qkv);
  Stopwatch watch(times_ ? &times_->attention : nullptr);
  LongShortMapRows rows;
  rows.qkv = buffers_.qkv;
  rows.z = buffers_.rows;
  rows.scores = buffers_.scores;
  rows.value_scores = config_.shared_landmarks ? nullptr : buffers_.value_scores;
  rows.landmarks = buffers_.long_short;
  rows.workspace = buffers_.workspace;
  RunLongShort(pattern_, *band.whole, landmark_norm(), {}, context_, rows);
  watch.Stop();
  const bool last = number_ + 1 == stage_.blocks;
  Finish(band, buffers_.rows,
         last || !alone ? nullptr : &stage_weights_.blocks[number_ + 1].attention_norm);
}

// LN(x) of tokens [begin, end) and of their neighbours.
ConvolvedRows Block::NormAround(const LongShortBand& band, int64_t begin, int64_t end) const {
  const int64_t beside = int64_t{std::max(stage_.window, 1)} * band.map.shapes[0].width;
  const int64_t first = std::max<int64_t>(begin - beside, 0);
  const int64_t local0 = band.row0 + pattern_.class_tokens;
  NormRows({local0 + first, std::min(end + beside, band.map.tokens) - first});
  return NormedRows(local0 + first);
}

// The rows of x that RunLargeMap asks for.
struct Block::SlicedRows {
  RowRange Range(int64_t begin, int64_t end) const {
    return {band.row0 + block.pattern_.class_tokens + begin, end - begin};
  }
  void Score(int64_t begin, int64_t end) const {
    const ConvolvedRows normed = block.NormAround(band, begin, end);
    const int64_t at = begin * block.stage_.columns();
    block.ProjectScores(block.weights_.landmarks, normed, Range(begin, end), rows.weights + at);
    if (rows.value_weights == nullptr) return;
    block.ProjectScores(block.weights_.value_landmarks, normed, Range(begin, end),
                        rows.value_weights + at);
  }
  void Project(int64_t begin, int64_t end, bool queries, std::byte* to) const {
    const ConvolvedRows normed = block.NormAround(band, begin, end);
    block.ProjectTokens(normed, Range(begin, end), queries, to);
    block.NormTokens(end - begin, to);
  }
  void ProjectClass(std::byte* to) const {
    const RowRange range = {band.row0, block.pattern_.class_tokens};
    block.NormRows(range);
    block.ProjectTokens(block.NormedRows(band.row0), range, true, to);
    block.NormTokens(range.count, to);
  }
  std::vector<kernels::Table> Tables(size_t) const { return {}; }

  const Block& block;
  const LongShortBand& band;
  const LongShortSliceRows& rows;
};

// x changes once all outputs are there.
void Block::RunLarge(const LongShortBand& band) const {
  LongShortSliceRows rows;
  rows.qkv = buffers_.qkv;
  rows.z = buffers_.outputs;
  rows.weights = reinterpret_cast<float*>(buffers_.outputs);
  if (!config_.shared_landmarks) {
    rows.value_weights = rows.weights + band.map.tokens * stage_.columns();
  }
  rows.scratch = buffers_.long_short;
  rows.workspace = buffers_.workspace;
  RunLargeMap(pattern_, band, landmark_norm(), context_, rows,
              times_ ? &times_->attention : nullptr, SlicedRows{*this, band, rows});
  Finish(band, buffers_.outputs, nullptr);
}

// `next`: of whatever reads LN(x) from buffers.rows afterwards; null: nobody.
void Block::Finish(const LongShortBand& band, std::byte* outputs, const Norm* next) const {
  BlockTail tail;
  tail.out = weights_.out ? &*weights_.out : nullptr;
  tail.after_attention = &weights_.mlp_norm;
  tail.expand = &*weights_.expand;
  tail.contract = &*weights_.contract;
  tail.after_layer = next;
  tail.activation = config_.activation;
  tail.norms = NormPlace::kPre;
  RunBlockTail(tail, {buffers_.x + band.row0 * width_, outputs, outputs, band.rows},
               stage_weights_.sizes, *context_.pool, times_);
}

}  // namespace

void RunCvtBlock(const CvtContext& context, size_t stage, int block, const CvtStagePlan& plan,
                 const CvtBuffers& buffers, EncoderTimes* times) {
  Block(context, stage, block, plan, buffers, times).Run();
}

}  // namespace longview::models
