// A family's contribution to a generating model, read of a directory: a token model, and what its
// configuration says of options and text.
//
// The shared part is everything else between model.h and the token model: where it runs, prompts,
// options, sampling, beams, stopping, text, costs.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "models/device/placement.h"
#include "models/directory/model_directory.h"
#include "models/generation/model/generator_model.h"
#include "models/generation/passes/token_model.h"
#include "models/text/text_codec.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// How a family reads and writes text that has files of its own.
struct GeneratorText {
  std::unique_ptr<TextCodec> codec;  // Null: token ids only.
  // Reads documents for an encoder; owned by `codec`. Null: the codec encodes them.
  const Tokenizer* documents = nullptr;
};

struct GeneratorFamily {
  // With the traits that config.json names for every family.
  explicit GeneratorFamily(const ModelDirectory& directory);

  std::unique_ptr<TokenModel> model;  // Still to be loaded.
  int max_tokens = 0;  // In a text; with an encoder in an output, its start included.
  DeviceObstacle obstacle;
  GeneratorTraits traits;             // `defaults` hold where the directory's files say nothing.
  std::optional<GeneratorText> text;  // Unset: the directory's tokenizer.
};

// The configuration that a family reads of a directory, checked. The directory outlives what is
// returned.
using MakeGenerator = absl::StatusOr<GeneratorFamily> (*)(const ModelDirectory& directory);

// The generating models of the registry, by family; see MakeGenerator.
absl::StatusOr<GeneratorFamily> MakeCstLm(const ModelDirectory& directory);
absl::StatusOr<GeneratorFamily> MakeLed(const ModelDirectory& directory);
absl::StatusOr<GeneratorFamily> MakeLongformerLm(const ModelDirectory& directory);
absl::StatusOr<GeneratorFamily> MakeLunaDecoder(const ModelDirectory& directory);
absl::StatusOr<GeneratorFamily> MakeTransformerLs(const ModelDirectory& directory);

}  // namespace longview::models
