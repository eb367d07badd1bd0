// A family's decoder made from a directory, to read with.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "models/dense/compute.h"
#include "models/model_directory.h"
#include "tests/models/generation/decoder_reader.h"

namespace longview::models {

// `limits(config)`: what Create takes behind the compute type, as a tuple. Aborts with a message
// where the directory does not load.
template <typename D, typename ParseConfig, typename Limits>
std::unique_ptr<D> LoadDecoder(ParseConfig parse, const std::string& directory,
                               const std::string& dtype, const Limits& limits) {
  ModelDirectory files = OrDie(OpenModelDirectory(directory));
  const auto config = OrDie(parse(files.config, files.common, files.config_path));
  const Compute compute = dtype == "fp32" ? Compute::kFp32 : Compute::kBf16;
  return std::apply(
      [&](const auto&... limit) {
        return OrDie(D::Create(config, std::move(files.checkpoint), directory, compute, limit...));
      },
      limits(config));
}

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
