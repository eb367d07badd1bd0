#include "models/encoder/sentence_pipeline.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/checkpoint/checkpoint.h"
#include "models/config/sentence_config.h"
#include "models/encoder/head_rows.h"
#include "models/layers/weight_loader.h"
#include "models/parallel.h"
#include "models/status_macros.h"
#include "models/text/scores.h"

namespace longview::models {
namespace {

class Pooler {
 public:
  Pooler(const float* rows, std::span<const int32_t> tokens, int64_t width)
      : rows_(rows), tokens_(tokens), width_(width) {}

  void Write(PoolMode mode, float* to) const {
    std::vector<double> vector(static_cast<size_t>(width_));
    if (!tokens_.empty()) Pool(mode, vector);
    for (const double value : vector) *to++ = static_cast<float>(value);
  }

 private:
  void Pool(PoolMode mode, std::vector<double>& vector) const {
    switch (mode) {
      case PoolMode::kCls:
        return Take(tokens_.front(), vector);
      case PoolMode::kLastToken:
        return Take(tokens_.back(), vector);
      case PoolMode::kMax:
        return Largest(vector);
      case PoolMode::kMean:
        return Sum([](int64_t) { return 1.0; }, static_cast<double>(tokens_.size()), vector);
      case PoolMode::kMeanSqrt:
        return Sum([](int64_t) { return 1.0; }, std::sqrt(static_cast<double>(tokens_.size())),
                   vector);
      case PoolMode::kWeightedMean: {
        double total = 0;
        for (const int64_t token : tokens_) total += static_cast<double>(token + 1);
        return Sum([](int64_t token) { return static_cast<double>(token + 1); }, total, vector);
      }
    }
  }

  void Take(int64_t token, std::vector<double>& vector) const {
    std::copy_n(rows_ + token * width_, width_, vector.begin());
  }

  void Largest(std::vector<double>& vector) const {
    Take(tokens_.front(), vector);
    for (const int64_t token : tokens_) {
      const float* row = rows_ + token * width_;
      for (int64_t i = 0; i < width_; ++i) {
        vector[static_cast<size_t>(i)] = std::max(vector[static_cast<size_t>(i)], double{row[i]});
      }
    }
  }

  template <typename Weight>
  void Sum(const Weight& weight, double divisor, std::vector<double>& vector) const {
    for (const int64_t token : tokens_) {
      const float* row = rows_ + token * width_;
      const double factor = weight(token);
      for (int64_t i = 0; i < width_; ++i) vector[static_cast<size_t>(i)] += factor * row[i];
    }
    for (double& value : vector) value /= divisor;
  }

  const float* const rows_;
  const std::span<const int32_t> tokens_;
  const int64_t width_;
};

// The vectors of `modes` side by side, [modes * width], from the rows of `tokens` among those of a
// document, [document, width], to `out`. No token: zeros.
void PoolTokens(std::span<const PoolMode> modes, const float* rows, std::span<const int32_t> tokens,
                int64_t width, float* out) {
  const Pooler pooler(rows, tokens, width);
  for (const PoolMode mode : modes) {
    pooler.Write(mode, out);
    out += width;
  }
}

Activation RowActivation(DenseActivation activation) {
  switch (activation) {
    case DenseActivation::kTanh:
      return Activation::kTanh;
    case DenseActivation::kRelu:
      return Activation::kRelu;
    case DenseActivation::kGelu:
      return Activation::kGelu;
    case DenseActivation::kSilu:
      return Activation::kSilu;
    case DenseActivation::kIdentity:
    case DenseActivation::kSigmoid:
      break;
  }
  return Activation::kNone;
}

void NormalizeRows(int64_t rows, std::vector<float>& values) {
  const size_t width = values.size() / static_cast<size_t>(rows);
  for (size_t at = 0; at < values.size(); at += width) {
    NormalizeVector(std::span(values).subspan(at, width));
  }
}

// The tokens that the item's vectors are made of.
std::vector<int32_t> PooledTokens(const EncoderItem& item) {
  if (!item.sentence->chunks.empty()) return item.sentence->tokens;
  const EncoderSequence& sequence = item.sequences[0];
  std::vector<int32_t> tokens;
  for (int32_t t = item.sentence->skipped; t < sequence.tokens(); ++t) {
    if (sequence.roles[static_cast<size_t>(t)] != kernels::kMaskedToken) tokens.push_back(t);
  }
  return tokens;
}

absl::StatusOr<std::optional<DenseLayer>> LoadDense(const SentenceStep& step,
                                                    std::optional<Compute> compute) {
  ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open(step.path));
  WeightLoader load(checkpoint, step.path, compute);
  std::optional<DenseLayer> dense = load.Dense("linear", step.out, step.in, step.bias);
  RETURN_IF_ERROR(load.Finish());
  return dense;
}

}  // namespace

absl::StatusOr<SentencePipeline> SentencePipeline::Load(
    const std::optional<SentenceModules>& modules, int64_t width, std::optional<Compute> compute) {
  SentencePipeline pipeline;
  pipeline.width_ = pipeline.token_width_ = width;
  if (!modules) return pipeline;
  int64_t in = width;
  bool pooled = modules->pooling.empty();
  for (const SentenceStep& config : modules->steps) {
    if (!pooled && !config.tokens) {
      in *= static_cast<int64_t>(modules->pooling.size());
      pooled = true;
    }
    Step step = {config, std::nullopt};
    if (config.kind == SentenceStep::Kind::kDense) {
      if (config.in != in) {
        return absl::InvalidArgumentError(absl::StrCat(
            config.path, "/config.json: \"in_features\": expected ", in, ", found ", config.in));
      }
      ASSIGN_OR_RETURN(std::optional<DenseLayer> dense, LoadDense(config, compute));
      step.dense = std::move(dense);
      in = config.out;
      if (config.tokens) pipeline.token_width_ = in;
    }
    pipeline.steps_.push_back(std::move(step));
  }
  return pipeline;
}

std::vector<float> SentencePipeline::Apply(const Step& step, std::vector<float> values,
                                           int64_t rows, const kernels::ParallelFor& pool) const {
  if (!step.dense) {
    NormalizeRows(rows, values);
    return values;
  }
  std::vector<float> out = ApplyHead(*step.dense, RowsOf(values, step.dense->in()),
                                     RowActivation(step.config.activation), pool);
  if (step.config.activation == DenseActivation::kSigmoid) {
    for (float& value : out) value = 1 / (1 + std::exp(-value));
  }
  return out;
}

std::vector<float> SentencePipeline::TokenRows(const EncoderItem& item, const float* rows,
                                               const kernels::ParallelFor& pool) const {
  const auto count = static_cast<int64_t>(item.sequences[0].wanted.size());
  std::vector<float> values(rows, rows + count * width_);
  for (const Step& step : steps_) {
    if (step.config.tokens) values = Apply(step, std::move(values), count, pool);
  }
  return values;
}

std::vector<float> SentencePipeline::Embed(const EncoderItem& item, const float* rows,
                                           const kernels::ParallelFor& pool) const {
  const std::vector<float> tokens = TokenRows(item, rows, pool);
  const std::vector<int32_t> pooled = PooledTokens(item);
  std::vector<TokenRange> ranges = item.sentence->chunks;
  if (ranges.empty()) ranges.push_back({0, static_cast<int32_t>(pooled.size())});
  const int64_t width = std::ssize(item.sentence->modes) * token_width_;
  std::vector<float> vectors(ranges.size() * static_cast<size_t>(width));
  ParallelRanges(pool, std::ssize(ranges), 1, [&](long begin, long end) {
    for (long i = begin; i < end; ++i) {
      const auto [first, last] = ranges[static_cast<size_t>(i)];
      const auto own =
          std::span(pooled).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first));
      PoolTokens(item.sentence->modes, tokens.data(), own, token_width_,
                 vectors.data() + i * width);
    }
  });
  for (const Step& step : steps_) {
    const bool normalizes = step.config.kind == SentenceStep::Kind::kNormalize;
    if (step.config.tokens || (normalizes && !item.normalize)) continue;
    vectors = Apply(step, std::move(vectors), std::ssize(ranges), pool);
  }
  if (item.normalize) NormalizeRows(std::ssize(ranges), vectors);
  return vectors;
}

EncoderWork SentencePipeline::WorkOf(const EncoderItem& item) const {
  EncoderWork work;
  if (!ReadsRows(item)) return work;
  const auto tokens = static_cast<double>(item.sequences[0].wanted.size());
  double vectors = 0;
  if (item.task != Task::kMultiVector) {
    const SentencePooling& pooling = *item.sentence;
    double pooled = pooling.chunks.empty() ? tokens : 0;
    for (const auto& [begin, end] : pooling.chunks) pooled += end - begin;
    work.rows += pooled * static_cast<double>(std::ssize(pooling.modes) * token_width_);
    vectors = std::max(static_cast<double>(pooling.chunks.size()), 1.0);
  }
  work.rows += tokens * static_cast<double>(width_);
  for (const Step& step : steps_) {
    const double rows = step.config.tokens ? tokens : vectors;
    work.linear += rows * static_cast<double>(step.config.in * step.config.out);
  }
  return work;
}

size_t SentencePipeline::WorkspaceBytes(const EncoderItem& item) const {
  if (!ReadsRows(item)) return 0;
  const size_t tokens = item.sequences[0].wanted.size();
  int64_t wide = width_;  // Floats of a token that are alive at a time.
  for (const Step& step : steps_) {
    if (step.config.tokens) wide = std::max(wide, step.config.in + step.config.out);
  }
  size_t bytes = tokens * static_cast<size_t>(wide) * sizeof(float);
  if (item.task == Task::kMultiVector) return bytes;
  const size_t vectors = std::max<size_t>(item.sentence->chunks.size(), 1);
  bytes += tokens * sizeof(int32_t) + vectors * sizeof(TokenRange);
  return bytes +
         vectors * item.sentence->modes.size() * static_cast<size_t>(token_width_) * sizeof(float);
}

void SentencePipeline::Finish(const EncoderItem& item, const float* rows,
                              const kernels::ParallelFor& pool, HeadOutput& output) const {
  if (item.task == Task::kMultiVector) {
    output.token_rows = TokenRows(item, rows, pool);
    return;
  }
  if (!item.Wants("embedding")) return;
  if (item.sentence) output.embedding = Embed(item, rows, pool);
  const int64_t vectors = std::max<int64_t>(item.chunks(), 1);
  const int64_t width = std::ssize(output.embedding) / vectors;
  if (item.dimensions == 0 || item.dimensions == width) return;
  for (int64_t i = 0; i < vectors; ++i) {
    const auto from = output.embedding.begin() + i * width;
    std::copy(from, from + item.dimensions, output.embedding.begin() + i * item.dimensions);
  }
  output.embedding.resize(static_cast<size_t>(vectors * item.dimensions));
  if (item.normalize) NormalizeRows(vectors, output.embedding);
}

}  // namespace longview::models
