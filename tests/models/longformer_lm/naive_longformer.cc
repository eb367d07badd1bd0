#include "tests/models/longformer_lm/naive_longformer.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace longview::models {
namespace {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

class Naive {
 public:
  explicit Naive(const EditedModel& model)
      : model_(model),
        width_(model.config["hidden_size"]),
        heads_(model.config["num_attention_heads"]),
        eps_(model.config["layer_norm_eps"]) {}

  Row Logits(const Row& x) const {
    Row y = Linear("lm_head.dense", x);
    for (double& value : y) value = Gelu(value);
    y = Norm("lm_head.layer_norm", y);
    const EditedTensor& words = Tensor("longformer.embeddings.word_embeddings.weight");
    return Multiply(words, Tensor("lm_head.bias"), y);
  }

  Rows Embed(std::span<const int32_t> ids) const {
    const int pad = model_.config["pad_token_id"];
    const std::string prefix = "longformer.embeddings.";
    Rows x;
    for (size_t t = 0; t < ids.size(); ++t) {
      Row row(width_);
      for (size_t i = 0; i < width_; ++i) {
        row[i] = At(prefix + "word_embeddings.weight", static_cast<size_t>(ids[t]), i) +
                 At(prefix + "position_embeddings.weight", static_cast<size_t>(pad) + 1 + t, i) +
                 At(prefix + "token_type_embeddings.weight", 0, i);
      }
      x.push_back(Norm(prefix + "LayerNorm", row));
    }
    return x;
  }

  Rows Layer(size_t index, const Rows& x) const {
    const std::string layer = "longformer.encoder.layer." + std::to_string(index) + ".";
    const std::string self = layer + "attention.self.";
    Rows q, k, v, out;
    for (const Row& row : x) {
      q.push_back(Linear(self + "query", row));
      k.push_back(Linear(self + "key", row));
      v.push_back(Linear(self + "value", row));
    }
    for (size_t t = 0; t < x.size(); ++t) {
      Row z;
      for (size_t head = 0; head < heads_; ++head) Attend(index, t, head, q, k, v, z);
      Row y = Linear(layer + "attention.output.dense", z);
      y = Norm(layer + "attention.output.LayerNorm", Sum(y, x[t]));
      Row inner = Linear(layer + "intermediate.dense", y);
      for (double& value : inner) value = Activate(value);
      out.push_back(
          Norm(layer + "output.LayerNorm", Sum(Linear(layer + "output.dense", inner), y)));
    }
    return out;
  }

 private:
  static double Gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
  double Activate(double x) const {
    return model_.config["hidden_act"] == "relu" ? std::max(x, 0.0) : Gelu(x);
  }
  static Row Sum(Row a, const Row& b) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
    return a;
  }

  const EditedTensor& Tensor(const std::string& name) const { return model_.tensors.at(name); }
  double At(const std::string& name, size_t row, size_t column) const {
    return Tensor(name).values[row * width_ + column];
  }

  static Row Multiply(const EditedTensor& weight, const EditedTensor& bias, const Row& x) {
    Row y(bias.values.begin(), bias.values.end());
    for (size_t o = 0; o < y.size(); ++o) {
      for (size_t i = 0; i < x.size(); ++i) y[o] += weight.values[o * x.size() + i] * x[i];
    }
    return y;
  }
  Row Linear(const std::string& name, const Row& x) const {
    return Multiply(Tensor(name + ".weight"), Tensor(name + ".bias"), x);
  }
  Row Norm(const std::string& name, const Row& x) const {
    const auto n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double value : x) mean += value / n;
    for (const double value : x) variance += (value - mean) * (value - mean) / n;
    Row y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      y[i] = (x[i] - mean) / std::sqrt(variance + eps_) * Tensor(name + ".weight").values[i] +
             Tensor(name + ".bias").values[i];
    }
    return y;
  }

  size_t Dilation(size_t layer, size_t head) const {
    if (!model_.config.contains("attention_dilation")) return 1;
    const auto& entry = model_.config["attention_dilation"][layer];
    return entry.is_array() ? entry[head].get<size_t>() : entry.get<size_t>();
  }

  void Attend(size_t layer, size_t t, size_t head, const Rows& q, const Rows& k, const Rows& v,
              Row& z) const {
    const size_t dim = width_ / heads_, first = head * dim, step = Dilation(layer, head);
    const size_t reach = model_.config["attention_window"][layer].get<size_t>() / 2;
    Row sums(dim);
    double total = 0;
    for (size_t back = 0; back <= reach && back * step <= t; ++back) {
      const size_t key = t - back * step;
      double score = 0;
      for (size_t d = 0; d < dim; ++d) score += q[t][first + d] * k[key][first + d];
      const double weight = std::exp(score / std::sqrt(static_cast<double>(dim)));
      for (size_t d = 0; d < dim; ++d) sums[d] += weight * v[key][first + d];
      total += weight;
    }
    for (const double sum : sums) z.push_back(sum / total);
  }

  const EditedModel& model_;
  const size_t width_, heads_;
  const double eps_;
};

}  // namespace

std::vector<double> NaiveLogits(const EditedModel& model, std::span<const int32_t> ids) {
  const Naive naive(model);
  Rows x = naive.Embed(ids);
  for (size_t layer = 0; layer < model.config["num_hidden_layers"].get<size_t>(); ++layer) {
    x = naive.Layer(layer, x);
  }
  std::vector<double> logits;
  for (const Row& row : x) {
    const Row own = naive.Logits(row);
    logits.insert(logits.end(), own.begin(), own.end());
  }
  return logits;
}

}  // namespace longview::models
