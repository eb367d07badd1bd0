#include "models/generation/sampling/logits_processors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace longview::models {
namespace {

constexpr double kBanned = -std::numeric_limits<double>::infinity();

void Ban(std::span<const int32_t> ids, std::span<double> scores) {
  for (const int32_t id : ids) scores[id] = kBanned;
}

void Penalise(std::span<const int32_t> ids, double penalty, std::span<double> scores) {
  for (const int32_t id : ids) {
    scores[id] = scores[id] < 0 ? scores[id] * penalty : scores[id] / penalty;
  }
}

bool EndsWith(std::span<const int32_t> ids, std::span<const int32_t> tail) {
  return ids.size() >= tail.size() && std::equal(tail.begin(), tail.end(), ids.end() - tail.size());
}

// Every id that follows the last n - 1 of `ids` somewhere in `text`.
void AddNgrams(std::span<const int32_t> text, std::span<const int32_t> ids, int n,
               std::vector<int32_t>& banned) {
  const auto size = static_cast<size_t>(n);
  if (ids.size() + 1 < size || text.size() < size) return;
  const std::span<const int32_t> tail = ids.last(size - 1);
  for (size_t i = 0; i + size <= text.size(); ++i) {
    if (std::equal(tail.begin(), tail.end(), text.begin() + i)) {
      banned.push_back(text[i + size - 1]);
    }
  }
}

std::vector<int32_t> Distinct(std::span<const int32_t> ids) {
  std::vector<int32_t> distinct(ids.begin(), ids.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return distinct;
}

bool IsNeutral(const GenerationSettings& s) {
  return s.sequence_bias.empty() && s.encoder_repetition_penalty == 1 &&
         s.repetition_penalty == 1 && s.frequency_penalty == 0 && s.presence_penalty == 0 &&
         s.no_repeat_ngram == 0 && s.encoder_no_repeat_ngram == 0 && s.bad_words.empty() &&
         s.min_length == 0 && s.min_new_tokens == 0 && !s.forced_bos && s.forced_eos.empty() &&
         !s.remove_invalid && !s.decay && s.suppress.empty() && s.begin_suppress.empty();
}

}  // namespace

LogitsProcessors::LogitsProcessors(const GenerationSettings& settings,
                                   std::span<const int32_t> source)
    : settings_(settings), neutral_(IsNeutral(settings)) {
  if (settings.encoder_no_repeat_ngram > 0) source_.assign(source.begin(), source.end());
  if (settings.encoder_repetition_penalty != 1) source_distinct_ = Distinct(source);
}

std::vector<LogitsProcessors::Bias> LogitsProcessors::Biases(const TokenHistory& history) const {
  std::map<int32_t, double> sums;
  for (const GenerationSettings::Bias& entry : settings_.sequence_bias) {
    const std::span<const int32_t> all = entry.ids;
    if (EndsWith(history.ids(), all.first(all.size() - 1))) sums[all.back()] += entry.bias;
  }
  std::vector<Bias> biases;
  for (const auto& [id, bias] : sums) biases.push_back({id, bias});
  return biases;
}

void LogitsProcessors::AddRepeats(const TokenHistory& history, std::vector<int32_t>& banned) const {
  const std::span<const int32_t> ids = history.ids();
  if (settings_.no_repeat_ngram > 0) AddNgrams(ids, ids, settings_.no_repeat_ngram, banned);
  if (settings_.encoder_no_repeat_ngram > 0) {
    AddNgrams(source_, ids, settings_.encoder_no_repeat_ngram, banned);
  }
  for (const std::vector<int32_t>& word : settings_.bad_words) {
    const std::span<const int32_t> all = word;
    if (EndsWith(ids, all.first(all.size() - 1))) banned.push_back(all.back());
  }
  const bool early = history.tokens() < settings_.min_length ||
                     history.tokens() - history.prompt() < settings_.min_new_tokens;
  if (early) banned.insert(banned.end(), settings_.eos.begin(), settings_.eos.end());
}

void LogitsProcessors::AddSuppressed(const TokenHistory& history,
                                     std::vector<int32_t>& banned) const {
  banned.insert(banned.end(), settings_.suppress.begin(), settings_.suppress.end());
  // A forced first token stands before the beginning that is meant.
  const int begin = history.prompt() + (history.prompt() == 1 && settings_.forced_bos ? 1 : 0);
  if (history.tokens() != begin) return;
  banned.insert(banned.end(), settings_.begin_suppress.begin(), settings_.begin_suppress.end());
}

std::vector<int32_t> LogitsProcessors::Banned(const TokenHistory& history) const {
  std::vector<int32_t> banned;
  AddRepeats(history, banned);
  AddSuppressed(history, banned);
  return Distinct(banned);
}

void LogitsProcessors::Force(const TokenHistory& history, std::span<double> scores) const {
  const auto only = [&](std::span<const int32_t> ids) {
    std::fill(scores.begin(), scores.end(), kBanned);
    for (const int32_t id : ids) scores[id] = 0;
  };
  if (settings_.forced_bos && history.tokens() == 1) only({&*settings_.forced_bos, 1});
  if (!settings_.forced_eos.empty() && history.tokens() == settings_.max_length - 1) {
    std::vector<double> own;
    for (const int32_t id : settings_.forced_eos) own.push_back(scores[id]);
    only(settings_.forced_eos);
    if (!settings_.fairseq) return;
    for (size_t i = 0; i < own.size(); ++i) scores[settings_.forced_eos[i]] = own[i];
  }
}

void LogitsProcessors::Decay(const TokenHistory& history, std::span<double> scores) const {
  if (!settings_.decay) return;
  const int late = history.tokens() - history.prompt() - settings_.decay->start;
  if (late <= 0) return;
  const double growth = std::pow(settings_.decay->factor, late) - 1;
  for (const int32_t id : settings_.eos) {
    if (!std::isfinite(scores[id])) continue;
    scores[id] += std::abs(scores[id]) * growth;
  }
}

void LogitsProcessors::Apply(const TokenHistory& history, std::span<double> scores) const {
  if (neutral_) return;
  for (const Bias& bias : Biases(history)) scores[bias.id] += bias.bias;
  if (settings_.encoder_repetition_penalty != 1) {
    Penalise(source_distinct_, 1 / settings_.encoder_repetition_penalty, scores);
  }
  if (settings_.repetition_penalty != 1) {
    Penalise(history.distinct(), settings_.repetition_penalty, scores);
  }
  for (const auto& [id, count] : history.counts()) {
    scores[id] -= settings_.frequency_penalty * count + settings_.presence_penalty;
  }
  std::vector<int32_t> banned;
  AddRepeats(history, banned);
  Ban(banned, scores);
  Force(history, scores);
  if (settings_.remove_invalid) {
    constexpr double kMax = std::numeric_limits<float>::max();
    for (double& score : scores) score = std::isnan(score) ? 0 : std::clamp(score, -kMax, kMax);
  }
  Decay(history, scores);
  banned.clear();
  AddSuppressed(history, banned);
  Ban(banned, scores);
}

}  // namespace longview::models
