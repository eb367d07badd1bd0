// A Transformer-LS decoder made from a directory.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "models/generation/passes/forward_decoder.h"
#include "models/transformer_ls/model.h"
#include "tests/models/generation/decoder_case.h"
#include "tests/support/owning_lm.h"
#include "tests/support/weight_formats.h"

namespace longview::models {

inline const LsLm& LmOf(const ForwardDecoder& decoder) {
  return static_cast<const LsLm&>(decoder.model());
}

// On `device`; null: on the host.
inline absl::StatusOr<std::unique_ptr<ForwardDecoder>> LoadLs(
    const std::string& directory, WeightFormat format, const ForwardDecoder::Limits& limits,
    std::unique_ptr<Device> device = nullptr) {
  ModelDirectory files = OrDie(OpenModelDirectory(directory));
  const LsLmConfig config = OrDie(ParseLsLmConfig(files.config, files.common, files.config_path));
  return ForwardDecoder::Create(
      std::make_unique<OwningLm>(config, std::move(files.checkpoint), directory, limits.max_tokens),
      directory, format, limits, std::move(device));
}

// `max_tokens` may exceed the model's own limit: tests of bits and of memory need long texts.
class LsCase : public OwnedReader<ForwardDecoder> {
 public:
  LsCase(const std::string& directory, const std::string& dtype, double cache_bytes = 64 << 20,
         int max_tokens = 1 << 14)
      : LsCase(OrDie(LoadedIn(dtype, [&](WeightFormat format) {
          return LoadLs(directory, format, {max_tokens, cache_bytes});
        }))) {}

  const LsLmConfig& config() const {
    return LmOf(static_cast<const ForwardDecoder&>(DecoderReader::decoder())).config();
  }

 protected:
  explicit LsCase(std::unique_ptr<ForwardDecoder> decoder) : OwnedReader(std::move(decoder)) {}
};

}  // namespace longview::models
