#include "models/encoder/pool_rows.h"

#include <algorithm>
#include <cmath>

namespace longview::models {
namespace {

class Pooler {
 public:
  Pooler(const float* rows, std::span<const uint8_t> counts, int64_t width)
      : rows_(rows), width_(width) {
    for (size_t t = 0; t < counts.size(); ++t) {
      if (counts[t] != 0) tokens_.push_back(static_cast<int64_t>(t));
    }
  }

  void Append(PoolMode mode, std::vector<float>& to) const {
    std::vector<double> vector(static_cast<size_t>(width_));
    if (!tokens_.empty()) Pool(mode, vector);
    for (const double value : vector) to.push_back(static_cast<float>(value));
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
  const int64_t width_;
  std::vector<int64_t> tokens_;
};

}  // namespace

std::vector<float> PoolTokens(std::span<const PoolMode> modes, const float* rows,
                              std::span<const uint8_t> counts, int64_t width) {
  const Pooler pooler(rows, counts, width);
  std::vector<float> vectors;
  for (const PoolMode mode : modes) pooler.Append(mode, vectors);
  return vectors;
}

}  // namespace longview::models
