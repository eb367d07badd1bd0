#include "tests/bench/naive_lm.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "kernels/base/bfloat16.h"
#include "models/checkpoint/convert.h"

namespace longview::bench {
namespace {

constexpr double kNormEps = 1e-5;

models::Checkpoint OpenOrDie(const std::string& directory) {
  absl::StatusOr<models::Checkpoint> checkpoint = models::Checkpoint::Open(directory);
  if (checkpoint.ok()) return *std::move(checkpoint);
  std::fprintf(stderr, "%s\n", checkpoint.status().ToString().c_str());
  std::exit(1);
}

double Dot(const double* a, const float* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

NaiveLm::NaiveLm(const std::string& directory, const models::LsLmConfig& config, bool bf16)
    : config_(config), checkpoint_(OpenOrDie(directory)) {
  const std::string model = "decoder.model.";
  for (int i = 0; i < config.width; i += 2) {
    // fairseq computes them in fp32.
    frequencies_.push_back(1.0f / std::pow(10000.0f, static_cast<float>(i) / config.width));
  }
  words_ = ReadLinear(model + "in_emb", false, bf16);
  words_.bias = Read(model + "out_emb.bias");
  for (int i = 0; i < config.layers; ++i) {
    const std::string layer = model + "layers." + std::to_string(i) + ".";
    const std::string attention = layer + "attn.";
    layers_.push_back(
        {ReadLinear(attention + "proj_query", false, bf16),
         ReadLinear(attention + "proj_key", false, bf16),
         ReadLinear(attention + "proj_val", false, bf16),
         ReadLinear(attention + "proj_out", false, bf16), ReadLinear(layer + "ff.fc1", true, bf16),
         ReadLinear(layer + "ff.fc2", true, bf16), ReadLinear(attention + "r_net", false, false),
         ReadLinear(attention + "r_net_chunk", true, false), ReadNorm(layer + "norm1"),
         ReadNorm(layer + "norm2"), ReadNorm(attention + "dual_ln_win"),
         Read(attention + "r_w_bias"), Read(attention + "r_r_bias")});
  }
}

NaiveLm::Vector NaiveLm::Read(const std::string& name) const {
  const std::vector<float> values = models::ToFloat32(*checkpoint_.Find(name));
  return {values.begin(), values.end()};
}

NaiveLm::Linear NaiveLm::ReadLinear(const std::string& name, bool bias, bool round) const {
  const models::TensorView& weight = *checkpoint_.Find(name + ".weight");
  Linear linear;
  linear.weight = models::ToFloat32(weight);
  if (round) {
    for (float& w : linear.weight) w = kernels::BFloat16ToFloat(kernels::FloatToBFloat16(w));
  }
  linear.bias = bias ? Read(name + ".bias") : Vector(static_cast<size_t>(weight.shape[0]));
  return linear;
}

NaiveLm::Norm NaiveLm::ReadNorm(const std::string& name) const {
  return {Read(name + ".weight"), Read(name + ".bias")};
}

NaiveLm::Vector NaiveLm::Multiply(const Linear& linear, const Vector& x) {
  Vector y = linear.bias;
  for (size_t o = 0; o < y.size(); ++o) {
    y[o] += Dot(x.data(), linear.weight.data() + o * x.size(), x.size());
  }
  return y;
}

NaiveLm::Vector NaiveLm::Normalised(const Norm& norm, const Vector& x) {
  const auto n = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double value : x) mean += value / n;
  for (const double value : x) variance += (value - mean) * (value - mean) / n;
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = (x[i] - mean) / std::sqrt(variance + kNormEps) * norm.gamma[i] + norm.beta[i];
  }
  return y;
}

// query . (W pe + b) = (W^T query) . pe + query . b, of the head's rows of W and b.
NaiveLm::Vector NaiveLm::PositionScores(const Linear& linear, const Vector& features,
                                        const Vector& query, int head, int64_t ids) const {
  const int dim = config_.head_dim();
  Vector pulled(static_cast<size_t>(config_.width));
  double constant = 0;
  for (int64_t o = int64_t{head} * dim; o < int64_t{head + 1} * dim; ++o) {
    const float* row = linear.weight.data() + o * config_.width;
    for (int64_t i = 0; i < config_.width; ++i) pulled[i] += query[o] * row[i];
    constant += query[o] * linear.bias[o];
  }
  Vector scores(static_cast<size_t>(ids), constant);
  for (int64_t id = 0; id < ids; ++id) {
    const double* feature = features.data() + id * config_.width;
    for (int64_t i = 0; i < config_.width; ++i) scores[id] += pulled[i] * feature[i];
  }
  return scores;
}

NaiveLm::Vector NaiveLm::Features(int64_t ids) const {
  const int64_t half = config_.width / 2;
  Vector features(static_cast<size_t>(ids * config_.width));
  for (int64_t id = 0; id < ids; ++id) {
    for (int64_t i = 0; i < half; ++i) {
      const double phase = static_cast<double>(id) * frequencies_[i];
      features[id * config_.width + i] = std::sin(phase);
      features[id * config_.width + half + i] = std::cos(phase);
    }
  }
  return features;
}

void NaiveLm::AddCached(const Place& at, int strip, int head, int64_t first, int64_t last,
                        const Vector& query, Entries& entries) const {
  const auto dim = static_cast<size_t>(config_.head_dim());
  std::vector<float> key(dim);
  for (int64_t slot = first; slot < last; ++slot) {
    entries.values.resize(entries.values.size() + dim);
    float* value = entries.values.data() + entries.values.size() - dim;
    at.cache->ReadRow(*at.sequence, strip, at.layer, slot, head, key.data(), value);
    entries.scores.push_back(Dot(query.data() + head * dim, key.data(), dim));
  }
}

NaiveLm::Vector NaiveLm::Attend(const Layer& layer, const Place& at, Remembered what,
                                const Vector& x) const {
  const int dim = config_.head_dim();
  const int64_t t = at.sequence->tokens();
  const bool everything = what == Remembered::kEverything;
  Vector query = Multiply(layer.query, x);
  for (double& q : query) q /= std::sqrt(static_cast<double>(dim));
  const Vector key = Normalised(layer.window_norm, Multiply(layer.key, x));
  const Vector value = Normalised(layer.window_norm, Multiply(layer.value, x));
  Vector window_query = query, distance_query = query;
  for (size_t i = 0; !everything && i < query.size(); ++i) {
    window_query[i] += layer.window_add[i];
    distance_query[i] += layer.distance_add[i];
  }
  const int64_t oldest = everything ? 0 : std::max<int64_t>(0, t - config_.window + 1);
  const int64_t segments = everything ? 0 : t / config_.segment;
  Vector mixed(query.size());
  for (int head = 0; head < config_.heads; ++head) {
    Entries entries;
    AddCached(at, 1, head, 0, segments, query, entries);
    AddCached(at, 0, head, oldest, t, window_query, entries);
    double own = 0;
    for (int i = head * dim; i < (head + 1) * dim; ++i) {
      own += window_query[i] * key[i];
      entries.values.push_back(static_cast<float>(value[i]));
    }
    entries.scores.push_back(own);
    if (!everything) {
      const Vector ago = PositionScores(layer.segments, *at.features, query, head, segments);
      for (int64_t c = 0; c < segments; ++c) entries.scores[c] += ago[segments - 1 - c];
      const Vector back =
          PositionScores(layer.distances, *at.features, distance_query, head, t - oldest + 1);
      for (int64_t p = oldest; p <= t; ++p) entries.scores[segments + p - oldest] += back[t - p];
    }
    const double top = *std::max_element(entries.scores.begin(), entries.scores.end());
    double sum = 0;
    for (double& score : entries.scores) sum += score = std::exp(score - top);
    for (size_t i = 0; i < entries.scores.size(); ++i) {
      for (int d = 0; d < dim; ++d) {
        mixed[head * dim + d] += entries.scores[i] / sum * entries.values[i * dim + d];
      }
    }
  }
  return Multiply(layer.out, mixed);
}

std::vector<double> NaiveLm::Logits(const kernels::ProjectionCache& cache,
                                    const kernels::CacheSequence& sequence, Remembered what,
                                    int32_t id) const {
  // The embedding is read from the checkpoint unrounded.
  std::vector<float> word(static_cast<size_t>(config_.width));
  models::CopyFloat32(*checkpoint_.Find("decoder.model.in_emb.weight"), id * config_.width, word);
  Vector stream(word.begin(), word.end());
  for (double& h : stream) h *= std::sqrt(static_cast<double>(config_.width));
  const Vector features =
      Features(std::max<int64_t>(config_.window, sequence.tokens() / config_.segment));
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    stream = Normalised(layer.norm1, stream);
    const Place at{&cache, &sequence, &features, static_cast<int>(i)};
    const Vector attended = Attend(layer, at, what, stream);
    for (size_t d = 0; d < stream.size(); ++d) stream[d] += attended[d];
    stream = Normalised(layer.norm2, stream);
    Vector inner = Multiply(layer.expand, stream);
    for (double& y : inner) y = y / 2 * (1 + std::erf(y / std::sqrt(2.0)));
    const Vector added = Multiply(layer.contract, inner);
    for (size_t d = 0; d < stream.size(); ++d) stream[d] += added[d];
  }
  return Multiply(words_, stream);
}

}  // namespace longview::bench
