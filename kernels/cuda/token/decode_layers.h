// The launches of a decode step that do not depend on the cache: embedding, products, norms,
// the feed-forward layers, logits. Between Project and Finish of a layer the caller stores what is
// kept of a token and attends to it.
//
// A row's bits depend on that row alone. One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/plugin_api.h"
#include "kernels/cuda/span/plan_image.h"
#include "kernels/cuda/span/span_call.h"
#include "kernels/cuda/token/array_carver.h"
#include "kernels/cuda/token/decode_shape.h"

namespace longview::kernels::cuda {

// The device's memory of a step's rows. "T" is an element of the shape's dtype.
struct DecodeRows {
  float* x;          // [rows, width]
  std::byte* input;  // T [rows, width], x rounded
  std::byte* y;      // T [rows, projected], and every other product of width columns
  std::byte* keys;   // T [rows, width]
  std::byte* values;
  float* scores;       // [rows, columns]
  std::byte* z;        // T [rows, width], of attention
  std::byte* wide;     // T [rows, intermediate]
  std::byte* rounded;  // T [rows, vocab]
  float* logits;       // [rows, vocab]
};

DecodeRows CarveDecodeRows(const DecodeShape& shape, int32_t rows, ArrayCarver& take);

// The calls of one step, in order. After a failure the rest is left out.
class DecodeLayers {
 public:
  // Borrows all but the numbers.
  DecodeLayers(const DecodeShape& shape, const DecodeWeights& weights, const PluginApi& api,
               Stream* stream, const DecodeRows& buffers, int32_t rows)
      : shape_(shape), weights_(weights), api_(api), stream_(stream), b_(buffers), rows_(rows) {}

  // ids: [rows].
  void Embed(const int32_t* ids);
  // Queries with key, value and scores of segments into y, normed keys and values beside.
  void Project(int layer);
  // This token's normed key and value. places: [rows].
  void Store(const CacheRows& cache, const CacheRowPlace* places);
  // A call of y's queries into z; sources and tables are the caller's to add.
  SpanCall Queries() const;
  // The call over the plan at `image`; `partials` holds PartialBytes of the capacity's slots.
  void Attend(SpanCall call, const PlanCapacity& capacity, const std::byte* image,
              std::byte* partials);
  void Finish(int layer);
  void Logits();

  // Any other call of the step.
  template <typename Args>
  void Do(Status (*call)(Stream*, const Args&), const std::type_identity_t<Args>& args) {
    if (status_ == 0) status_ = call(stream_, args);
  }

  // y = x W^T: x [rows, in], y [rows, out].
  void Multiply(const std::byte* x, int32_t rows, const DecodeLinear& linear, int32_t in,
                int32_t out, std::byte* y);

  Status status() const { return status_; }

 private:
  void Follow(const std::byte* y, const float* bias, const RowNorm& norm);

  const DecodeShape& shape_;
  const DecodeWeights& weights_;
  const PluginApi& api_;
  Stream* const stream_;
  const DecodeRows& b_;
  const int32_t rows_;
  Status status_ = 0;
};

}  // namespace longview::kernels::cuda
