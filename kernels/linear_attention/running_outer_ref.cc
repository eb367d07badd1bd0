#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/linear_attention/running_outer.h"

namespace longview::kernels {
namespace {

int Lanes(int count) { return (count + 15) / 16 * 16; }

double Phi(OuterActivation activation, double x) {
  switch (activation) {
    case OuterActivation::kSoftplusLn2:
      return std::max(x, 0.0) + std::log1p(std::exp2(-std::abs(x))) / std::log(2.0);
    case OuterActivation::kSoftplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    case OuterActivation::kElu1:
      return x > 0 ? x + 1 : std::exp(x);
  }
  return 0;
}

// One head of one sequence, its state in double.
class HeadRef {
 public:
  HeadRef(const OuterCall& call, const OuterSequence& sequence, int head)
      : call_(call), sequence_(sequence), column_(int64_t{head} * call.width) {
    const int64_t key_floats = int64_t{call.width} * Lanes(sequence.rows);
    const int64_t value_floats = int64_t{sequence.rows} * Lanes(call.width);
    packed_ = sequence.packed + head * key_floats;
    key_state_ = sequence.state + head * (key_floats + value_floats);
    value_state_ = key_state_ + key_floats;
    keys_.assign(key_state_, key_state_ + key_floats);
    values_.assign(value_state_, value_state_ + value_floats);
  }

  void Run() {
    for (int64_t i = 0; i < sequence_.tokens; ++i) Token(i);
    std::copy(keys_.begin(), keys_.end(), key_state_);
    std::copy(values_.begin(), values_.end(), value_state_);
  }

 private:
  double& Key(int channel, int row) { return keys_[channel * Lanes(sequence_.rows) + row]; }
  double& Value(int row, int channel) { return values_[row * Lanes(call_.width) + channel]; }

  void Token(int64_t i) {
    const int64_t in = (sequence_.row0 + i) * call_.row_stride + column_;
    const auto t = static_cast<double>(sequence_.before + i + 1);
    std::vector<double> weights;
    for (int r = 0; r < sequence_.rows; ++r) {
      double score = 0, read = 0;
      for (int d = 0; d < call_.width; ++d) {
        score += static_cast<double>(call_.g[in + d]) * packed_[d * Lanes(sequence_.rows) + r];
      }
      const double write = Phi(call_.activation, call_.scale * score);
      for (int d = 0; d < call_.width; ++d) {
        Key(d, r) += write * call_.k[in + d];
        Value(r, d) += write * call_.v[in + d];
        read += Key(d, r) * call_.q[in + d];
      }
      weights.push_back(call_.scale * read / t);
    }
    const double top = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& weight : weights) total += weight = std::exp(weight - top);
    for (int d = 0; d < call_.width; ++d) {
      double sum = 0;
      for (int r = 0; r < sequence_.rows; ++r) sum += weights[r] / total * Value(r, d);
      call_.out[(sequence_.row0 + i) * call_.out_stride + column_ + d] =
          static_cast<float>(sum / t);
    }
  }

  const OuterCall& call_;
  const OuterSequence& sequence_;
  const int64_t column_;
  const float* packed_;
  float* key_state_;
  float* value_state_;
  std::vector<double> keys_, values_;
};

}  // namespace

void AppendOuterRef(const OuterCall& call) {
  for (const OuterSequence& sequence : call.sequences) {
    for (int head = 0; head < call.heads; ++head) HeadRef(call, sequence, head).Run();
  }
}

}  // namespace longview::kernels
