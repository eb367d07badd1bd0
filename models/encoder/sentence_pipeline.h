// The modules of a sentence-transformers directory behind its encoder: over the rows of tokens,
// pooling, over the vector, and the cut to its first numbers.
//
// Immutable after load: thread-safe but for the modules' products, which belong to the executor's
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/base/parallel.h"
#include "models/config/sentence_config.h"
#include "models/cost/work.h"
#include "models/dense/compute.h"
#include "models/dense/layer.h"
#include "models/encoder/family.h"
#include "models/encoder/item.h"

namespace longview::models {

class SentencePipeline {
 public:
  // `width`: of the encoder's rows. Reads the modules' weights, or with no compute type checks
  // their names and shapes. Errors name module and tensor. Without `modules` there are none.
  static absl::StatusOr<SentencePipeline> Load(const std::optional<SentenceModules>& modules,
                                               int64_t width, std::optional<Compute> compute);

  // Completes what the heads made of the item, whose first sequence's wanted rows are `rows`.
  // Throws what LibTorch throws.
  void Finish(const EncoderItem& item, const float* rows, const kernels::ParallelFor& pool,
              HeadOutput& output) const;

  // Work and most bytes of Finish, which grow with tokens and with those of every vector.
  EncoderWork WorkOf(const EncoderItem& item) const;
  size_t WorkspaceBytes(const EncoderItem& item) const;

 private:
  struct Step {
    SentenceStep config;
    std::optional<DenseLayer> dense;
  };

  // Whether Finish computes anything of the rows.
  static bool ReadsRows(const EncoderItem& item) {
    return item.task == Task::kMultiVector || (item.sentence && item.Wants("embedding"));
  }
  // values [rows, in] -> [rows, out].
  std::vector<float> Apply(const Step& step, std::vector<float> values, int64_t rows,
                           const kernels::ParallelFor& pool) const;
  std::vector<float> TokenRows(const EncoderItem& item, const float* rows,
                               const kernels::ParallelFor& pool) const;
  std::vector<float> Embed(const EncoderItem& item, const float* rows,
                           const kernels::ParallelFor& pool) const;

  int64_t width_ = 0, token_width_ = 0;
  std::vector<Step> steps_;
};

}  // namespace longview::models
