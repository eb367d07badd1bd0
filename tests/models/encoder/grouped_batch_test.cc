// A batch that runs group by group: the same bits as in one, in less memory, whoever leaves.
#include "models/encoder/grouped_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "models/directory/model_directory.h"
#include "models/parallel.h"
#include "tests/models/encoder/encoder_case.h"

namespace longview::models {
namespace {

class GroupedBatchTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::vector<std::string> names = EncoderCase::Names(GetParam());
    ASSERT_FALSE(names.empty());
    const EncoderCase golden({GetParam(), names.front()});
    auto directory = OpenModelDirectory(golden.golden().directory());
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
    ASSERT_TRUE(OpenWeights(directory_).ok());
    auto family = golden.make()(directory_);
    ASSERT_TRUE(family.ok()) << family.status();
    family_ = *std::move(family);
    ASSERT_TRUE(family_->Load(Compute::kFp32, nullptr).ok());
    context_ = ComputeContext(Compute::kFp32, pool_);
    const int most = std::min(60, family_->facts().max_tokens);
    for (const int tokens : {most, 1, 17, most, 2, 33, most / 2}) Add(std::min(tokens, most));
  }

  void Add(int tokens) {
    EncoderSequence sequence;
    std::mt19937 random(static_cast<uint32_t>(sequences_.size()));
    const auto vocab = static_cast<uint32_t>(std::min(90, family_->facts().vocab));
    for (int t = 0; t < tokens; ++t) {
      sequence.ids.push_back(static_cast<int32_t>(4 + random() % (vocab - 4)));
    }
    sequence.roles.assign(sequence.ids.size(), kernels::kLocalToken);
    sequence.wanted.resize(sequence.ids.size());
    std::iota(sequence.wanted.begin(), sequence.wanted.end(), 0);
    ASSERT_TRUE(family_->Place("text", sequence).ok());
    sequence.positions.resize(sequence.ids.size());  // Families without a table leave them out.
    sequences_.push_back(std::move(sequence));
  }

  std::vector<const EncoderSequence*> Pointers() const {
    std::vector<const EncoderSequence*> pointers;
    for (const EncoderSequence& sequence : sequences_) pointers.push_back(&sequence);
    return pointers;
  }

  // Results of those that stay; `dropped` leaves before layer `before` of those that are run.
  std::vector<float> Run(int64_t tokens, int dropped, int before) {
    const std::vector<const EncoderSequence*> pointers = Pointers();
    GroupedBatch batch(*family_, context_, pointers, GroupSequences(pointers, tokens), scratch_,
                       nullptr);
    bool more = true;
    for (int step = 0; more; ++step) {
      if (step == before) batch.Drop(dropped);
      more = batch.Advance();
    }
    const auto width = static_cast<size_t>(family_->facts().width);
    std::vector<float> results;
    for (int i = 0; i < static_cast<int>(pointers.size()); ++i) {
      if (i == dropped && before >= 0) continue;
      const float* rows = batch.Rows(i);
      const size_t wanted = pointers[static_cast<size_t>(i)]->wanted.size();
      results.insert(results.end(), rows, rows + wanted * width);
      const ExtraRowsView extra = batch.Extra(i);
      EXPECT_EQ(extra.count, family_->ExtraRows(*pointers[static_cast<size_t>(i)]));
      if (extra.count == 0) continue;
      results.insert(results.end(), extra.rows,
                     extra.rows + static_cast<size_t>(extra.count) * width);
    }
    return results;
  }

  ModelDirectory directory_;
  std::unique_ptr<EncoderFamily> family_;
  const TorchParallelFor pool_;
  ComputeContext context_;
  ScratchPool scratch_;
  std::vector<EncoderSequence> sequences_;
};

constexpr int64_t kAll = 1 << 20;

TEST_P(GroupedBatchTest, HasTheBitsOfOneBatch) {
  const std::vector<float> want = Run(kAll, 0, -1);
  for (const int64_t tokens : {1, 50, 100}) {
    const std::vector<float> got = Run(tokens, 0, -1);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(got[i], want[i]) << i << " of " << got.size() << " " << tokens;
  }
}

TEST_P(GroupedBatchTest, GoesOnWithoutThoseThatLeave) {
  for (int dropped = 0; dropped < static_cast<int>(sequences_.size()); ++dropped) {
    const std::vector<float> want = Run(kAll, dropped, 0);
    for (const int before : {0, 1, 3, 8}) {
      EXPECT_EQ(Run(50, dropped, before), want) << dropped << " before " << before;
    }
  }
}

TEST_P(GroupedBatchTest, NeedsTheMemoryOfItsLargestGroup) {
  const std::vector<const EncoderSequence*> pointers = Pointers();
  const auto cost = [&](int64_t tokens) {
    return CostOfGroups(*family_, context_, pointers, GroupSequences(pointers, tokens));
  };
  EXPECT_LT(cost(60).workspace_bytes, cost(kAll).workspace_bytes);
  EXPECT_DOUBLE_EQ(cost(60).work.MultiplyAdds(), cost(kAll).work.MultiplyAdds());
}

INSTANTIATE_TEST_SUITE_P(, GroupedBatchTest, ::testing::ValuesIn(EncoderCase::Families()),
                         [](const auto& info) { return info.param; });

TEST(GroupSequencesTest, ClosesAGroupBeforeItIsTooLarge) {
  std::vector<EncoderSequence> documents(5);
  const int lengths[] = {3, 4, 9, 1, 1};
  std::vector<const EncoderSequence*> pointers;
  for (size_t i = 0; i < documents.size(); ++i) {
    documents[i].ids.resize(static_cast<size_t>(lengths[i]));
    pointers.push_back(&documents[i]);
  }
  std::vector<std::pair<int, int>> groups;
  for (const SequenceGroup& group : GroupSequences(pointers, 7)) {
    groups.emplace_back(group.begin, group.end);
  }
  EXPECT_EQ(groups, (std::vector<std::pair<int, int>>{{0, 2}, {2, 3}, {3, 5}}));
}

}  // namespace
}  // namespace longview::models
