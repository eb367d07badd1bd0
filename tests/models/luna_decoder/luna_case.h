// A Luna language or translation model's decoder made from a directory, with the limits of its
// tables.
#pragma once

#include <string>
#include <tuple>

#include "models/luna_decoder/decoder.h"
#include "tests/models/generation/decoder_case.h"

namespace longview::models {

class LunaCase : public OwnedReader<LunaDecoder> {
 public:
  LunaCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20)
      : OwnedReader(LoadDecoder<LunaDecoder>(
            ParseLunaDecoderConfig, directory, dtype, [&](const LunaDecoderConfig& config) {
              const bool translates = config.encoder.has_value();
              return std::make_tuple(
                  LunaDecoder::Limits{config.max_tokens + (translates ? 1 : 0),
                                      translates ? config.encoder->max_tokens : 0, cache_bytes});
            })) {}
};

}  // namespace longview::models
