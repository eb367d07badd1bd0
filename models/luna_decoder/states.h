// What generating sequences of one Luna model remember: the running sums of every layer, of one
// size however long the text is. A state is a block of a counted pool: a fork shares it, and who
// reads on copies it first while others hold it.
//
// Used by the executor's thread, while other threads may use other caches of the budget's memory;
// the budget's counters may be read from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "kernels/cache/block_pool.h"
#include "kernels/cache/cache_budget.h"
#include "models/generation/decoder.h"
#include "models/luna_decoder/config.h"

namespace longview::models {

class LunaDocument;  // document.h

class LunaStates final : private kernels::CacheBudget::Member {
 public:
  // Null: no address space for the budget's bytes. The budget outlives the states.
  static std::unique_ptr<LunaStates> Create(const LunaDecoderConfig& config,
                                            kernels::CacheBudget* budget);
  ~LunaStates() override;  // REQUIRES: no sequence is left.

  // Memory of one sequence that has read something.
  static int64_t StateBytes(const LunaDecoderConfig& config);

  // Gives `block` to one owner: a zeroed one for -1, a copy of a shared one. False: no memory.
  bool Own(int32_t& block);
  // One owner more, one less. -1: nothing.
  void Share(int32_t block);
  void Drop(int32_t block);

  // Sums of one layer, kernels::OuterStateFloats.
  float* Layer(int32_t block, int layer) const {
    return reinterpret_cast<float*>(pool_->part(0, block)) + layer * layer_floats_;
  }

 private:
  LunaStates(const LunaDecoderConfig& config, kernels::CacheBudget* budget);

  // Nothing is kept for later: all memory is a sequence's, or idle.
  void ReleaseIdle(int64_t bytes) override { pool_->ReleaseIdle(bytes); }
  uint64_t OldestEvictable() const override { return kernels::CacheBudget::kNever; }
  void EvictOldest() override {}

  const int64_t layer_floats_;
  const size_t used_bytes_;  // Of a block, what is beyond is padding.
  kernels::CacheBudget* const budget_;
  std::unique_ptr<kernels::BlockPool> pool_;
};

// Must not outlive its states.
class LunaSequence final : public DecoderSequence {
 public:
  // `document`: of a translation model.
  explicit LunaSequence(LunaStates* states, std::shared_ptr<LunaDocument> document = nullptr)
      : states_(states), document_(std::move(document)) {}
  ~LunaSequence() override;
  LunaSequence(const LunaSequence&) = delete;
  LunaSequence& operator=(const LunaSequence&) = delete;

  int tokens() const override { return tokens_; }
  std::unique_ptr<DecoderSequence> Fork() const override;
  // A prompt's state is found by its document alone: nothing is kept for later requests.
  void Publish(uint64_t) override {}

  int unencoded() const override;
  std::span<const float> encoder_states() const override;

  LunaDocument* document() const { return document_.get(); }

  // Makes the state this sequence's own, to be read on. False: no memory.
  bool Own() { return states_->Own(block_); }
  float* state(int layer) const { return states_->Layer(block_, layer); }
  void Read(int tokens) { tokens_ += tokens; }

 private:
  LunaStates* const states_;
  const std::shared_ptr<LunaDocument> document_;  // Shared by forks.
  int32_t block_ = -1;                            // -1: nothing read.
  int tokens_ = 0;
};

}  // namespace longview::models
