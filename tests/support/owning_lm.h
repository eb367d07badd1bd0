// A Transformer-LS language model that owns its checkpoint.
#pragma once

#include <string>
#include <utility>

#include "models/checkpoint/checkpoint.h"
#include "models/transformer_ls/model.h"
#include "tests/support/keeper.h"

namespace longview::models {

class OwningLm final : private Keeper<Checkpoint>, public LsLm {
 public:
  OwningLm(const LsLmConfig& config, Checkpoint checkpoint, std::string origin, int max_tokens)
      : Keeper{std::move(checkpoint)}, LsLm(config, kept, std::move(origin), max_tokens) {}
};

}  // namespace longview::models
