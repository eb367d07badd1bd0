#include "models/quantize/outcome.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

int64_t BestOf(std::span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

// The best column of each row.
std::vector<int64_t> BestOfRows(const HostTensor& tensor) {
  const auto width = static_cast<size_t>(tensor.shape.back());
  const std::span<const float> values = tensor.floats();
  std::vector<int64_t> best;
  for (size_t row = 0; row + width <= values.size(); row += width) {
    best.push_back(BestOf(values.subspan(row, width)));
  }
  return best;
}

void TakeVectors(const HostTensor& tensor, Outcome& outcome) {
  outcome.width = tensor.shape.back();
  const auto width = static_cast<size_t>(outcome.width);
  const std::span<const float> values = tensor.floats();
  for (const size_t row : EvenlySpaced(values.size() / width, kMostVectors)) {
    const std::span<const float> vector = values.subspan(row * width, width);
    outcome.vectors.insert(outcome.vectors.end(), vector.begin(), vector.end());
  }
}

// Nothing stands before the first token, which has no probability.
void ScoreText(const Piece& prompt, Outcome& outcome) {
  for (const TokenLogprob& token : prompt.logprobs) {
    if (std::isnan(token.logprob)) continue;
    outcome.bits -= token.logprob / std::log(2.0);
    outcome.scored += static_cast<double>(token.bytes.size());
  }
}

// Bits of `token` by a row of logits.
double BitsOf(std::span<const float> row, int32_t token) {
  const double most = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float logit : row) sum += std::exp(logit - most);
  return (most + std::log(sum) - row[static_cast<size_t>(token)]) / std::log(2.0);
}

// Rows are those of the output's start and of `output`; each is about what comes next.
void ScoreOutput(const HostTensor& logits, std::span<const int32_t> output, Outcome& outcome) {
  const auto width = static_cast<size_t>(logits.shape.back());
  const std::span<const float> values = logits.floats();
  const size_t rows = values.size() / width;
  // Without a start nothing stands before the first token.
  const size_t first = rows > output.size() ? 0 : 1;
  for (size_t i = first; i < output.size(); ++i) {
    const size_t row = rows - output.size() + i - 1;
    outcome.bits += BitsOf(values.subspan(row * width, width), output[i]);
    ++outcome.scored;
  }
}

const HostTensor& First(const Answer& answer) { return answer.tensors.at(0); }

}  // namespace

absl::StatusOr<Outcome> OutcomeOf(const Probe& probe, const Answer& answer) {
  if (const std::string_view name = answer.NotFinite(); !name.empty()) {
    return absl::InternalError(absl::StrCat(std::string(name), " holds what is no number"));
  }
  Outcome outcome;
  switch (probe.comparison) {
    case Comparison::kTop1:
      outcome.choices = {BestOf(First(answer).floats())};
      break;
    case Comparison::kLabels:
      outcome.choices = BestOfRows(First(answer));
      break;
    case Comparison::kMaskTop1:
      for (const MaskFill& mask : answer.masks) {
        outcome.choices.push_back(mask.candidates.at(0).token_id);
      }
      break;
    case Comparison::kSpan:
      outcome.choices = {-1, -1};
      if (!answer.answers.empty()) {
        outcome.choices = {answer.answers[0].start, answer.answers[0].end};
      }
      break;
    case Comparison::kCosine:
      TakeVectors(First(answer), outcome);
      break;
    case Comparison::kRanking:
      outcome.score = answer.pair_score.score;
      break;
    case Comparison::kBitsPerByte:
      if (answer.prompt) ScoreText(*answer.prompt, outcome);
      break;
    case Comparison::kBitsPerToken:
      ScoreOutput(First(answer), probe.request.decoder_tokens->ids, outcome);
      break;
    case Comparison::kBoxes:
      outcome.boxes = answer.detections;
      break;
  }
  return outcome;
}

}  // namespace longview::models
