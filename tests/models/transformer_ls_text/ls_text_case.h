// A case of golden/transformer_ls_text: what to ask, and how far logits are from the
// double-precision run of the published code.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/models/golden/golden_case.h"

namespace longview::models {

class LsTextCase {
 public:
  explicit LsTextCase(const std::string& name) : golden_(name, "transformer_ls_text") {}

  const GoldenCase& golden() const { return golden_; }
  bool pair() const { return golden_.HasInput("input_ids_0.0"); }
  int items() const { return golden_.items(First()); }

  Request IdsOf(int item) const {
    Request request =
        TokenRequest(pair() ? Task::kTextPairClassification : Task::kTextClassification,
                     golden_.Tokens(item, First()), {"logits"});
    if (pair()) request.tokens_pair = golden_.Tokens(item, "input_ids_1");
    return request;
  }
  std::vector<Request> Requests() const {
    std::vector<Request> requests;
    for (int i = 0; i < items(); ++i) requests.push_back(IdsOf(i));
    return requests;
  }

  // Largest error of the answers to all of them.
  double Error(const std::vector<Answer>& answers) const {
    const std::vector<double> want = golden_.Expected("logits");
    double largest = 0;
    for (int i = 0; i < items(); ++i) {
      largest = std::max(
          largest, LargestDifference(answers[i].tensors.at(0).floats(), RowOf(want, i, items())));
    }
    return largest;
  }

 private:
  std::string First() const { return pair() ? "input_ids_0" : "input_ids"; }

  const GoldenCase golden_;
};

}  // namespace longview::models
