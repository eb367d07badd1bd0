// A decoder with what reads it.
#pragma once

#include <memory>
#include <utility>

#include "models/dense/compute.h"
#include "models/directory/model_directory.h"
#include "tests/models/generation/decoder_reader.h"

namespace longview::models {

// Owns the decoder that it reads with.
template <typename D>
class OwnedReader : public DecoderReader {
 public:
  explicit OwnedReader(std::unique_ptr<D> decoder)
      : DecoderReader(decoder.get()), decoder_(std::move(decoder)) {}

  D& decoder() { return *decoder_; }
  const auto& config() const { return decoder_->config(); }

 private:
  std::unique_ptr<D> decoder_;
};

}  // namespace longview::models
