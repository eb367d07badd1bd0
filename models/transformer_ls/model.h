// Transformer-LS language models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/weight_format.h"
#include "models/generation/passes/token_model.h"
#include "models/transformer_ls/context.h"

namespace longview::models {

// For ForwardDecoder.
class LsLm : public TokenModel {
 public:
  // For texts of up to `max_tokens` tokens. Borrows the checkpoint; `origin` begins messages.
  LsLm(const LsLmConfig& config, const Checkpoint& checkpoint, std::string origin, int max_tokens);

  const LsLmConfig& config() const { return config_; }
  const LsLmWeights& weights() const { return weights_; }
  // The parts that a pass in this frame shares with all others; valid as long as the model.
  LsContext ContextOf(const TokenFrame& frame) const;

  const char* family() const override { return "transformer_ls"; }
  int vocab() const override { return config_.vocab; }
  int prefill_alignment() const override { return config_.prefill_alignment(); }
  int64_t boundary() const override { return config_.early() ? config_.block : 0; }
  std::vector<int> ends() const override;
  kernels::CacheShape Shape(kernels::DType blocks) const override;
  ComputeContext Host(Compute compute, const kernels::ParallelFor& pool) const override;
  absl::Status Load(std::optional<WeightFormat> format, DeviceStore* store) override;
  void Loaded(const ComputeContext& host, kernels::DType blocks) override;
  double parameters() const override { return weights_.parameters; }
  double memory_bytes() const override { return weights_.memory_bytes; }
  double TableBytes(int64_t tokens) const override;
  std::unique_ptr<TokenForward> Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                        int64_t logit_rows) const override;

 private:
  const LsLmConfig config_;
  const Checkpoint& checkpoint_;
  const std::string origin_;
  const int max_tokens_;
  bool on_device_ = false;
  LsLmWeights weights_;
  std::unique_ptr<RelativeTables> tables_;
  std::unique_ptr<ZeroBlocks> zero_;
};

}  // namespace longview::models
