// A document of LED: on its way through the encoder, then as the keys and values that every decoder
// layer makes of it once. Forks of a sequence share it.
//
// Masked tokens are left out of those: attention to a document has no positions, so nobody misses
// them.
// Belongs to the executor's thread.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "models/dense/scratch_keeper.h"
#include "models/led/context.h"
#include "models/longformer/piecewise_encoder.h"
#include "models/stack/pass_layout.h"

namespace longview::models {

class LedDocument final : public EncodedRows {
 public:
  // Borrows all but the document. `times` may be null.
  LedDocument(const LedContext& context, EncoderSequence document, ScratchKeeper& scratch,
              EncoderTimes* times);
  ~LedDocument() override;
  LedDocument(const LedDocument&) = delete;

  // Bytes of the closed form: keys, values, and what reading holds.
  static double Bytes(const LedContext& context, const EncoderSequence& document);
  // Scratch of reading all of it in one step.
  static size_t WorkspaceBytes(const LedContext& context, const EncoderSequence& document);

  int unencoded() const { return document_.tokens() - read_; }
  const StackDocument& keys() const { return keys_; }
  // [tokens, H] once it is read, if rows of it are wanted.
  std::span<const float> states() const { return states_; }

  // A step reads so many tokens more. RESOURCE_EXHAUSTED where memory was not reserved.
  absl::Status Begin(int tokens);
  // The next piece of that; sets whether work is left. Throws what LibTorch and the allocator
  // throw.
  absl::Status Advance(bool* more);

 private:
  void Take(int64_t first, int64_t count, const float* x, const std::byte* input) override;
  double LinearWork() const override;
  bool Hold(int64_t bytes);
  // Room for the next rows; their places in order.
  bool Append(std::span<const int32_t> ids, std::vector<kernels::CachePlace>& places);

  const LedContext& context_;
  const EncoderSequence document_;
  ScratchKeeper& scratch_;
  EncoderTimes* const times_;
  std::unique_ptr<PiecewiseEncoder> encoder_;  // While it is read.
  int64_t held_bytes_ = 0;                     // Of it, counted by the budget.
  kernels::CacheSequence cache_;
  StackDocument keys_;
  std::vector<float> states_;
  int read_ = 0;
  int64_t until_ = 0;  // Rows of the encoder.
  bool no_memory_ = false;
};

}  // namespace longview::models
