#include "models/generation/decoder_rates.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/span/plan.h"

namespace longview::models {
namespace {

constexpr int64_t kPrompt = 512;
constexpr int64_t kDecoded = 8;

absl::StatusOr<double> Time(Decoder& decoder, const DecoderFeed& feed) {
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<DecoderStep> step = decoder.Begin({&feed, 1});
  while (step->Advance()) {
  }
  if (absl::Status status = step->status(); !status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

absl::Status Measure(Decoder& decoder, const TokenWork& work, int64_t prompt,
                     const std::function<void(EncoderTimes*)>& set_times, DecoderRates& rates) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < prompt + kDecoded; ++i) {
    ids.push_back(static_cast<int32_t>((i * 7919 + 11) % decoder.vocab_size()));
  }
  const std::span<const int32_t> text(ids);
  const std::unique_ptr<DecoderSequence> sequence = decoder.Open({});
  EncoderTimes prefill, decode;
  DecoderFeed feed{sequence.get(), text.first(static_cast<size_t>(prompt)), DecoderPhase::kPrefill,
                   WantedLogits::kLast};
  set_times(&prefill);
  if (absl::Status status = Time(decoder, feed).status(); !status.ok()) return status;
  double seconds = 0, prefill_work = 0, decode_work = 0;
  for (int64_t t = 0; t < prompt; ++t) prefill_work += work.Attention(t);
  set_times(&decode);
  feed.phase = DecoderPhase::kDecode;
  for (int64_t t = prompt; t < prompt + kDecoded; ++t) {
    feed.tokens = text.subspan(static_cast<size_t>(t), 1);
    const absl::StatusOr<double> step = Time(decoder, feed);
    if (!step.ok()) return step.status();
    seconds += *step;
    decode_work += work.Attention(t);
  }
  const auto rows = static_cast<double>(prompt);
  rates.linear_seconds = prefill.linears / (rows * work.Linear());
  rates.prefill_attention = prefill.attention / prefill_work;
  rates.row_seconds = prefill.rest / (rows * work.Rows());
  rates.decode_attention = decode.attention / decode_work;
  rates.step_seconds = (seconds - decode.attention) / static_cast<double>(kDecoded);
  return absl::OkStatus();
}

}  // namespace

absl::Status CalibrateDecoder(Decoder& decoder, const TokenWork& work, double capacity,
                              const std::function<void(EncoderTimes*)>& set_times,
                              DecoderRates& rates) {
  constexpr int64_t kGrain = kernels::kBlockSlots;
  int64_t prompt = std::min(kPrompt, decoder.max_tokens() - kDecoded) / kGrain * kGrain;
  while (prompt > 0 && decoder.costs().StateBytes(0, prompt + kDecoded, 1) > capacity) {
    prompt -= kGrain;
  }
  if (prompt <= 0) return absl::OkStatus();
  DecoderRates measured;
  // The first run pays for code generation.
  absl::Status status = Measure(decoder, work, prompt, set_times, measured);
  if (status.ok()) status = Measure(decoder, work, prompt, set_times, measured);
  set_times(nullptr);
  if (status.ok()) rates = measured;
  return status;
}

}  // namespace longview::models
