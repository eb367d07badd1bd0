// A Transformer-LS decoder made from a directory, to read with.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/model_directory.h"
#include "models/transformer_ls/decoder.h"
#include "tests/models/generation/decoder_reader.h"

namespace longview::models {

// Aborts with a message where the directory does not load.
class LsCase : public DecoderReader {
 public:
  LsCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20,
         int max_tokens = 1 << 14);

  LsDecoder& decoder() { return *decoder_; }
  const LsLmConfig& config() const { return decoder_->config(); }

 private:
  explicit LsCase(std::unique_ptr<LsDecoder> decoder)
      : DecoderReader(decoder.get()), decoder_(std::move(decoder)) {}

  std::unique_ptr<LsDecoder> decoder_;
};

}  // namespace longview::models
