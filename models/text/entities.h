// Named entities from token labels, as HuggingFace's TokenClassificationPipeline forms them.
// Thread-safe: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// none: one entry per token, labels as they are. simple: neighbouring tokens of one type (B-/I-
// prefixes) are joined, scores averaged. first, average, max: tokens of one word first take the
// label of its first token, of the mean of its scores, of its highest score.
enum class Aggregation { kNone, kSimple, kFirst, kAverage, kMax };

std::optional<Aggregation> ParseAggregation(std::string_view name);  // "" = simple

// A token of the text with its place in code points.
struct LabelledToken {
  int row = 0;  // Row of the logits.
  int start = 0, end = 0;
  bool unknown = false;  // The tokenizer's unknown token: always starts a word.
  // Code points of the vocabulary's spelling, where a mark in it ("##ing") says that a token goes
  // on with a word; unset: the vocabulary has no such mark.
  std::optional<int> spelling = std::nullopt;
};

// Tokens of a text without those of the template; rows are places in `encoding`.
std::vector<LabelledToken> TokensOfText(const Encoding& encoding, const Tokenizer& tokenizer);

// `logits` is [rows, labels]. Tokens labelled "O" are not entities. By the pipeline's rules a token
// continues a word if its spelling is not as long as the text it stands for; without a mark, if no
// space stands before or under its first character.
std::vector<EntitySpan> FindEntities(std::string_view text, std::span<const LabelledToken> tokens,
                                     std::span<const float> logits,
                                     std::span<const std::string> labels, Aggregation aggregation);

}  // namespace longview::models
