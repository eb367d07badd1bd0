#include "tests/models/generation/decoder_reader.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace longview::models {
std::vector<float> DecoderReader::Read(DecoderSequence& sequence, std::span<const int32_t> ids,
                                       WantedLogits wanted, DecoderPhase phase) {
  const DecoderFeed feed{&sequence, ids, phase, wanted};
  return RunStep(*decoder_, {&feed, 1})[0];
}

std::vector<float> DecoderReader::Step(DecoderSequence& sequence, std::span<const int32_t> ids) {
  std::vector<float> logits;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = Read(sequence, ids.subspan(i, 1), WantedLogits::kLast, DecoderPhase::kDecode);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

std::vector<float> DecoderReader::ReadInChunks(DecoderSequence& sequence,
                                               std::span<const int32_t> ids, int chunk) {
  std::vector<float> logits;
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(chunk)) {
    const auto rows =
        Read(sequence, ids.subspan(at, std::min(ids.size() - at, static_cast<size_t>(chunk))));
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

std::vector<std::vector<float>> RunStep(Decoder& decoder, std::span<const DecoderFeed> feeds) {
  const std::unique_ptr<DecoderStep> step = decoder.Begin(feeds);
  while (step->Advance()) {
  }
  EXPECT_TRUE(step->status().ok()) << step->status();
  std::vector<std::vector<float>> logits;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const std::span<const float> rows = step->Logits(static_cast<int>(i));
    logits.emplace_back(rows.begin(), rows.end());
  }
  return logits;
}

int32_t Greedy(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace longview::models
