#include "models/encoder/pool_rows.h"

#include <algorithm>
#include <cmath>

namespace longview::models {
namespace {

class Pooler {
 public:
  Pooler(const float* rows, std::span<const int32_t> tokens, int64_t width)
      : rows_(rows), tokens_(tokens), width_(width) {}

  void Write(PoolMode mode, float* to) const {
    std::vector<double> vector(static_cast<size_t>(width_));
    if (!tokens_.empty()) Pool(mode, vector);
    for (const double value : vector) *to++ = static_cast<float>(value);
  }

 private:
  void Pool(PoolMode mode, std::vector<double>& vector) const {
    switch (mode) {
      case PoolMode::kCls:
        return Take(tokens_.front(), vector);
      case PoolMode::kLastToken:
        return Take(tokens_.back(), vector);
      case PoolMode::kMax:
        return Largest(vector);
      case PoolMode::kMean:
        return Sum([](int64_t) { return 1.0; }, static_cast<double>(tokens_.size()), vector);
      case PoolMode::kMeanSqrt:
        return Sum([](int64_t) { return 1.0; }, std::sqrt(static_cast<double>(tokens_.size())),
                   vector);
      case PoolMode::kWeightedMean: {
        double total = 0;
        for (const int64_t token : tokens_) total += static_cast<double>(token + 1);
        return Sum([](int64_t token) { return static_cast<double>(token + 1); }, total, vector);
      }
    }
  }

  void Take(int64_t token, std::vector<double>& vector) const {
    std::copy_n(rows_ + token * width_, width_, vector.begin());
  }

  void Largest(std::vector<double>& vector) const {
    Take(tokens_.front(), vector);
    for (const int64_t token : tokens_) {
      const float* row = rows_ + token * width_;
      for (int64_t i = 0; i < width_; ++i) {
        vector[static_cast<size_t>(i)] = std::max(vector[static_cast<size_t>(i)], double{row[i]});
      }
    }
  }

  template <typename Weight>
  void Sum(const Weight& weight, double divisor, std::vector<double>& vector) const {
    for (const int64_t token : tokens_) {
      const float* row = rows_ + token * width_;
      const double factor = weight(token);
      for (int64_t i = 0; i < width_; ++i) vector[static_cast<size_t>(i)] += factor * row[i];
    }
    for (double& value : vector) value /= divisor;
  }

  const float* const rows_;
  const std::span<const int32_t> tokens_;
  const int64_t width_;
};

}  // namespace

void PoolTokens(std::span<const PoolMode> modes, const float* rows, std::span<const int32_t> tokens,
                int64_t width, float* out) {
  const Pooler pooler(rows, tokens, width);
  for (const PoolMode mode : modes) {
    pooler.Write(mode, out);
    out += width;
  }
}

}  // namespace longview::models
