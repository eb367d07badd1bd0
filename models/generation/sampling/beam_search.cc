#include "models/generation/sampling/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/base/counter_random.h"
#include "models/generation/sampling/sampler.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// Stands for "not at all" where -infinity would lose the order of what is added to it.
constexpr double kNever = -1e9;

bool Contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// The log-softmax of scores some of which may be -infinity; if all are, they stay.
void Renormalize(std::span<double> scores) {
  const double best = *std::max_element(scores.begin(), scores.end());
  if (!std::isfinite(best)) return;
  double sum = 0;
  for (const double score : scores) sum += std::exp(score - best);
  const double total = best + std::log(sum);
  for (double& score : scores) score -= total;
}

double Gumbel(uint32_t seed, int step, size_t place) {
  const double u =
      kernels::Uniform(seed, 0, static_cast<uint32_t>(step), static_cast<uint32_t>(place));
  return -std::log(-std::log(u + 0x1p-54));
}

}  // namespace

BeamSearch::BeamSearch(const GenerationSettings& settings, const LogitsProcessors& processors,
                       TokenHistory prompt, const TextCodec* codec)
    : settings_(settings),
      processors_(processors),
      codec_(codec),
      filter_(settings, 1 + static_cast<int>(settings.eos.size())) {
  const auto beams = static_cast<size_t>(settings.beams);
  for (size_t b = 0; b < beams; ++b) running_.push_back({prompt, {}, b == 0 ? 0 : kNever});
  places_.resize(beams);
  for (Place& place : places_) place.score = kNever;
}

absl::Status BeamSearch::Score(std::span<const std::span<const float>> logits) {
  const size_t vocab = logits[0].size();
  scores_.resize(running_.size() * vocab);
  for (size_t b = 0; b < running_.size(); ++b) {
    const std::span<double> row(scores_.data() + b * vocab, vocab);
    LogSoftmax(logits[b], row);
    processors_.Apply(running_[b].history, row);
    // Before the filter, which drops what it cannot compare: that would look like options' doing.
    if (std::ranges::any_of(row, [](double score) { return std::isnan(score); })) {
      return LogitsNotNumbers();
    }
    if (settings_.sample) {
      const std::span<const Candidate> kept = filter_.Keep(row);
      std::fill(row.begin(), row.end(), -std::numeric_limits<double>::infinity());
      for (const Candidate& candidate : kept) row[candidate.id] = candidate.score;
    }
    if (settings_.renormalize) Renormalize(row);
    for (double& score : row) score += running_[b].score;
  }
  return absl::OkStatus();
}

// The best continuations of all beams; of equal ones that of the earlier beam, then the lower id.
void BeamSearch::Rank() {
  const size_t vocab = scores_.size() / running_.size();
  const size_t ends = settings_.eos.size();
  const size_t wanted = std::max<size_t>(2, 1 + ends) * static_cast<size_t>(settings_.beams);
  const size_t count = std::min(wanted, scores_.size());
  const auto later = [](const Continuation& a, const Continuation& b) { return a.order > b.order; };
  ranked_.clear();
  for (size_t flat = 0; flat < scores_.size(); ++flat) {
    double order = scores_[flat];
    if (settings_.sample) {
      if (order == -std::numeric_limits<double>::infinity()) continue;
      order += Gumbel(settings_.seed, step_, flat);
    }
    if (ranked_.size() == count && !(order > ranked_.back().order)) continue;
    if (ranked_.size() == count) ranked_.pop_back();
    const Continuation found = {scores_[flat],
                                static_cast<int>(flat / vocab),
                                static_cast<int32_t>(flat % vocab),
                                order,
                                false,
                                false};
    ranked_.insert(std::upper_bound(ranked_.begin(), ranked_.end(), found, later), found);
  }
  const bool last = step_ + 1 >= settings_.max_new_tokens;
  for (Continuation& c : ranked_) {
    c.at_end_token = Contains(settings_.eos, c.token) || Contains(settings_.stop_ids, c.token);
    c.hit = c.at_end_token || last;
  }
}

TokenReport BeamSearch::Report(std::span<const float> logits, int32_t token) const {
  return ReportToken(logits, token, *settings_.logprobs, codec_);
}

void BeamSearch::KeepFinished(std::span<const std::span<const float>> logits) {
  const auto is_finished = [](const Place& place) { return place.finished; };
  bool full = settings_.early_stopping == EarlyStopping::kYes &&
              std::all_of(places_.begin(), places_.end(), is_finished);
  const double divisor = std::pow(step_ + 1, settings_.length_penalty);
  const auto beams = static_cast<size_t>(settings_.beams);
  for (size_t rank = 0; rank < ranked_.size(); ++rank) {
    const Continuation& c = ranked_[rank];
    if (!c.hit || rank >= beams || full || !improvable_) continue;
    const double score = c.score / divisor;
    const auto worse = std::find_if(places_.begin(), places_.end(),
                                    [&](const Place& place) { return score > place.score; });
    if (worse == places_.end()) continue;
    const Beam& beam = running_[c.beam];
    const std::span<const int32_t> before = beam.history.generated();
    Place place{score, true, {{before.begin(), before.end()}, beam.reports, score, c.at_end_token}};
    place.result.tokens.push_back(c.token);
    if (settings_.logprobs) place.result.reports.push_back(Report(logits[c.beam], c.token));
    places_.insert(worse, std::move(place));
    places_.pop_back();
    full = full || (settings_.fairseq && std::all_of(places_.begin(), places_.end(), is_finished));
  }
}

void BeamSearch::KeepRunning(std::span<const std::span<const float>> logits) {
  // Continuations that end come after all that go on, in the same order.
  for (Continuation& c : ranked_) c.score += c.hit ? kNever : 0;
  std::stable_sort(ranked_.begin(), ranked_.end(),
                   [](const Continuation& a, const Continuation& b) { return a.score > b.score; });
  const size_t beams = std::min(static_cast<size_t>(settings_.beams), ranked_.size());
  std::vector<int> uses(running_.size());
  for (size_t b = 0; b < beams; ++b) ++uses[ranked_[b].beam];
  std::vector<Beam> next;
  next.reserve(beams);
  parents_.clear();
  for (size_t b = 0; b < beams; ++b) {
    const Continuation& c = ranked_[b];
    Beam& parent = running_[c.beam];
    next.push_back(--uses[c.beam] == 0 ? std::move(parent) : parent);
    next.back().score = c.score;
    next.back().history.Append(c.token);
    if (settings_.logprobs) next.back().reports.push_back(Report(logits[c.beam], c.token));
    parents_.push_back(c.beam);
  }
  running_ = std::move(next);
}

// With "never" and a positive length penalty the best running beam is judged by the length it could
// still reach, else by the one it has.
void BeamSearch::JudgeEnd() {
  const bool patient =
      settings_.early_stopping == EarlyStopping::kNever && settings_.length_penalty > 0;
  const int length = patient ? settings_.max_new_tokens : step_;
  const double best = running_[0].score / std::pow(length, settings_.length_penalty);
  const double worst = places_.back().score;
  improvable_ = improvable_ && std::any_of(places_.begin(), places_.end(), [&](const Place& place) {
                  return best > (place.finished ? worst : kNever);
                });
  const auto is_finished = [](const Place& place) { return place.finished; };
  const bool full = settings_.early_stopping == EarlyStopping::kYes &&
                    std::all_of(places_.begin(), places_.end(), is_finished);
  const bool all_hit =
      std::all_of(ranked_.begin(), ranked_.end(), [](const Continuation& c) { return c.hit; });
  done_ = !improvable_ || full || all_hit;
}

absl::Status BeamSearch::Advance(std::span<const std::span<const float>> logits) {
  RETURN_IF_ERROR(Score(logits));
  Rank();
  if (ranked_.empty()) return NoTokenLeft();
  KeepFinished(logits);
  KeepRunning(logits);
  ++step_;
  JudgeEnd();
  return absl::OkStatus();
}

std::vector<BeamSearch::Finished> BeamSearch::Take() {
  std::vector<Finished> results;
  for (Place& place : places_) {
    if (!place.finished || static_cast<int>(results.size()) == settings_.sequences) break;
    results.push_back(std::move(place.result));
  }
  return results;
}

}  // namespace longview::models
