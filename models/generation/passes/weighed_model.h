// The part of a token model that holds its configuration and its weights.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/dense/weight_format.h"
#include "models/directory/model_directory.h"
#include "models/generation/passes/token_model.h"
#include "models/status_macros.h"

namespace longview::models {

// One whose `Weights` have `parameters` and `memory_bytes`, and are read by a function of its own.
template <class Config, class Weights>
class WeighedTokenModel : public TokenModel {
 public:
  using Loader = absl::StatusOr<Weights> (*)(const Config& config, const Checkpoint& checkpoint,
                                             const std::string& origin,
                                             std::optional<WeightFormat> format,
                                             DeviceStore* store);

  // Borrows the directory.
  WeighedTokenModel(Config config, Loader load, const ModelDirectory& directory)
      : config_(std::move(config)), load_(load), directory_(directory) {}

  absl::Status Load(std::optional<WeightFormat> format, DeviceStore* store) final {
    ASSIGN_OR_RETURN(weights_,
                     load_(config_, directory_.checkpoint, directory_.path, format, store));
    return absl::OkStatus();
  }
  double parameters() const final { return weights_.parameters; }
  double memory_bytes() const final { return weights_.memory_bytes; }

 protected:
  const Config config_;
  Weights weights_;

 private:
  const Loader load_;
  const ModelDirectory& directory_;
};

}  // namespace longview::models
