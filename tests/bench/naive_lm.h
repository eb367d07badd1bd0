// One token of a Transformer-LS language model by definition (Zhu et al. 2021, the published
// `autoregressive/` code): plain loops in double over the checkpoint's own tensors and the rows
// that a cache holds. Schedule `paper` with pre_ln and rank 1, or the same weights with a full
// cache. What benchmarks hold the decoders to; nothing of models/ but the checkpoint's reader is
// used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cache/projection_cache.h"
#include "models/checkpoint/checkpoint.h"
#include "models/transformer_ls/config.h"

namespace longview::bench {

enum class Remembered {
  kProjections,  // Strips: the window's rows, one projected row per finished segment.
  kEverything,   // One strip with every position's row, read without relative positions.
};

// Used by one thread. Borrows the configuration.
class NaiveLm {
 public:
  // `bf16`: the linears' weights are rounded, as the decoder's are.
  NaiveLm(const std::string& directory, const models::LsLmConfig& config, bool bf16);

  // Logits [V] of `id` as the next token of `sequence`, which is only read.
  std::vector<double> Logits(const kernels::ProjectionCache& cache,
                             const kernels::CacheSequence& sequence, Remembered what,
                             int32_t id) const;

 private:
  using Vector = std::vector<double>;
  struct Linear {
    std::vector<float> weight;  // [out, in]
    Vector bias;                // [out]
  };
  struct Norm {
    Vector gamma, beta;
  };
  struct Layer {
    Linear query, key, value, out, expand, contract, distances, segments;
    Norm norm1, norm2, window_norm;
    Vector window_add, distance_add;  // [d], added to the scaled query.
  };
  // One token among what its sequence remembers.
  struct Place {
    const kernels::ProjectionCache* cache = nullptr;
    const kernels::CacheSequence* sequence = nullptr;
    const Vector* features = nullptr;  // [ids, d] pe(id)
    int layer = 0;
  };
  // Entries of one head's softmax.
  struct Entries {
    Vector scores;
    std::vector<float> values;  // [entries, dh]
  };

  Vector Read(const std::string& name) const;
  Linear ReadLinear(const std::string& name, bool bias, bool round) const;
  Norm ReadNorm(const std::string& name) const;
  static Vector Multiply(const Linear& linear, const Vector& x);
  static Vector Normalised(const Norm& norm, const Vector& x);
  // Scores of ids 0, 1, ... : query of one head . linear(pe(id)), with the linear's bias.
  Vector PositionScores(const Linear& linear, const Vector& features, const Vector& query, int head,
                        int64_t ids) const;
  Vector Features(int64_t ids) const;
  Vector Attend(const Layer& layer, const Place& at, Remembered what, const Vector& x) const;
  void AddCached(const Place& at, int strip, int head, int64_t first, int64_t last,
                 const Vector& query, Entries& entries) const;

  const models::LsLmConfig& config_;
  models::Checkpoint checkpoint_;
  Vector frequencies_;
  std::vector<Layer> layers_;
  Linear words_;
};

}  // namespace longview::bench
