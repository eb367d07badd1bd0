// A decode step of Transformer-LS on a device: the next token of each of some sequences through all
// layers, over a projection cache that lies in the device's memory. What the host's pass does
// (models/transformer_ls/pass.h), in either schedule, as work handed to one stream: nothing waits
// and nothing is allocated.
//
// A row's bits depend on its sequence alone: products are RowProducts, attention is cut at places
// of the sequence (span/decode_plan.h).
//
// One thread at a time, the stream's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/cuda/plugin_api.h"
#include "kernels/cuda/token/decode_lists.h"
#include "kernels/cuda/token/decode_room.h"
#include "kernels/cuda/token/decode_shape.h"

namespace longview::kernels::cuda {

class DecodeStep {
 public:
  // Borrows everything but `tokens` until Run; `tokens` in the order of their
  // Append(CacheStep::kDecode) in `step`.
  // REQUIRES: the cache has BlockForm::kRows, elements of the shape's dtype, the schedule's strips
  // (schedule_strips.h), and sums of state_columns() columns and two values of `dim`.
  DecodeStep(const DecodeShape& shape, const DecodeWeights& weights, const ProjectionCache& cache,
             const CacheStep& step, std::span<const DecodeToken> tokens);

  const DecodeRoom& room() const { return planned_.room; }
  // Bytes of a step's lists, which the host writes and the device reads, and of the device's
  // buffers.
  static size_t ListBytes(const DecodeShape& shape, const CacheShape& cache,
                          const DecodeRoom& room);
  static size_t BufferBytes(const DecodeShape& shape, const DecodeRoom& room);

  // Writes the lists to `host`; the caller has them copied to `device` before they are read.
  void WriteLists(std::byte* host, std::byte* device);

  // Hands the step to the stream, behind the lists.
  // REQUIRES: WriteLists; 64-byte aligned memory.
  Status Run(const PluginApi& api, Stream* stream, std::byte* buffers) const;

  // Where in `buffers` it leaves the logits, [room().rows, vocab], the tokens' first.
  const float* Logits(std::byte* buffers) const;

 private:
  struct Buffers;
  class Runner;

  static Buffers CarveBuffers(const DecodeShape& shape, const DecodeRoom& room, std::byte* memory,
                              size_t* bytes);
  const DecodeShape shape_;
  const DecodeWeights& weights_;
  const ProjectionCache& cache_;
  const CacheStep& step_;
  const std::vector<DecodeToken> tokens_;
  const DecodePlan planned_;
  std::byte* lists_ = nullptr;  // On the device.
};

}  // namespace longview::kernels::cuda
