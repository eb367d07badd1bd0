// An autoregressive Composite Slice decoder made from a directory, with short ways to read.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/cst/lm_decoder.h"
#include "tests/models/generation/decoder_reader.h"

namespace longview::models {

// Aborts with a message where the directory does not load. `max_tokens` may exceed the model's
// own limit: tests of bits and of memory need long texts, and slices behind the last position get
// that one's.
class CstCase : public DecoderReader {
 public:
  CstCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20,
          int max_tokens = 1 << 14);

  CstDecoder& decoder() { return *decoder_; }
  const CstConfig& config() const { return decoder_->config(); }

 private:
  explicit CstCase(std::unique_ptr<CstDecoder> decoder)
      : DecoderReader(decoder.get()), decoder_(std::move(decoder)) {}

  std::unique_ptr<CstDecoder> decoder_;
};

}  // namespace longview::models
