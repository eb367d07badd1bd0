// A generating model as its family brings it to ForwardDecoder: sizes, weights, a forward.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/projection_cache.h"
#include "models/dense/compute.h"
#include "models/dense/weight_format.h"
#include "models/generation/passes/token_forward.h"
#include "models/layers/compute_context.h"
#include "models/ops/weight_placer.h"

namespace longview::models {

class SourceModel;

// Place and caches of a forward. Borrowed.
struct TokenFrame {
  Compute compute = Compute::kFp32;
  int tile_rows = 0;                              // Queries of a tile of attention.
  kernels::ProjectionCache* cache = nullptr;      // Null while a forward is counted.
  kernels::ProjectionCache* documents = nullptr;  // With an encoder: what is kept of documents.
};

// Constant once loaded.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  virtual const char* family() const = 0;  // Begins messages.
  virtual int vocab() const = 0;
  // Prefill is granted in multiples of so many tokens (ModelInfo::prefill_alignment).
  virtual int prefill_alignment() const { return static_cast<int>(kernels::kBlockSlots); }
  // Multiples of it are crossed by no run of a pass; 0: none.
  virtual int64_t boundary() const { return 0; }
  // Lengths of texts at which a pass may need more memory than at the longest.
  virtual std::vector<int> ends() const { return {}; }
  // The position of a text of up to `max_tokens` where a decode step needs most memory.
  virtual int64_t CostliestPosition(int max_tokens) const { return max_tokens - 1; }
  virtual kernels::CacheShape Shape(kernels::DType blocks) const = 0;
  // Whether what a prompt left in the cache is found again by prompts with the same beginning.
  virtual bool finds_prompts() const { return source() == nullptr; }
  // The encoder that reads documents; null: there is none.
  virtual const SourceModel* source() const { return nullptr; }

  // How it computes on the host.
  virtual ComputeContext Host(Compute compute, const kernels::ParallelFor& pool) const {
    return {compute, pool};
  }
  // Once on the host (`store` null); for a device as DecoderPlacement::Load. Errors name the
  // tensor.
  virtual absl::Status Load(std::optional<WeightFormat> format, DeviceStore* store) = 0;
  // Once, behind Load: makes what follows from the weights. Blocks of the cache are of this type;
  // `host` outlives the model's use. Throws what LibTorch and the allocator throw.
  virtual void Loaded(const ComputeContext& /*host*/, kernels::DType /*blocks*/) {}
  virtual double parameters() const = 0;
  virtual double memory_bytes() const = 0;  // On the host, but for TableBytes.
  // Tables on the host for texts of up to so many tokens, made when the first of them is read.
  virtual double TableBytes(int64_t /*tokens*/) const { return 0; }

  // With up to `logit_rows` rows of logits at a time. The model and what `frame` points to outlive
  // the forward.
  virtual std::unique_ptr<TokenForward> Forward(const TokenFrame& frame, std::vector<TokenRun> runs,
                                                int64_t logit_rows) const = 0;
};

}  // namespace longview::models
