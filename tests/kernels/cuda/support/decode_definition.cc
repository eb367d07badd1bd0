#include "tests/kernels/cuda/support/decode_definition.h"

#include <algorithm>
#include <cmath>

namespace longview::kernels::cuda::testing {
namespace {

Row Part(const Row& row, int64_t first, int64_t count) {
  return {row.begin() + first, row.begin() + first + count};
}

}  // namespace

Row DecodeDefinition::Logits(std::span<const int32_t> ids) {
  std::vector<Row> x;
  const auto& words = weights_.Get("words", shape_.vocab * shape_.width, 1);
  for (const int32_t id : ids) {
    Row row(words.begin() + id * shape_.width, words.begin() + (id + 1) * shape_.width);
    x.push_back(shape_.pre_norm ? Norm(row, Name(0, "norm1")) : row);
  }
  for (int layer = 0; layer < kDecodeLayers; ++layer) Layer(layer, x);
  return Linear(x.back(), "logits", shape_.vocab);
}

Row DecodeDefinition::Linear(const Row& x, const std::string& name, int64_t out) {
  const auto in = std::ssize(x);
  const auto& weight = weights_.Matrix(name, out, in);
  const auto& bias = weights_.Bias(name + ".bias", out);
  Row y(bias.begin(), bias.begin() + out);
  for (int64_t o = 0; o < out; ++o) {
    for (int64_t i = 0; i < in; ++i) y[o] += weight[o * in + i] * x[i];
  }
  return y;
}

Row DecodeDefinition::Norm(const Row& x, const std::string& name) {
  double mean = 0, squares = 0;
  for (const double value : x) mean += value / static_cast<double>(x.size());
  for (const double value : x) squares += (value - mean) * (value - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(x.size()) + kDecodeEps);
  Row normed;
  for (size_t i = 0; i < x.size(); ++i) {
    normed.push_back((x[i] - mean) * factor * weights_.Gamma(name)[i] + weights_.Beta(name)[i]);
  }
  return normed;
}

Row DecodeDefinition::Page(const std::vector<Row>& y, const std::vector<Row>& values, int first,
                           int k, int64_t from) const {
  Row page;
  for (int head = 0; head < shape_.heads(); ++head) {
    const auto column = 3 * shape_.width + head * pattern_.rank + k;
    double total = 0;
    Row sum(static_cast<size_t>(shape_.dim()));
    for (int t = first; t < first + pattern_.segment; ++t) {
      const double weight = std::exp(y[t][column]);
      total += weight;
      for (int d = 0; d < shape_.dim(); ++d) {
        sum[d] += weight * values[t][from + head * shape_.dim() + d];
      }
    }
    for (const double value : sum) page.push_back(value / total);
  }
  return page;
}

Row DecodeDefinition::Attend(int layer, const Row& y, const std::vector<Key>& keys) {
  const int width = shape_.width, dim = shape_.dim();
  const auto& window_add = weights_.Bias(Name(layer, "window_add"), width);
  const auto& distance_add = weights_.Bias(Name(layer, "distance_add"), width);
  const auto& windows = weights_.Bias(Name(layer, "windows"), pattern_.window * width);
  const auto& segments = weights_.Bias(Name(layer, "segments"), SegmentIds(shape_) * width);
  Row z;
  for (int head = 0; head < shape_.heads(); ++head) {
    double total = 0;
    Row sum(static_cast<size_t>(dim));
    for (const Key& key : keys) {
      double score = 0;
      for (int d = 0; d < dim; ++d) {
        const int at = head * dim + d;
        const int64_t entries = key.window ? pattern_.window : SegmentIds(shape_);
        const auto& table = key.window ? windows : segments;
        score += (y[at] + (key.window ? window_add[at] : 0)) * key.key[at] +
                 (y[at] + (key.window ? distance_add[at] : 0)) *
                     table[(head * entries + key.entry) * dim + d];
      }
      const double weight = std::exp(score / std::sqrt(dim));
      total += weight;
      for (int d = 0; d < dim; ++d) sum[d] += weight * key.value[head * dim + d];
    }
    for (const double value : sum) z.push_back(value / total);
  }
  return z;
}

DecodeDefinition::Key DecodeDefinition::Normed(const Row& y, int layer, const char* norm) {
  const int width = shape_.width;
  return {Norm(Part(y, width, width), Name(layer, norm)),
          Norm(Part(y, 2 * width, width), Name(layer, norm))};
}

void DecodeDefinition::Layer(int layer, std::vector<Row>& x) {
  const int width = shape_.width, tokens = static_cast<int>(x.size());
  const auto project = [&](const Row& row) {
    return Linear(row, Name(layer, "project"), shape_.projected());
  };
  std::vector<Row> y;
  std::vector<Key> places, late, early;
  for (const Row& row : x) {
    y.push_back(project(row));
    places.push_back(Normed(y.back(), layer, "window"));
  }
  for (int first = 0; first + pattern_.segment <= tokens; first += pattern_.segment) {
    for (int k = 0; k < pattern_.rank; ++k) {
      late.push_back({Norm(Page(y, y, first, k, width), Name(layer, "segment")),
                      Norm(Page(y, y, first, k, 2 * width), Name(layer, "segment"))});
      early.push_back(Normed(project(Page(y, x, first, k, 0)), layer, "segment"));
    }
  }
  const Row nothing = project(ZeroInput(layer));
  const auto see = [](Key key, int64_t entry, bool window) {
    key.entry = entry;
    key.window = window;
    return key;
  };
  for (int t = 0; t < tokens; ++t) {
    std::vector<Key> seen;
    const int pages = t / pattern_.segment * pattern_.rank;
    const int block = pattern_.paper() ? 0 : t / pattern_.block * pattern_.block;
    const int per = pattern_.rank, oldest = (block - pattern_.memory) / pattern_.segment * per;
    for (int j = pattern_.paper() ? 0 : oldest; j < pages; ++j) {
      if (j < 0 && !pattern_.zero_memory) continue;
      const bool before = j < block / pattern_.segment * per;
      seen.push_back(see(j < 0    ? Normed(nothing, layer, "segment")
                         : before ? early[j]
                                  : late[j],
                         pages - 1 - j, false));
    }
    for (int p = t - pattern_.window + 1; p <= t; ++p) {
      if (p < 0 && !pattern_.zero_memory) continue;
      seen.push_back(see(p < 0 ? Normed(nothing, layer, "window") : places[p], t - p, true));
    }
    x[t] = Finish(layer, x[t], Attend(layer, y[t], seen));
  }
}

Row DecodeDefinition::Finish(int layer, Row x, const Row& z) {
  const Row attended = Linear(z, Name(layer, "out"), shape_.width);
  for (size_t i = 0; i < x.size(); ++i) x[i] += attended[i];
  x = Norm(x, Name(layer, shape_.pre_norm ? "norm2" : "norm1"));
  Row wide = Linear(x, Name(layer, "expand"), shape_.intermediate);
  for (double& value : wide) value = std::max(value, 0.0);
  const Row added = Linear(wide, Name(layer, "contract"), shape_.width);
  for (size_t i = 0; i < x.size(); ++i) x[i] += added[i];
  if (!shape_.pre_norm) return Norm(x, Name(layer, "norm2"));
  return layer + 1 == kDecodeLayers ? x : Norm(x, Name(layer + 1, "norm1"));
}

int64_t DecodeDefinition::SegmentIds(const DecodeShape& shape) {
  return shape.attention.MostSegmentIds(kMostTokens);
}

Row DecodeDefinition::ZeroInput(int layer) {
  if (!shape_.pre_norm) return Row(static_cast<size_t>(shape_.width));
  const auto& beta = weights_.Beta(Name(layer, "norm1"));
  return {beta.begin(), beta.end()};
}

std::pair<Row, Row> DecodeDefinition::Zero(int layer, const char* norm) {
  const Key key =
      Normed(Linear(ZeroInput(layer), Name(layer, "project"), shape_.projected()), layer, norm);
  return {key.key, key.value};
}

}  // namespace longview::kernels::cuda::testing
