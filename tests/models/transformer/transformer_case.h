// A token-level case of golden/modernbert or golden/xlm_roberta: what to ask, and how far answers
// are from the double-precision run.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/models/golden/golden_case.h"

namespace longview::models {

struct TransformerCaseName {
  std::string family, name;
};
void PrintTo(const TransformerCaseName& name, std::ostream* out);

class TransformerCase {
 public:
  explicit TransformerCase(const TransformerCaseName& name);

  // Every case with items that is there.
  static std::vector<TransformerCaseName> Names();

  const GoldenCase& golden() const { return golden_; }
  // One per output that the case expects of each item.
  const std::vector<Request>& requests() const { return requests_; }
  // The largest of all; NaN and infinity count as such.
  double Error(const std::vector<Answer>& answers) const;

 private:
  void Ask(int item, Task task, const std::string& expected, const std::string& tensor,
           const std::string& pooling = "");
  double Difference(const std::string& name, std::span<const float> got) const;

  GoldenCase golden_;
  std::vector<Request> requests_;
  std::vector<std::string> expected_;  // One per request: "logits.3".
};

}  // namespace longview::models
