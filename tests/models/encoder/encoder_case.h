// A case of tests/golden for a text encoder: what to ask of its model, how far answers are from the
// double-precision run, and how far they may be.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "models/encoder/family.h"
#include "tests/models/golden/golden_case.h"

namespace longview::models {

struct EncoderCaseName {
  std::string family, name;
};
void PrintTo(const EncoderCaseName& name, std::ostream* out);
std::string TestName(const ::testing::TestParamInfo<EncoderCaseName>& info);

// How far answers may be off, by the type that the model computes in.
struct TypeLimits {
  double fp32 = 0, bf16 = 0, fp16 = 0, int8 = 0;
};

class EncoderCase {
 public:
  // Items of over `most_pooled` tokens are not asked for pooled embeddings beside their states.
  explicit EncoderCase(const EncoderCaseName& name, size_t most_pooled = SIZE_MAX);

  // The encoders among a family's cases, sorted; the others are generators and parts of models.
  static std::vector<std::string> Names(const std::string& family);
  // Names of several families.
  static std::vector<EncoderCaseName> NamesOf(const std::vector<std::string>& families);
  // The families, sorted.
  static std::vector<std::string> Families();

  const GoldenCase& golden() const { return golden_; }
  MakeEncoder make() const { return make_; }
  // For each item one request for the tensors of its task, and one for each pooled embedding that
  // it is asked for.
  const std::vector<Request>& requests() const { return requests_; }
  // In fp32 the fixture's tolerance.
  const TypeLimits& limits() const { return limits_; }
  // The largest of what the case expects in answers to all requests.
  double Error(const std::vector<Answer>& answers) const;

 private:
  // One tensor of an answer.
  struct Wanted {
    int item;
    std::vector<double> values;  // Empty where the case expects nothing.
  };

  void AskItems(Task task, size_t most_pooled);
  void AskChoices();

  const GoldenCase golden_;
  MakeEncoder make_ = nullptr;
  TypeLimits limits_;
  std::vector<Request> requests_;
  std::vector<std::vector<Wanted>> wanted_;  // For each request, in the order of its tensors.
};

}  // namespace longview::models
