#include "models/encoder/grouped_batch.h"

#include <algorithm>
#include <utility>

namespace longview::models {

std::vector<SequenceGroup> GroupSequences(EncoderPass::Sequences sequences, int64_t tokens) {
  std::vector<SequenceGroup> groups;
  int64_t rows = 0;
  for (int i = 0; i < static_cast<int>(sequences.size()); ++i) {
    const int64_t more = sequences[static_cast<size_t>(i)]->tokens();
    if (groups.empty() || rows + more > tokens) {
      groups.push_back({i, i});
      rows = 0;
    }
    groups.back().end = i + 1;
    rows += more;
  }
  return groups;
}

EncoderCost CostOfGroups(const EncoderFamily& family, const ComputeContext& context,
                         EncoderPass::Sequences sequences, std::span<const SequenceGroup> groups) {
  EncoderCost cost;
  int64_t rows = 0;
  for (const SequenceGroup& group : groups) {
    const auto part = sequences.subspan(static_cast<size_t>(group.begin),
                                        static_cast<size_t>(group.end - group.begin));
    const auto pass = family.MakePass(context.compute, part, context.tile_rows());
    const ForwardCount count = CountOnHost(*pass, context);
    cost.work += count.work;
    cost.workspace_bytes =
        std::max(cost.workspace_bytes, count.need.memory() + count.need.transient);
    for (const EncoderSequence* sequence : part) {
      rows += static_cast<int64_t>(sequence->wanted.size()) + family.ExtraRows(*sequence);
    }
  }
  if (groups.size() > 1) {
    cost.workspace_bytes += static_cast<size_t>(rows * family.facts().width) * sizeof(float);
  }
  return cost;
}

GroupedBatch::GroupedBatch(const EncoderFamily& family, const ComputeContext& context,
                           EncoderPass::Sequences sequences, std::vector<SequenceGroup> groups,
                           ScratchPool& scratch, RunTimes* times)
    : family_(family),
      context_(context),
      sequences_(sequences.begin(), sequences.end()),
      groups_(std::move(groups)),
      scratch_(scratch),
      times_(times),
      dropped_(sequences.size()),
      kept_(sequences.size()) {}

bool GroupedBatch::Advance() {
  if (group_ == groups_.size()) return false;
  if (!pass_) BeginGroup();
  if (!pass_->Advance()) EndGroup();
  return group_ < groups_.size();
}

void GroupedBatch::BeginGroup() {
  const SequenceGroup& group = groups_[group_];
  const auto part =
      std::span(sequences_)
          .subspan(static_cast<size_t>(group.begin), static_cast<size_t>(group.end - group.begin));
  pass_.emplace(family_.MakePass(context_.compute, part, context_.tile_rows()), context_, scratch_,
                times_);
  for (int i = group.begin; i < group.end; ++i) {
    if (dropped_[static_cast<size_t>(i)]) pass_->Drop(i - group.begin);
  }
}

void GroupedBatch::EndGroup() {
  const SequenceGroup& group = groups_[group_++];
  const auto width = static_cast<size_t>(family_.facts().width);
  for (int i = group.begin; i < group.end; ++i) {
    const auto index = static_cast<size_t>(i);
    if (dropped_[index]) continue;
    const float* const wanted = pass_->Rows(i - group.begin);
    kept_[index].wanted.assign(wanted, wanted + sequences_[index]->wanted.size() * width);
    const auto extra = static_cast<size_t>(family_.ExtraRows(*sequences_[index]));
    if (extra == 0) continue;
    const float* const rows = pass_->Extra(i - group.begin).rows;
    kept_[index].extra.assign(rows, rows + extra * width);
  }
  pass_.reset();
}

void GroupedBatch::Drop(int i) {
  dropped_[static_cast<size_t>(i)] = true;
  if (!pass_) return;
  const SequenceGroup& group = groups_[group_];
  if (i >= group.begin && i < group.end) pass_->Drop(i - group.begin);
}

const float* GroupedBatch::Rows(int i) const { return kept_[static_cast<size_t>(i)].wanted.data(); }

ExtraRowsView GroupedBatch::Extra(int i) const {
  const std::vector<float>& extra = kept_[static_cast<size_t>(i)].extra;
  return {extra.data(), static_cast<int64_t>(extra.size()) / family_.facts().width};
}

}  // namespace longview::models
