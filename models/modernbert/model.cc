// ModernBERT (Warner et al. 2024) as a family: layers that see their whole document among layers
// with a window, rotary positions, gated MLPs.
#include "models/encoder/family.h"
#include "models/modernbert/config.h"
#include "models/modernbert/weights.h"
#include "models/transformer/family.h"

namespace longview::models {

absl::StatusOr<std::unique_ptr<EncoderFamily>> MakeModernBert(const ModelDirectory& directory) {
  const auto config = ParseModernBertConfig(directory.config, directory.common,
                                            directory.config_path, directory.serving.max_tokens);
  return MakeTransformer("modernbert", config, LoadModernBertWeights, directory);
}

}  // namespace longview::models
