// What a Longformer tells about itself.
#pragma once

#include "models/longformer/config.h"
#include "models/model.h"

namespace longview::models {

// Task, tasks, labels and the tensors of the Open Inference Protocol.
ModelInfo LongformerInfo(const LongformerConfig& config, bool has_tokenizer);

}  // namespace longview::models
