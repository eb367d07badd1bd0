// An encoder of plain transformer layers as a family. Families that are of this kind bring a
// configuration and a loader.
#pragma once

#include <string>

#include "models/encoder/model.h"
#include "models/transformer/weights.h"

namespace longview::models {

using TransformerLoader = WeighedFamily<TransformerConfig, TransformerWeights>::Loader;

// See MakeEncoder. `name`: "modernbert". INVALID_ARGUMENT if the tokenizer has ids that the
// vocabulary lacks; errors of `config` as they are.
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeTransformer(
    const std::string& name, const absl::StatusOr<TransformerConfig>& config,
    TransformerLoader load, const ModelDirectory& directory);

}  // namespace longview::models
