// ModelInfo of an encoder.
#pragma once

#include "models/encoder/facts.h"
#include "models/model.h"

namespace longview::models {

// Task, tasks, labels and the tensors of the Open Inference Protocol. `sentence` may be null.
ModelInfo EncoderInfo(const EncoderFacts& facts, const SentenceConfig* sentence,
                      bool has_tokenizer);

}  // namespace longview::models
