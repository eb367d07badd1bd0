#include "models/text/entities.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/text/code_point_index.h"
#include "models/text/scores.h"
#include "models/text/utf8.h"

namespace longview::models {
namespace {

// A token, or a word of several, with one label.
struct Unit {
  std::string label;
  double score = 0;
  int start = 0, end = 0;
};

struct ScoredUnit {
  std::vector<float> scores;  // By label.
  int start = 0, end = 0;
  bool continues_word = false;
};

bool ContinuesWord(const LabelledToken& token, const CodePointIndex& points) {
  if (token.unknown) return false;
  if (token.spelling) return *token.spelling != token.end - token.start;
  return token.start > 0 &&
         points.Slice(token.start - 1, token.start + 1).find(' ') == std::string::npos;
}

Unit TakeBest(const std::vector<float>& scores, std::span<const std::string> labels, int start,
              int end) {
  const auto best = std::max_element(scores.begin(), scores.end());
  return {labels[static_cast<size_t>(best - scores.begin())], *best, start, end};
}

Unit JoinWord(std::span<const ScoredUnit> word, std::span<const std::string> labels,
              Aggregation aggregation) {
  const int start = word.front().start, end = word.back().end;
  if (aggregation == Aggregation::kFirst) {
    return TakeBest(word.front().scores, labels, start, end);
  }
  if (aggregation == Aggregation::kMax) {
    const auto top = [](const ScoredUnit& unit) {
      return *std::max_element(unit.scores.begin(), unit.scores.end());
    };
    const auto best = std::max_element(
        word.begin(), word.end(), [&](const auto& a, const auto& b) { return top(a) < top(b); });
    return TakeBest(best->scores, labels, start, end);
  }
  std::vector<float> mean(labels.size());
  for (size_t label = 0; label < mean.size(); ++label) {
    double sum = 0;
    for (const ScoredUnit& unit : word) sum += unit.scores[label];
    mean[label] = static_cast<float>(sum / static_cast<double>(word.size()));
  }
  return TakeBest(mean, labels, start, end);
}

std::vector<Unit> JoinWords(std::span<const ScoredUnit> tokens, std::span<const std::string> labels,
                            Aggregation aggregation) {
  std::vector<Unit> words;
  for (size_t first = 0; first < tokens.size();) {
    size_t next = first + 1;
    while (next < tokens.size() && tokens[next].continues_word) ++next;
    words.push_back(JoinWord(tokens.subspan(first, next - first), labels, aggregation));
    first = next;
  }
  return words;
}

// ("B", "PER") of "B-PER"; labels without a prefix count as inside.
std::pair<char, std::string_view> SplitTag(std::string_view label) {
  if (label.starts_with("B-")) return {'B', label.substr(2)};
  if (label.starts_with("I-")) return {'I', label.substr(2)};
  return {'I', label};
}

// The pipeline names a group by what follows the first dash, whatever the prefix.
std::string GroupName(std::string_view label) {
  const size_t dash = label.find('-');
  return std::string(dash == std::string_view::npos ? label : label.substr(dash + 1));
}

std::vector<Unit> GroupUnits(std::span<const Unit> units) {
  std::vector<Unit> groups;
  for (size_t first = 0; first < units.size();) {
    size_t next = first + 1;
    double sum = units[first].score;
    while (next < units.size()) {
      const auto [position, type] = SplitTag(units[next].label);
      if (position == 'B' || type != SplitTag(units[next - 1].label).second) break;
      sum += units[next++].score;
    }
    groups.push_back({GroupName(units[first].label), sum / static_cast<double>(next - first),
                      units[first].start, units[next - 1].end});
    first = next;
  }
  return groups;
}

}  // namespace

std::optional<Aggregation> ParseAggregation(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Aggregation>, 6> kNames = {{
      {"", Aggregation::kSimple},
      {"none", Aggregation::kNone},
      {"simple", Aggregation::kSimple},
      {"first", Aggregation::kFirst},
      {"average", Aggregation::kAverage},
      {"max", Aggregation::kMax},
  }};
  for (const auto& [known, aggregation] : kNames) {
    if (known == name) return aggregation;
  }
  return std::nullopt;
}

std::vector<LabelledToken> TokensOfText(const Encoding& encoding, const Tokenizer& tokenizer) {
  std::vector<LabelledToken> tokens;
  for (size_t t = 0; t < encoding.ids.size(); ++t) {
    if (encoding.special_mask[t] != 0) continue;
    const int32_t id = encoding.ids[t];
    tokens.push_back({.row = static_cast<int>(t),
                      .start = encoding.offsets[t].begin,
                      .end = encoding.offsets[t].end,
                      .unknown = tokenizer.special().unk == id});
    if (!tokenizer.marks_continuations()) continue;
    tokens.back().spelling = static_cast<int>(CodePoints(tokenizer.IdToToken(id).value_or("")));
  }
  return tokens;
}

std::vector<EntitySpan> FindEntities(std::string_view text, std::span<const LabelledToken> tokens,
                                     std::span<const float> logits,
                                     std::span<const std::string> labels, Aggregation aggregation) {
  const CodePointIndex points(text);
  std::vector<ScoredUnit> scored;
  for (const LabelledToken& token : tokens) {
    scored.push_back({Softmax(logits.subspan(token.row * labels.size(), labels.size())),
                      token.start, token.end, ContinuesWord(token, points)});
  }
  std::vector<Unit> units;
  if (aggregation == Aggregation::kNone || aggregation == Aggregation::kSimple) {
    for (const ScoredUnit& token : scored) {
      units.push_back(TakeBest(token.scores, labels, token.start, token.end));
    }
  } else {
    units = JoinWords(scored, labels, aggregation);
  }
  if (aggregation != Aggregation::kNone) units = GroupUnits(units);
  std::vector<EntitySpan> entities;
  for (const Unit& unit : units) {
    if (unit.label == "O") continue;
    entities.push_back({unit.label, static_cast<float>(unit.score),
                        points.Slice(unit.start, unit.end), unit.start, unit.end});
  }
  return entities;
}

}  // namespace longview::models
