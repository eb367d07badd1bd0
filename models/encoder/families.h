// The text encoders of the registry, by family.
#pragma once

#include "models/encoder/family.h"
#include "models/model.h"

namespace longview::models {

// See MakeEncoder.
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeBert(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeCst(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLongformer(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLsText(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeLuna(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeModernBert(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeRoberta(const ModelDirectory& directory);

// The functions of registry.h for Luna, which has tokenizers of its own.
absl::StatusOr<ModelInfo> DescribeLuna(const ModelDirectory& directory);
absl::StatusOr<std::unique_ptr<Model>> LoadLuna(ModelDirectory directory,
                                                const LoadOptions& options);

}  // namespace longview::models
