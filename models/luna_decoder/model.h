// Luna's generating models: language models and translation.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "models/dense/weight_format.h"
#include "models/directory/model_directory.h"
#include "models/generation/passes/token_model.h"
#include "models/luna_decoder/source.h"

namespace longview::models {

// For ForwardDecoder: sequences of constant size, and for translation documents that the layers of
// the decoder read once.
class LunaLm final : public TokenModel {
 public:
  // Borrows the directory; `max_document` tokens of a translation's source.
  LunaLm(const LunaDecoderConfig& config, const ModelDirectory& directory, int max_document);

  const LunaDecoderConfig& config() const { return config_; }

  const char* family() const override { return "luna"; }
  int vocab() const override { return config_.vocab; }
  kernels::CacheShape Shape(kernels::DType blocks) const override;
  // The sums of a prefix are no part of those of the whole.
  bool finds_prompts() const override { return false; }
  const SourceModel* source() const override { return source_ ? &*source_ : nullptr; }
  absl::Status Load(std::optional<WeightFormat> format, DeviceStore* store) override;
  // A shared embedding counts once.
  double parameters() const override;
  double memory_bytes() const override { return weights_.memory_bytes + encoder_.memory_bytes; }
  std::unique_ptr<TokenForward> Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                        int64_t logit_rows) const override;

 private:
  const LunaDecoderConfig config_;
  const ModelDirectory& directory_;
  LunaDecoderWeights weights_;
  LunaWeights encoder_;  // Set for translation models.
  std::optional<LunaSource> source_;
};

}  // namespace longview::models
