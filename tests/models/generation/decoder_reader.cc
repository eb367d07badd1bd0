#include "tests/models/generation/decoder_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace longview::models {

std::vector<int32_t> DecoderReader::Text(int tokens, uint32_t seed) const {
  std::mt19937 random(seed);
  const auto vocab = static_cast<uint32_t>(decoder_->vocab_size());
  std::vector<int32_t> ids;
  for (int i = 0; i < tokens; ++i) ids.push_back(static_cast<int32_t>(random() % vocab));
  return ids;
}

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

void ExpectCutsChangeNoBit(DecoderReader& model, int tokens, std::initializer_list<int> chunks) {
  const std::vector<int32_t> text = model.Text(tokens, 1), tail = model.Text(9, 2);
  const auto whole = model.New();
  const std::vector<float> want = model.Read(*whole, text);
  const std::vector<float> next = model.Step(*whole, tail);
  for (const int chunk : chunks) {
    const auto cut = model.New();
    EXPECT_EQ(model.ReadInChunks(*cut, text, chunk), want) << "chunks of " << chunk;
    EXPECT_EQ(model.Step(*cut, tail), next) << "chunks of " << chunk;
  }
}

void ExpectForkReadsLikeFresh(DecoderReader& model, int shared, int tail, int other) {
  const std::vector<int32_t> text = model.Text(shared, 3), more = model.Text(tail, 4);
  const std::vector<int32_t> others = model.Text(other, 5);
  const auto document = model.New();
  if (shared > 0) model.Read(*document, text, WantedLogits::kNone);
  const auto fork = document->Fork(), another = document->Fork();
  model.Read(*another, others, WantedLogits::kNone);
  const std::vector<float> got = model.Read(*fork, more);

  std::vector<int32_t> both = text;
  both.insert(both.end(), more.begin(), more.end());
  const auto fresh = model.New();
  const std::vector<float> all = model.Read(*fresh, both);
  EXPECT_EQ(got, std::vector<float>(all.end() - static_cast<int64_t>(got.size()), all.end()));
  EXPECT_EQ(model.Step(*fork, others), model.Step(*fresh, others)) << shared;
}

int32_t Greedy(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace longview::models
