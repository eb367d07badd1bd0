// From an item's head outputs to its answer: tensors by name, labels, entities, spans, masks.
#pragma once

#include "models/longformer/heads.h"
#include "models/longformer/item.h"
#include "models/model.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// `rows`: the wanted rows of the item's first sequence. `tokenizer` may be null.
// Thread-safe: a pure function.
Answer MakeAnswer(const LongformerConfig& config, const Tokenizer* tokenizer,
                  const LongformerItem& item, const HeadOutput& output, const float* rows);

}  // namespace longview::models
