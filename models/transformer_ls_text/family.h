// Transformer-LS text encoders as a family: what its models are, how their tokens are placed, what
// they cost. On the CPU as it is; device_model.h puts the layers on a device.
#pragma once

#include <cstddef>
#include <string>

#include "models/encoder/weighted_family.h"
#include "models/transformer_ls_text/encoder.h"

namespace longview::models {

EncoderFacts LsTextFacts(const LsTextConfig& config);

class LsText
    : public WeightedFamily<LsTextBatch, ParseLsTextConfig, LoadLsTextWeights, LsTextFacts> {
 public:
  using WeightedFamily::WeightedFamily;

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;

  size_t WorkspaceBytes(Sequences sequences) const override;
  EncoderWork WorkOf(const EncoderSequence& sequence) const override;

  int64_t LogitFloats(const EncoderItem& item) const override {
    return item.ReadsLogits() ? static_cast<int64_t>(config_.labels.size()) : 0;
  }
};

}  // namespace longview::models
