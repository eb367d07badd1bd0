// Who takes the layers of a model that computes elsewhere, while its checkpoint is read: a device
// that keeps them in its own memory.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "models/layers/weight_loader.h"

namespace longview::models {

// Calls come in the order of the family's layers: the linears of a layer in the order of its
// struct, then its norms. Spans are gone after the call.
class LayerSink {
 public:
  virtual ~LayerSink() = default;

  // weight [out, in], bias [out]; `name` is for messages.
  virtual absl::Status Linear(const std::string& name, std::span<const float> weight,
                              std::span<const float> bias) = 0;
  virtual void Norms(std::span<const Norm* const> norms) = 0;

  // Takes the loader's linears from now on.
  void TakeLinearsOf(WeightLoader& load) {
    load.set_taker([this](const std::string& name, std::span<const float> weight,
                          std::span<const float> bias) { return Linear(name, weight, bias); });
  }
};

}  // namespace longview::models
