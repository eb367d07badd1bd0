// From a request to token sequences: tokenising, limits, masks, global attention, and which rows
// the head will read. Every mistake a client can make is found here.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "models/config/sentence_config.h"
#include "models/encoder/facts.h"
#include "models/encoder/item.h"
#include "models/encoder/rules.h"
#include "models/model.h"
#include "models/text/text_codec.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// The parts that prepare requests. Borrowed, immutable.
struct EncoderFrontEnd {
  const SequenceRules* rules = nullptr;
  // At most one; both null: token ids only. A codec's tokens have neither templates nor offsets.
  const Tokenizer* tokenizer = nullptr;
  const TextCodec* codec = nullptr;
  int max_tokens = 0;
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  bool truncate = false;     // Texts that are too long, where the request does not say.
  bool own_pooling = false;  // `pooling` is longview.json's, which stands above the directory's.
  // The directory's files of sentence-transformers; null: there are none.
  const SentenceConfig* sentence = nullptr;

  const EncoderFacts& facts() const { return rules->facts(); }
  // The modules behind the encoder; null: none.
  const SentenceModules* modules() const {
    const bool some = sentence != nullptr && sentence->modules.ok() && *sentence->modules;
    return some ? &**sentence->modules : nullptr;
  }
};

// The item without its cost. Thread-safe.
absl::StatusOr<std::unique_ptr<EncoderItem>> PrepareEncoderItem(const EncoderFrontEnd& front,
                                                                const Request& request);

// The document of an encoder-decoder: one sequence, of `request`'s text or token ids, with the
// task's default globals. `all_rows`: every last hidden state is wanted, else none. Adds to usage's
// input and truncated tokens. Thread-safe.
absl::StatusOr<EncoderSequence> PrepareDocument(const EncoderFrontEnd& front,
                                                const Request& request, bool all_rows,
                                                ItemUsage& usage);

// A request for the chunks of a text as the items that answer it. Thread-safe.
//
// Late chunking (one forward over the text, pooled chunk by chunk) where the text fits and parts
// can be pooled; windows where it does not fit; where parts cannot be pooled, each chunk's text is
// an item of its own. INVALID_ARGUMENT names field, value and limit.
absl::StatusOr<ChunkPlan> PlanTextChunks(const EncoderFrontEnd& front, const Request& request);

}  // namespace longview::models
