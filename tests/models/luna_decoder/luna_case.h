// A Luna language or translation model's decoder made from a directory, with the limits of its
// tables.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/generation/passes/forward_decoder.h"
#include "models/luna_decoder/model.h"
#include "tests/models/generation/decoder_case.h"

namespace longview::models {

inline std::unique_ptr<ForwardDecoder> LoadLuna(const std::string& directory,
                                                const std::string& dtype, double cache_bytes) {
  ModelDirectory files = OrDie(OpenModelDirectory(directory));
  const LunaDecoderConfig config =
      OrDie(ParseLunaDecoderConfig(files.config, files.common, files.config_path));
  const int document = config.encoder ? config.encoder->max_tokens : 0;
  return OrDie(ForwardDecoder::Create(
      std::make_unique<LunaLm>(config, std::move(files.checkpoint), directory, document), directory,
      dtype == "fp32" ? Compute::kFp32 : Compute::kBf16,
      {config.max_tokens + (config.encoder ? 1 : 0), cache_bytes}, nullptr));
}

class LunaCase : public OwnedReader<ForwardDecoder> {
 public:
  LunaCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20)
      : OwnedReader(LoadLuna(directory, dtype, cache_bytes)) {}

  const LunaDecoderConfig& config() {
    return static_cast<const LunaLm&>(decoder().model()).config();
  }
};

}  // namespace longview::models
