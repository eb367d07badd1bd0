// Transformer-LS by definition, in double precision, a token after the other: for tests of its
// decode steps.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/cuda/token/decode_step.h"

namespace longview::kernels::cuda::testing {

inline constexpr float kDecodeEps = 1e-5f;
inline constexpr int kDecodeLayers = 2, kMostTokens = 200;

using Row = std::vector<double>;

// Weights by name, made up where they are first asked for; exact in bfloat16.
class NamedWeights {
 public:
  explicit NamedWeights(const DecodeShape& shape) : shape_(shape) {}

  const DecodeShape& shape() const { return shape_; }

  const std::vector<float>& Get(const std::string& name, int64_t count, double scale,
                                double mean = 0) {
    std::vector<float>& values = values_[name];
    while (std::ssize(values) < count) {
      const double value = mean + scale * normal_(random_);
      values.push_back(BFloat16ToFloat(FloatToBFloat16(static_cast<float>(value))));
    }
    return values;
  }
  const std::vector<float>& Matrix(const std::string& name, int64_t out, int64_t in) {
    return Get(name, out * in, 1.2 / std::sqrt(static_cast<double>(in)));
  }
  const std::vector<float>& Bias(const std::string& name, int64_t count) {
    return Get(name, count, 0.3);
  }
  const std::vector<float>& Gamma(const std::string& name) {
    return Get(name + ".gamma", shape_.width, 0.2, 1);
  }
  const std::vector<float>& Beta(const std::string& name) {
    return Get(name + ".beta", shape_.width, 0.2);
  }

 private:
  const DecodeShape shape_;
  std::mt19937 random_{3};
  std::normal_distribution<double> normal_{0, 1};
  std::map<std::string, std::vector<float>> values_;
};

// Of a layer's weight.
inline std::string Name(int layer, const char* name) { return std::to_string(layer) + name; }

class DecodeDefinition {
 public:
  // Borrows the weights.
  explicit DecodeDefinition(NamedWeights& weights)
      : weights_(weights), shape_(weights.shape()), pattern_(shape_.attention) {}

  // Of a text's last token, [vocab].
  Row Logits(std::span<const int32_t> ids);

  // Entries of a layer's table of distances to segments.
  static int64_t SegmentIds(const DecodeShape& shape);

  // Key and value of a layer's places before the text, normed as its window's or segments' are.
  std::pair<Row, Row> Zero(int layer, const char* norm);

 private:
  struct Key {
    Row key, value;
    int64_t entry = 0;  // Of its table.
    bool window = false;
  };

  Row Linear(const Row& x, const std::string& name, int64_t out);
  Row Norm(const Row& x, const std::string& name);
  // Rank k of the segment that begins at `first`, weighed by the scores in y: means of `values`'
  // columns from `from` on.
  Row Page(const std::vector<Row>& y, const std::vector<Row>& values, int first, int k,
           int64_t from) const;
  Row Attend(int layer, const Row& y, const std::vector<Key>& keys);
  // Key and value of a projected row, normed.
  Key Normed(const Row& y, int layer, const char* norm);
  void Layer(int layer, std::vector<Row>& x);
  Row Finish(int layer, Row x, const Row& z);
  // A layer's places before the text, [width] each.
  Row ZeroInput(int layer);

  NamedWeights& weights_;
  const DecodeShape shape_;
  const SchedulePattern pattern_;
};

}  // namespace longview::kernels::cuda::testing
