// From a request to token sequences: tokenising, limits, masks, global attention, and which rows
// the head will read. Every mistake a client can make is found here.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/longformer/config.h"
#include "models/longformer/item.h"
#include "models/model.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// What requests are prepared with. Borrowed, immutable.
struct LongformerFrontEnd {
  const LongformerConfig* config = nullptr;
  const Tokenizer* tokenizer = nullptr;  // Null: token ids only.
  int max_tokens = 0;
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  bool has_pooler = false;
};

// The task of the head, first, and the others the model can do.
std::vector<Task> LongformerTasks(LongformerHead head);

// The item without its cost. Thread-safe.
absl::StatusOr<std::unique_ptr<LongformerItem>> PrepareLongformer(const LongformerFrontEnd& front,
                                                                  const Request& request);

}  // namespace longview::models
