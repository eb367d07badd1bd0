// An autoregressive Composite Slice decoder made from a directory. Slices behind the last position
// get that one's.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/cst/config.h"
#include "models/generation/model/family.h"
#include "models/generation/passes/forward_decoder.h"
#include "tests/models/generation/decoder_case.h"
#include "tests/support/keeper.h"
#include "tests/support/weight_formats.h"

namespace longview::models {

class CstCase : private Keeper<ModelDirectory>, public OwnedReader<ForwardDecoder> {
 public:
  // On `device`; null: on the host.
  CstCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20,
          int max_tokens = 1 << 14, std::unique_ptr<Device> device = nullptr)
      : Keeper{OrDie(OpenModelDirectory(directory))},
        OwnedReader(OrDie(LoadedIn(dtype,
                                   [&](WeightFormat format) {
                                     return ForwardDecoder::Create(
                                         OrDie(MakeCstLm(kept)).model, directory, format,
                                         {max_tokens, cache_bytes}, std::move(device));
                                   }))),
        config_(OrDie(ParseCstConfig(kept.config, kept.common, kept.config_path))) {}

  const CstConfig& config() const { return config_; }

 private:
  const CstConfig config_;
};

}  // namespace longview::models
