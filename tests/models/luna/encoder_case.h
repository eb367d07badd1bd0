// An encoder's case of golden/luna: what to ask, and how far answers are from the double-precision
// run of the published modules.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tests/models/golden/golden_case.h"

namespace longview::models {

class LunaEncoderCase {
 public:
  explicit LunaEncoderCase(const std::string& name) : name_(name), golden_(name, "luna") {}

  // The encoders; the other cases are generators.
  static std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const std::string& name : GoldenCase::Names("luna")) {
      const bool encoder =
          name.starts_with("lra_") || name.starts_with("mlm_") || name.starts_with("seqcls_");
      if (encoder) names.push_back(name);
    }
    return names;
  }

  const GoldenCase& golden() const { return golden_; }
  bool pair() const { return golden_.HasInput("input_ids_1.0"); }
  bool mlm() const { return name_.starts_with("mlm_"); }
  int items() const { return golden_.items(pair() ? "input_ids_1" : "input_ids"); }

  std::vector<Request> Requests() const {
    std::vector<Request> requests;
    for (int i = 0; i < items(); ++i) {
      if (pair()) {
        requests.push_back(TokenRequest(Task::kTextPairClassification,
                                        golden_.Tokens(i, "input_ids_1"), {"logits"}));
        requests.back().tokens_pair = golden_.Tokens(i, "input_ids_2");
      } else {
        requests.push_back(TokenRequest(mlm() ? Task::kFillMask : Task::kTextClassification,
                                        golden_.Tokens(i), {"logits"}));
      }
    }
    return requests;
  }

  double Error(const std::vector<Answer>& answers) const {
    double largest = 0;
    for (int i = 0; i < items(); ++i) {
      largest = std::max(largest, Difference(i, answers[i].tensors.at(0).floats()));
    }
    return largest;
  }

 private:
  // The expected rows of an item: all, or those at `positions`.
  double Difference(int item, std::span<const float> got) const {
    const std::string suffix = "." + std::to_string(item);
    const std::vector<double> want = golden_.Expected("logits" + suffix);
    if (!golden_.Expects("positions" + suffix)) return LargestDifference(got, want);
    const std::vector<int64_t> positions = golden_.ExpectedIntegers("positions" + suffix);
    const size_t width = want.size() / positions.size();
    std::vector<float> rows;
    for (const int64_t position : positions) {
      const auto begin = got.begin() + position * static_cast<int64_t>(width);
      rows.insert(rows.end(), begin, begin + static_cast<int64_t>(width));
    }
    return LargestDifference(rows, want);
  }

  const std::string name_;
  const GoldenCase golden_;
};

}  // namespace longview::models
