// The frame of a family's loader: a class that derives from it reads the checkpoint's tensors, in
// the order of the layers, into `weights_`.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/weight_source.h"
#include "models/dense/weight_format.h"
#include "models/layers/weight_loader.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

// `Config` has `width` and `norm_eps`; `Weights` have `parameters` and `memory_bytes`, and may have
// `notes` on tensors that are left aside. Borrows all.
template <class Config, class Weights>
class FamilyLoader {
 public:
  FamilyLoader(const Config& config, const Checkpoint& checkpoint, const std::string& origin,
               std::optional<WeightFormat> format, DeviceStore* store)
      : config_(config),
        checkpoint_(checkpoint),
        load_(checkpoint, origin, format),
        place_(load_, store) {}

 protected:
  NormWeight LayerNorm(const std::string& name) {
    return place_.Norm(load_.LayerNorm(name, config_.width, config_.norm_eps), config_.width);
  }

  // The weights, or the first error: a tensor that is missing, or one that nothing asked for.
  absl::StatusOr<Weights> Finish() {
    absl::Status status = load_.Finish();
    if constexpr (requires { weights_.notes; }) {
      status = LeaveSurplusAside(status, weights_.notes);
    }
    if (!status.ok()) return status;
    weights_.parameters = load_.parameters();
    weights_.memory_bytes = load_.memory_bytes();
    return std::move(weights_);
  }

  const Config& config_;
  const Checkpoint& checkpoint_;
  WeightLoader load_;
  WeightPlacer place_;
  Weights weights_;
};

}  // namespace longview::models
