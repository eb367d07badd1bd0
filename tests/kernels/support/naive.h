// Softmax attention as a formula: one list of (score, value) per query row and head, double
// precision. Families are written down from their definition with it, never from a plan.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/kernels/support/tensors.h"

namespace longview::kernels::testing {

class NaiveRow {
 public:
  void Add(double score, const Tensor& v, int row, int head) {
    Term term{score, {}};
    for (int d = 0; d < v.dim(); ++d) term.value.push_back(v.At(row, head, d));
    terms_.push_back(std::move(term));
  }

  // Element d of the result; zeros when nothing was added.
  std::vector<double> Finish(int dim) const {
    std::vector<double> out(dim, 0.0);
    double top = -INFINITY;
    for (const Term& term : terms_) top = std::max(top, term.score);
    double sum = 0.0;
    for (const Term& term : terms_) {
      const double weight = std::exp(term.score - top);
      sum += weight;
      for (int d = 0; d < dim; ++d) out[d] += weight * term.value[d];
    }
    for (int d = 0; sum > 0.0 && d < dim; ++d) out[d] /= sum;
    return out;
  }

  size_t size() const { return terms_.size(); }

 private:
  struct Term {
    double score;
    std::vector<double> value;
  };
  std::vector<Term> terms_;
};

inline double Dot(const Tensor& q, int q_row, int q_head, const Tensor& k, int k_row, int k_head) {
  double sum = 0.0;
  for (int d = 0; d < q.dim(); ++d) {
    sum += static_cast<double>(q.At(q_row, q_head, d)) * k.At(k_row, k_head, d);
  }
  return sum;
}

}  // namespace longview::kernels::testing
