// From an item's head outputs to its answer: tensors by name, labels, entities, spans, masks.
#pragma once

#include "models/encoder/facts.h"
#include "models/encoder/family.h"
#include "models/encoder/item.h"
#include "models/model.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// `rows`: the wanted rows of the item's first sequence. `tokenizer` may be null.
// Thread-safe: a pure function.
Answer MakeAnswer(const EncoderFacts& facts, const Tokenizer* tokenizer, const EncoderItem& item,
                  const HeadOutput& output, const float* rows);

}  // namespace longview::models
