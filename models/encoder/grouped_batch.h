// A batch on the host, group of documents by group: documents do not see each other, so that a
// large batch needs the memory of a part of it and what a layer writes is still in cache when the
// next one reads it.
//
// A group has enough rows to keep all threads busy. Answers do not depend on how a batch is
// grouped, as they never depend on the batch.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/encoder/batch.h"
#include "models/encoder/host_pass.h"
#include "models/encoder/placed_encoder.h"

namespace longview::models {

// Sequences [begin, end) of a batch.
struct SequenceGroup {
  int begin = 0;
  int end = 0;
};

// Cuts a batch: a group has at most `tokens` tokens, or one sequence.
inline constexpr int64_t kGroupTokens = 8192;
std::vector<SequenceGroup> GroupSequences(EncoderPass::Sequences sequences,
                                          int64_t tokens = kGroupTokens);

// The cost of all groups one after the other, whose wanted rows stay until the last one is done.
EncoderCost CostOfGroups(const EncoderFamily& family, const ComputeContext& context,
                         EncoderPass::Sequences sequences, std::span<const SequenceGroup> groups);

// Used by the executor's thread; throws what LibTorch and the allocator throw.
class GroupedBatch final : public EncoderBatch {
 public:
  // REQUIRES: family, context, the sequences and scratch outlive it. `times` may be null.
  GroupedBatch(const EncoderFamily& family, const ComputeContext& context,
               EncoderPass::Sequences sequences, std::vector<SequenceGroup> groups,
               ScratchPool& scratch, RunTimes* times);

  // A layer of one group.
  bool Advance() override;
  void Drop(int i) override;
  const float* Rows(int i) const override;
  ExtraRowsView Extra(int i) const override;

 private:
  // The results of a sequence; empty where it was dropped.
  struct Kept {
    std::vector<float> wanted, extra;
  };

  void BeginGroup();
  // Takes over the results of the current group and ends it.
  void EndGroup();

  const EncoderFamily& family_;
  const ComputeContext& context_;
  const std::vector<const EncoderSequence*> sequences_;
  const std::vector<SequenceGroup> groups_;
  ScratchPool& scratch_;
  RunTimes* const times_;
  size_t group_ = 0;              // The current one.
  std::optional<HostPass> pass_;  // The current group's, once it has begun.
  std::vector<bool> dropped_;     // By sequence.
  std::vector<Kept> kept_;        // By sequence.
};

}  // namespace longview::models
