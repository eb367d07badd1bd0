// Named entities from token labels, as HuggingFace's TokenClassificationPipeline forms them.
// Thread-safe: a pure function.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace longview::models {

// none: one entry per token, labels as they are. simple: neighbouring tokens of one type (B-/I-
// prefixes) are joined, scores averaged. first, average, max: tokens of one word first take the
// label of its first token, of the mean of its scores, of its highest score.
enum class Aggregation { kNone, kSimple, kFirst, kAverage, kMax };

std::optional<Aggregation> ParseAggregation(std::string_view name);  // "" = simple

// A token of the text with its place in code points. Template tokens are left out by callers.
struct LabelledToken {
  int row = 0;  // Row of the logits.
  int start = 0, end = 0;
  bool unknown = false;  // The tokenizer's unknown token: always starts a word.
};

// `logits` is [rows, labels]. Tokens labelled "O" are not entities. A token continues a word if no
// space stands before or under its first character, the pipeline's rule for byte-level BPE.
std::vector<EntitySpan> FindEntities(std::string_view text, std::span<const LabelledToken> tokens,
                                     std::span<const float> logits,
                                     std::span<const std::string> labels, Aggregation aggregation);

}  // namespace longview::models
