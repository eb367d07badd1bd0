// A prepared request to an encoder: token sequences and what is wanted of them.
#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "models/config/sentence_config.h"
#include "models/encoder/facts.h"
#include "models/encoder/sequence.h"
#include "models/model.h"
#include "models/text/entities.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// An embedding made of all rows of tokens by the directory's pooling and modules; see
// sentence_pipeline.h.
struct SentencePooling {
  std::vector<PoolMode> modes;
  int skipped = 0;  // Tokens at the beginning that are not pooled: the prompt's.
  // The text's tokens in its order, and the ranges of them, its chunks, that are a vector each. No
  // range: one vector of all tokens.
  std::vector<int32_t> tokens;
  std::vector<TokenRange> chunks;
};

// Immutable once Prepare returned it.
struct EncoderItem final : Item {
  Task task = Task::kEmbedding;
  std::vector<EncoderSequence> sequences;  // One; one per choice; two documents of a pair.

  std::vector<std::string> tensors;  // Names wanted, in order.
  bool typed = true;
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  std::optional<SentencePooling> sentence;  // Instead of `pooling`.
  int64_t dimensions = 0;                   // Numbers of the embedding that are wanted; 0: all.
  ScoreActivation activation = ScoreActivation::kSigmoid;  // Rerank.
  Aggregation aggregation = Aggregation::kSimple;
  int top_k = 0;
  int max_answer_tokens = 0;

  std::string text;  // The document, for answers that quote it.
  // The only sequence's encoding, if the request had text; cut like it.
  std::optional<Encoding> encoding;
  std::vector<int32_t> masks;              // Positions of mask tokens (fill-mask).
  int context_begin = 0, context_end = 0;  // Tokens an answer may come from.
  std::vector<std::string> choices;        // Names of the choices.

  bool Wants(std::string_view tensor) const {
    for (const std::string& name : tensors) {
      if (name == tensor) return true;
    }
    return false;
  }
  // Whether anything reads the head's logits.
  bool ReadsLogits() const {
    if (task == Task::kEmbedding || task == Task::kMultiVector) return false;
    return typed || Wants("logits") || Wants("mask_logits") || Wants("start_logits") ||
           Wants("end_logits");
  }
  // Vectors of its embedding that are chunks'; 0: it has but one.
  int64_t chunks() const { return sentence ? std::ssize(sentence->chunks) : 0; }
  void SetCost(const Cost& cost) { cost_ = cost; }
  void SetUsage(const ItemUsage& usage) { usage_ = usage; }
};

}  // namespace longview::models
