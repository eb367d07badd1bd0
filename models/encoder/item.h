// A prepared request to an encoder: token sequences and what is wanted of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/encoder/facts.h"
#include "models/encoder/sequence.h"
#include "models/model.h"
#include "models/text/entities.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// Immutable once Prepare returned it.
struct EncoderItem final : Item {
  Task task = Task::kEmbedding;
  std::vector<EncoderSequence> sequences;  // One; one per choice; two documents of a pair.

  std::vector<std::string> tensors;  // Names wanted, in order.
  bool typed = true;
  Pooling pooling = Pooling::kMean;
  bool normalize = false;
  Aggregation aggregation = Aggregation::kSimple;
  int top_k = 0;
  int max_answer_tokens = 0;

  std::string text;  // The document, for answers that quote it.
  // Of the one sequence, if the request had text; cut like it.
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
    if (task == Task::kEmbedding) return false;
    return typed || Wants("logits") || Wants("mask_logits") || Wants("start_logits") ||
           Wants("end_logits");
  }
  void SetCost(const Cost& cost) { cost_ = cost; }
  void SetUsage(const ItemUsage& usage) { usage_ = usage; }
};

}  // namespace longview::models
