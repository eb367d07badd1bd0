// A Luna language or translation model's decoder made from a directory, with the limits of its
// tables.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/generation/model/family.h"
#include "models/generation/passes/forward_decoder.h"
#include "models/luna_decoder/model.h"
#include "tests/models/generation/decoder_case.h"
#include "tests/support/keeper.h"

namespace longview::models {

class LunaCase : private Keeper<ModelDirectory>, public OwnedReader<ForwardDecoder> {
 public:
  LunaCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20)
      : Keeper{OrDie(OpenModelDirectory(directory))}, OwnedReader(Load(kept, dtype, cache_bytes)) {}

  const LunaDecoderConfig& config() {
    return static_cast<const LunaLm&>(decoder().model()).config();
  }

 private:
  static std::unique_ptr<ForwardDecoder> Load(const ModelDirectory& files, const std::string& dtype,
                                              double cache_bytes) {
    GeneratorFamily family = OrDie(MakeLunaDecoder(files));
    return OrDie(ForwardDecoder::Create(std::move(family.model), files.path,
                                        dtype == "fp32" ? Compute::kFp32 : Compute::kBf16,
                                        {family.max_tokens, cache_bytes}, nullptr));
  }
};

}  // namespace longview::models
