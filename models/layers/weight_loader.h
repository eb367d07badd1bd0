// A family's weights, read in straight code: every getter checks name and shape, the first error
// stays, and Finish reports it or the tensors that nobody asked for.
//
//   WeightLoader load(checkpoint, directory, format);
//   auto out = load.Dense("layer.0.out", width, width);
//   Norm norm = load.LayerNorm("layer.0.norm", width, eps);
//   RETURN_IF_ERROR(load.Finish());
//
// Without a format only names and shapes are checked: nothing is read or packed, and what
// the getters return is empty. One per load, used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/weight_source.h"
#include "models/dense/layer.h"
#include "models/dense/weight_format.h"
#include "models/status_macros.h"

namespace longview::models {

struct Norm {
  std::vector<float> gamma, beta;
  float eps = 0;
  NormWeights view() const { return {gamma.data(), beta.data(), eps}; }
};

// A row-major fp32 matrix.
class FloatMatrix {
 public:
  FloatMatrix() = default;
  explicit FloatMatrix(std::vector<float> values) : values_(std::move(values)) {}
  const float* data() const { return values_.data(); }

 private:
  std::vector<float> values_;
};

class WeightLoader {
 public:
  // `origin` begins every message. REQUIRES: the checkpoint outlives the loader, and the tables
  // that it returned.
  WeightLoader(const Checkpoint& checkpoint, std::string origin, std::optional<WeightFormat> format)
      : checkpoint_(checkpoint), source_(checkpoint, std::move(origin)), format_(format) {}

  // For prefixes, spellings and tensors to ignore.
  WeightSource& source() { return source_; }
  // Whether linears get a second pack for a few rows too (DenseLayer::rows), where that pays.
  void set_packs_rows(bool packs_rows) { packs_rows_ = packs_rows; }
  // Whether linears are int8 where the format says so.
  void set_takes_int8(bool takes_int8) { takes_int8_ = takes_int8; }
  // Receives linears instead of a pack, until it is set to null: a device that keeps them in its
  // own memory. Spans are gone after the call; its status becomes the loader's.
  using Taker = std::function<absl::Status(const std::string& name, std::span<const float> weight,
                                           std::span<const float> bias)>;
  void set_taker(Taker taker) { taker_ = std::move(taker); }
  bool ok() const { return status_.ok(); }
  bool reads() const { return format_.has_value(); }

  // Tensors that stay in the checkpoint; null after an error.
  const TensorView* Get(const std::string& name, const std::vector<int64_t>& shape) {
    return Keep(source_.Get(name, shape));
  }
  const TensorView* GetTied(std::span<const std::string> names, const std::vector<int64_t>& shape) {
    return Keep(source_.GetTied(names, shape));
  }

  // Copies; the file's pages are given back. Zeros after an error. REQUIRES: a tensor of floats.
  std::vector<float> Copy(const TensorView* tensor);
  std::vector<float> Vector(const std::string& name, int64_t size);
  // name.weight and name.bias; without `bias`, zeros.
  Norm LayerNorm(const std::string& name, int64_t width, float eps, bool bias = true);

  // Linears, name.weight [out, in] and name.bias [out]; without `bias`, zeros. Unset after an
  // error.
  std::optional<DenseLayer> Dense(const std::string& name, int64_t out, int64_t in,
                                  bool bias = true) {
    return Stack("", {{name, out, bias}}, in);
  }
  // Several of equal input, their outputs side by side.
  struct Part {
    std::string name;
    int64_t out = 0;
    bool bias = true;
  };
  std::optional<DenseLayer> Stack(const std::string& prefix, const std::vector<Part>& parts,
                                  int64_t in);
  // Linears of equal shape that are stored one behind another: name.weight [parts * out, in].
  std::vector<std::optional<DenseLayer>> Split(const std::string& name, int64_t parts, int64_t out,
                                               int64_t in, bool bias);
  std::optional<DenseLayer> Pack(const std::string& name, std::span<const float> weight,
                                 std::vector<float> bias, int64_t out, int64_t in);

  // A convolution name.weight [out, in, kernel, kernel] (or stored flat, [out, in * kernel *
  // kernel]) with name.bias [out], its columns reordered to (row, column, channel).
  std::optional<DenseLayer> Taps(const std::string& name, int64_t out, int64_t in, int64_t kernel,
                                 bool flat = false);

  // Bytes that stay resident beyond what the getters count themselves.
  void CountBytes(double bytes) { memory_bytes_ += bytes; }
  void Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  absl::Status Finish() const { return status_.ok() ? source_.Finish() : status_; }

  double parameters() const { return parameters_; }      // Elements asked for.
  double memory_bytes() const { return memory_bytes_; }  // Packs, copies, mapped tables.

 private:
  const TensorView* Keep(absl::StatusOr<const TensorView*> found);
  absl::StatusOr<Linear> PackAs(bool int8, const std::string& name, std::span<const float> weight,
                                int64_t out, int64_t in);

  const Checkpoint& checkpoint_;
  WeightSource source_;
  const std::optional<WeightFormat> format_;
  bool packs_rows_ = false;
  bool takes_int8_ = false;
  Taker taker_;
  PanelRules rules_;
  absl::Status status_;
  double parameters_ = 0;
  double memory_bytes_ = 0;
};

// Leaves the panel sizes that `layer` allows too: for layers that run on the same panels.
void NarrowSizes(const DenseLayer& layer, PanelSizes& sizes);

// The bias [size] of a masked LM's decoder, which files hold under the decoder's name, the head's
// or both. `own` is the decoder's name of it, `shared` the head's. A decoder that is `tied` to the
// word embeddings has one tensor under both names; an untied one has its own, or the head's if no
// other is stored. Errors go to `load`.
std::vector<float> DecoderBias(const std::string& own, const std::string& shared, bool tied,
                               int64_t size, WeightLoader& load);

}  // namespace longview::models
