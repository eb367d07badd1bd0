// The text encoders of the registry, by family.
#pragma once

#include <memory>
#include <optional>

#include "models/encoder/family.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// See MakeEncoder.
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeBert(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeCst(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLongformer(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLsText(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLuna(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeModernBert(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeRoberta(const ModelDirectory& directory);

// See ReadTokenizer: of Luna's dictionaries.
absl::StatusOr<std::optional<Tokenizer>> ReadLunaTokenizer(const ModelDirectory& directory);

}  // namespace longview::models
