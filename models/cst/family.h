// Composite Slice encoders as a family: what its models are, how their tokens are placed, what they
// cost. On the CPU as it is; device_model.h puts the layers on a device.
#pragma once

#include <cstddef>
#include <string>

#include "models/cst/encoder.h"
#include "models/cst/heads.h"
#include "models/encoder/weighted_family.h"

namespace longview::models {

EncoderFacts CstFacts(const CstConfig& config);

class Cst : public WeightedFamily<CstBatch, ParseCstConfig, LoadCstWeights, CstFacts> {
 public:
  using WeightedFamily::WeightedFamily;

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;
  size_t WorkspaceBytes(Sequences sequences) const override;
  EncoderWork WorkOf(const EncoderSequence& sequence) const override;

  int64_t LogitFloats(const EncoderItem& item) const override {
    return CstLogitFloats(config_, item);
  }
};

}  // namespace longview::models
