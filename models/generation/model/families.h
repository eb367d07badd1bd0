// The generating models of the registry, by family.
#pragma once

#include "models/generation/model/family.h"

namespace longview::models {

// See MakeGenerator.
absl::StatusOr<GeneratorFamily> MakeCstLm(const ModelDirectory& directory);
absl::StatusOr<GeneratorFamily> MakeLed(const ModelDirectory& directory);
absl::StatusOr<GeneratorFamily> MakeLongformerLm(const ModelDirectory& directory);
absl::StatusOr<GeneratorFamily> MakeLunaDecoder(const ModelDirectory& directory);
absl::StatusOr<GeneratorFamily> MakeTransformerLs(const ModelDirectory& directory);

}  // namespace longview::models
