// A model case of golden/transformer_ls_lm, held against a decoder wherever it computes:
// logits of whole texts, step by step from every prompt length given, forks, greedy continuations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "tests/models/generation/decoder_reader.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {

class LsGoldenChecks {
 public:
  // Every difference is at most `limit`.
  LsGoldenChecks(const GoldenCase& golden, double limit) : golden_(golden), limit_(limit) {}

  // Tests of failures are the caller's: HasFatalFailure().
  void WholeTexts(DecoderReader& model);
  void StepByStep(DecoderReader& model);
  void Forks(DecoderReader& model);
  void Continuations(DecoderReader& model);

  double largest() const { return largest_; }
  int compared() const { return compared_; }

 private:
  std::vector<int32_t> Ids(const std::string& name) const;
  void Compare(std::span<const float> got, const std::string& name);

  const GoldenCase& golden_;
  const double limit_;
  double largest_ = 0;
  int compared_ = 0;
};

}  // namespace longview::models
