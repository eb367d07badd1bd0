#include "tests/models/transformer_ls/ls_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace longview::models {
namespace {

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "case: %s\n", value.status().ToString().c_str());
  std::abort();
}

}  // namespace

LsCase::LsCase(const std::string& directory, const std::string& dtype, double cache_bytes,
               int max_tokens) {
  ModelDirectory files = OrDie(OpenModelDirectory(directory));
  const LsLmConfig config = OrDie(ParseLsLmConfig(files.config, files.common, files.config_path));
  decoder_ = OrDie(LsDecoder::Create(config, std::move(files.checkpoint), directory,
                                     dtype == "fp32" ? Compute::kFp32 : Compute::kBf16, max_tokens,
                                     cache_bytes));
}

std::vector<float> LsCase::Read(DecoderSequence& sequence, std::span<const int32_t> ids,
                                WantedLogits wanted, DecoderPhase phase) {
  const DecoderFeed feed{&sequence, ids, phase, wanted};
  return RunStep(*decoder_, {&feed, 1})[0];
}

std::vector<float> LsCase::Step(DecoderSequence& sequence, std::span<const int32_t> ids) {
  std::vector<float> logits;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = Read(sequence, ids.subspan(i, 1), WantedLogits::kLast, DecoderPhase::kDecode);
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

std::vector<float> LsCase::ReadInChunks(DecoderSequence& sequence, std::span<const int32_t> ids,
                                        int chunk) {
  std::vector<float> logits;
  for (size_t at = 0; at < ids.size(); at += static_cast<size_t>(chunk)) {
    const auto rows =
        Read(sequence, ids.subspan(at, std::min(ids.size() - at, static_cast<size_t>(chunk))));
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

std::vector<std::vector<float>> RunStep(LsDecoder& decoder, std::span<const DecoderFeed> feeds) {
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
