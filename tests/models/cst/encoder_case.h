// An encoder's case of golden/cst: what to ask, and how far logits are from the double-precision
// run of the definition.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/models/golden/golden_case.h"

namespace longview::models {

class CstEncoderCase {
 public:
  explicit CstEncoderCase(const std::string& name) : golden_(name, "cst") {}

  // The encoders; the other cases are generators.
  static std::vector<std::string> Names() {
    std::vector<std::string> names = GoldenCase::Names("cst");
    std::erase_if(names, [](const std::string& name) { return name.starts_with("ar_"); });
    return names;
  }

  const GoldenCase& golden() const { return golden_; }
  bool pair() const { return golden_.HasInput("input_ids_1.0"); }
  std::string first() const { return pair() ? "input_ids_1" : "input_ids"; }
  int items() const { return golden_.items(first()); }

  // For a model of the case, whose head says the task.
  std::vector<Request> Requests(Task task) const {
    std::vector<Request> requests;
    for (int i = 0; i < items(); ++i) {
      requests.push_back(TokenRequest(task, golden_.Tokens(i, first()), {"logits"}));
      if (pair()) requests.back().tokens_pair = golden_.Tokens(i, "input_ids_2");
    }
    return requests;
  }

  // Largest error of the answers to all of them.
  double Error(const std::vector<Answer>& answers) const {
    double largest = 0;
    for (int i = 0; i < items(); ++i) {
      largest = std::max(largest,
                         LargestDifference(answers[static_cast<size_t>(i)].tensors.at(0).floats(),
                                           golden_.Expected("logits." + std::to_string(i))));
    }
    return largest;
  }

  // The most that bf16 may be off: vocabulary logits are wider spread.
  static double Bf16Limit(Task task) { return task == Task::kFillMask ? 0.6 : 0.2; }

 private:
  const GoldenCase golden_;
};

}  // namespace longview::models
