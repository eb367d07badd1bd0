// Luna's encoders as a family: what its models are, how their tokens are placed, what they cost. On
// the CPU as it is; device_model.h puts the layers on a device.
#pragma once

#include <cstddef>
#include <string>

#include "models/encoder/weighted_family.h"
#include "models/luna/encoder.h"
#include "models/luna/heads.h"

namespace longview::models {

EncoderFacts LunaFacts(const LunaConfig& config);

class Luna : public WeightedFamily<LunaBatch, ParseLunaConfig, LoadLunaWeights, LunaFacts> {
 public:
  using WeightedFamily::WeightedFamily;

  absl::Status Place(const std::string& field, EncoderSequence& sequence) const override;

  size_t WorkspaceBytes(Sequences sequences) const override;
  EncoderWork WorkOf(const EncoderSequence& sequence) const override;

  int64_t LogitFloats(const EncoderItem& item) const override {
    return LunaLogitFloats(config_, item);
  }

 private:
  absl::Status StripClass(const std::string& field, EncoderSequence& sequence) const;
};

}  // namespace longview::models
