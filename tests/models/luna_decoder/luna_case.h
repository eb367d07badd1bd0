// A Luna language model's decoder made from a directory, to read with.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/luna_decoder/decoder.h"
#include "tests/models/generation/decoder_reader.h"

namespace longview::models {

// Aborts with a message where the directory does not load.
class LunaCase : public DecoderReader {
 public:
  LunaCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20);

  LunaDecoder& decoder() { return *decoder_; }
  const LunaDecoderConfig& config() const { return decoder_->config(); }

 private:
  explicit LunaCase(std::unique_ptr<LunaDecoder> decoder)
      : DecoderReader(decoder.get()), decoder_(std::move(decoder)) {}

  std::unique_ptr<LunaDecoder> decoder_;
};

}  // namespace longview::models
