#include "models/generation/decoder/decoder_rates.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/span/plan.h"
#include "models/cost/stopwatch.h"
#include "models/pauses.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

constexpr int64_t kPrompt = 512;
constexpr int64_t kDecoded = 8;

absl::StatusOr<std::unique_ptr<DecoderSequence>> Open(const Calibration& calibration) {
  if (calibration.open) return calibration.open();
  return calibration.decoder.OpenEmpty();
}

absl::StatusOr<DecoderRates> Measure(const Calibration& calibration, int64_t prompt) {
  Decoder& decoder = calibration.decoder;
  const RatedCosts& costs = calibration.costs;
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < prompt + kDecoded; ++i) {
    // Ids spread over the word table, as those of a text do: 7919 is a prime.
    ids.push_back(static_cast<int32_t>((i * 7919 + 11) % decoder.vocab_size()));
  }
  const std::span<const int32_t> text(ids);
  ASSIGN_OR_RETURN(const std::unique_ptr<DecoderSequence> sequence, Open(calibration));
  RunTimes prefill, decode;
  DecoderFeed feed{sequence.get(), text.first(static_cast<size_t>(prompt)), DecoderPhase::kPrefill,
                   WantedLogits::kLast};
  calibration.set_times(&prefill);
  RETURN_IF_ERROR(TimeStep(decoder, feed).status());
  double seconds = 0, prefill_work = 0, decode_work = 0;
  const auto attention = [&](int64_t t) {
    return costs.AttentionWork(t) + calibration.attend_work;
  };
  for (int64_t t = 0; t < prompt; ++t) prefill_work += attention(t);
  calibration.set_times(&decode);
  feed.phase = DecoderPhase::kDecode;
  for (int64_t t = prompt; t < prompt + kDecoded; ++t) {
    feed.tokens = text.subspan(static_cast<size_t>(t), 1);
    ASSIGN_OR_RETURN(const double step, TimeStep(decoder, feed));
    seconds += step;
    decode_work += attention(t);
  }
  const auto rows = static_cast<double>(prompt);
  DecoderRates rates;
  rates.linear_seconds = prefill.linears / (rows * costs.LinearWork());
  rates.prefill_attention = prefill.attention / prefill_work;
  rates.row_seconds = prefill.rest / (rows * costs.RowWork());
  rates.decode_attention = decode.attention / decode_work;
  // All but attention is the step's: a decode step reads every weight once, however many rows.
  rates.step_seconds = (seconds - decode.attention) / static_cast<double>(kDecoded);
  return rates;
}

}  // namespace

DecoderRates BestOf(const DecoderRates& a, const DecoderRates& b) {
  DecoderRates best;
  best.step_seconds = std::min(a.step_seconds, b.step_seconds);
  best.linear_seconds = std::min(a.linear_seconds, b.linear_seconds);
  best.prefill_attention = std::min(a.prefill_attention, b.prefill_attention);
  best.decode_attention = std::min(a.decode_attention, b.decode_attention);
  best.row_seconds = std::min(a.row_seconds, b.row_seconds);
  return best;
}

absl::StatusOr<double> TimeStep(Decoder& decoder, const DecoderFeed& feed) {
  const double start = ComputeClock();
  const std::unique_ptr<DecoderStep> step = decoder.Begin({&feed, 1});
  RunToEnd(*step);
  RETURN_IF_ERROR(step->status());
  return ComputeClock() - start;
}

absl::Status CalibrateDecoder(const Calibration& calibration) {
  constexpr int64_t kGrain = kernels::kBlockSlots;
  // A text's last token may have no position: nobody reads it.
  int64_t prompt = std::min(kPrompt, calibration.decoder.max_tokens() - kDecoded - 1);
  while (prompt > 0 &&
         calibration.costs.StateBytes(0, prompt + kDecoded, 1) > calibration.capacity) {
    prompt -= kGrain;
  }
  if (prompt <= 0) return absl::OkStatus();
  absl::StatusOr<DecoderRates> rates = Measure(calibration, prompt);
  // The very first run pays for code generation.
  if (rates.ok() && !calibration.costs.measured()) rates = Measure(calibration, prompt);
  calibration.set_times(nullptr);
  if (rates.ok()) calibration.costs.AddMoment(*rates);
  return rates.status();
}

}  // namespace longview::models
