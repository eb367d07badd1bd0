// Sequences of the projection cache: what they store, what they share, what they cost.
#include "kernels/cache/projection_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/cache/driver.h"

namespace longview::kernels {
namespace {

using testing::Driver;
using testing::SmallShape;
using testing::Text;

constexpr int64_t kPlenty = int64_t{1} << 30;

struct Case {
  int window, segment, rank;
  BlockForm form = BlockForm::kPanels;
};

// Published; segments across blocks; every position; no pages; a segment per token; odd ones.
const Case kCases[] = {{512, 16, 1},
                       {100, 48, 3},
                       {0, 16, 1},
                       {130, 1, 0},
                       {64, 1, 1},
                       {1, 7, 2},
                       {0, 1, 0},
                       {65, 80, 5},
                       // In memory that the host cannot read.
                       {512, 16, 1, BlockForm::kRows},
                       {100, 48, 3, BlockForm::kRows},
                       {130, 1, 0, BlockForm::kRows},
                       {1, 7, 2, BlockForm::kRows}};

class Shapes : public ::testing::TestWithParam<Case> {
 protected:
  static CacheShape Shape(DType dtype = DType::kFloat32) {
    CacheShape shape = SmallShape(GetParam().window, GetParam().segment, GetParam().rank, dtype);
    shape.form = GetParam().form;
    return shape;
  }
};

INSTANTIATE_TEST_SUITE_P(All, Shapes, ::testing::ValuesIn(kCases));

TEST_P(Shapes, RowsReadBackTokenByToken) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    CacheBudget budget(kPlenty);
    Driver driver(Shape(dtype), &budget);
    CacheSequence sequence = driver.New();
    const std::vector<int32_t> text = Text(400);
    for (int n = 0; n < 400; ++n) {
      driver.Decode(&sequence, std::span(text).subspan(n, 1));
      if (n % 37 == 0 || n % 64 < 2) driver.Check(sequence);
    }
    driver.Check(sequence);
  }
}

TEST_P(Shapes, ChunksOfPrefillStoreTheSameRows) {
  for (const int chunk : {64, 192, 256, 1024}) {
    CacheBudget budget(kPlenty);
    Driver driver(Shape(), &budget);
    CacheSequence sequence = driver.New();
    driver.Prefill(&sequence, Text(1000), chunk);
    driver.Check(sequence);
    driver.Decode(&sequence, Text(70, 1));
    driver.Check(sequence);
  }
}

TEST_P(Shapes, PrefillGoesOnInsideABlock) {
  CacheBudget budget(kPlenty);
  Driver driver(Shape(), &budget);
  CacheSequence sequence = driver.New();
  const std::vector<int32_t> text = Text(2000);
  size_t read = 0;
  for (const size_t part : {200, 7, 1, 48, 64, 300, 65, 1315}) {
    driver.Continue(&sequence, std::span(text).subspan(read, part));
    read += part;
    driver.Check(sequence);
    ASSERT_EQ(budget.used(), driver.shape().SequenceBytes(0, static_cast<int64_t>(read), 1));
  }
  // All of it was made by prefill, so a lookup that promises equal bits finds it.
  sequence.CachePrefix();
  const int alignment = driver.shape().prefill_alignment();
  EXPECT_EQ(driver.cache()->Find(text, Reuse::kPrefillMade), 1999 / alignment * alignment);
}

TEST_P(Shapes, BytesAreTheClosedFormAtEveryLength) {
  CacheBudget budget(kPlenty);
  Driver driver(Shape(), &budget);
  CacheSequence decoded = driver.New();
  const std::vector<int32_t> text = Text(900);
  for (int n = 0; n < 900; ++n) {
    ASSERT_EQ(budget.used(), driver.shape().SequenceBytes(0, n, 1)) << n;
    driver.Decode(&decoded, std::span(text).subspan(n, 1));
  }
  decoded = CacheSequence();
  EXPECT_EQ(budget.used(), 0);
  for (int n = 1; n < 1300; n += 61) {
    CacheSequence prefilled = driver.New();
    driver.Prefill(&prefilled, Text(n), 192);
    ASSERT_EQ(budget.used(), driver.shape().SequenceBytes(0, n, 1)) << n;
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST_P(Shapes, BytesOfForksAreTheClosedForm) {
  for (const int shared : {1, 63, 64, 100, 640, 701}) {
    CacheBudget budget(kPlenty);
    Driver driver(Shape(), &budget);
    std::vector<CacheSequence> forks;
    forks.push_back(driver.New());
    driver.Prefill(&forks[0], Text(shared));
    for (int i = 1; i < 4; ++i) forks.push_back(forks[0].Fork());
    ASSERT_EQ(budget.used(), driver.shape().SequenceBytes(shared, shared, 4));
    for (int n = shared; n < shared + 300; ++n) {
      for (CacheSequence& fork : forks) {
        driver.Decode(&fork, Text(1, n));
        ASSERT_LE(budget.used(), driver.shape().SequenceBytes(shared, n + 1, 4));
      }
      ASSERT_EQ(budget.used(), driver.shape().SequenceBytes(shared, n + 1, 4))
          << shared << " " << n;
    }
    for (const CacheSequence& fork : forks) driver.Check(fork);
  }
}

// One fork runs ahead while the others wait: they never hold more than the closed form.
TEST_P(Shapes, ForksOutOfStepStayWithinTheClosedForm) {
  CacheBudget budget(kPlenty);
  Driver driver(Shape(), &budget);
  std::vector<CacheSequence> forks;
  forks.push_back(driver.New());
  driver.Prefill(&forks[0], Text(330));
  for (int i = 1; i < 3; ++i) forks.push_back(forks[0].Fork());
  const int64_t most = driver.shape().SequenceBytes(330, 1200, 3);
  for (size_t i = 0; i < forks.size(); ++i) {
    for (int n = 330; n < 1200; ++n) {
      driver.Decode(&forks[i], Text(1, static_cast<int>(10 * n + i)));
      ASSERT_LE(budget.used(), most);
    }
    for (const CacheSequence& fork : forks) driver.Check(fork);
  }
  EXPECT_EQ(budget.used(), most);
}

TEST_P(Shapes, AForkWritesIntoNobodysBlocks) {
  CacheBudget budget(kPlenty);
  Driver driver(Shape(), &budget);
  CacheSequence parent = driver.New();
  driver.Prefill(&parent, Text(150));
  for (int n = 0; n < 70; ++n) {
    CacheSequence left = parent.Fork();
    CacheSequence right = parent.Fork();
    driver.Decode(&left, Text(3, 100 + n));
    driver.Check(right);
    driver.Decode(&right, Text(3, 200 + n));
    driver.Check(left);
    driver.Check(parent);
    driver.Decode(&parent, Text(1, 300 + n));
    driver.Check(parent);
  }
}

// Beam search: hypotheses are forked and dropped at every step, and no block is copied that only
// one of them continues.
TEST(ProjectionCache, TheLastOwnerWritesInPlace) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(512, 16, 1), &budget);
  CacheSequence sequence = driver.New();
  driver.Prefill(&sequence, Text(100));
  const std::vector<int32_t> before = sequence.blocks(0).blocks;
  for (int n = 0; n < 20; ++n) {
    CacheSequence next = sequence.Fork();
    sequence = std::move(next);
    driver.Decode(&sequence, Text(1, n));
    EXPECT_EQ(sequence.blocks(0).blocks, before);
  }
  driver.Check(sequence);
}

TEST(ProjectionCache, AStepThatIsGivenUpLeavesNothing) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(100, 16, 1), &budget);
  {
    CacheSequence sequence = driver.New();
    driver.Prefill(&sequence, Text(512));
    CacheSequence fork = sequence.Fork();
    CacheStep step(driver.cache());
    ASSERT_TRUE(step.Append(CacheStep::kPrefill, &sequence, Text(256, 1)));
    sequence = CacheSequence();
    fork = CacheSequence();
    EXPECT_GT(budget.used(), 0);  // Bytes that the step may still read.
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(ProjectionCache, RefusesWhatDoesNotFit) {
  const CacheShape shape = SmallShape(128, 16, 1);
  CacheBudget budget(shape.SequenceBytes(0, 300, 1));
  ProjectionCache::Options options;
  const std::unique_ptr<ProjectionCache> cache = ProjectionCache::Create(shape, options, &budget);
  CacheSequence first(cache.get());
  CacheStep step(cache.get());
  ASSERT_TRUE(step.Append(CacheStep::kPrefill, &first, Text(300)));
  step.End();
  CacheSequence second(cache.get());
  EXPECT_FALSE(step.Append(CacheStep::kPrefill, &second, Text(300)));
  step.End();
  second = CacheSequence();
  EXPECT_EQ(budget.used(), shape.SequenceBytes(0, 300, 1));
  EXPECT_LE(budget.used() + budget.idle(), budget.capacity() + budget.headroom());
}

TEST(ProjectionCache, AsksAMemoryForAsMuchAsItSaid) {
  CacheShape shape = SmallShape(128, 16, 1);
  shape.form = BlockForm::kRows;
  testing::ApartMemory memory;
  ProjectionCache::Options options;
  options.step_tokens = 256;
  options.step_sequences = 3;
  options.memory = &memory;
  CacheBudget budget(shape.SequenceBytes(0, 3000, 2));
  const auto cache = ProjectionCache::Create(shape, options, &budget);
  const int64_t asked = ProjectionCache::MemoryBytes(shape, options, budget.capacity());
  EXPECT_EQ(static_cast<int64_t>(memory.reserved()), asked);
  EXPECT_GE(asked, budget.capacity());
}

// A block written anew in the step that dropped it must not be what the step still reads.
TEST(ProjectionCache, PrefillReadsTheWindowAsItWas) {
  CacheBudget budget(kPlenty);
  Driver driver(SmallShape(128, 16, 1), &budget);
  CacheSequence sequence = driver.New();
  driver.Prefill(&sequence, Text(640));
  const BlockList old = sequence.blocks(0);
  CacheStep step(driver.cache());
  ASSERT_TRUE(step.Append(CacheStep::kPrefill, &sequence, Text(512, 1)));
  const CacheTable& table = step.table(CacheStep::kPrefill, 0);
  ASSERT_EQ(table.blocks.size(), old.blocks.size());
  for (size_t i = 0; i < old.blocks.size(); ++i) {
    EXPECT_EQ(table.blocks[i], old.blocks[i] * driver.shape().layers);
  }
  EXPECT_EQ(table.first_block[0], old.first);
  CacheSequence other = driver.New();
  CacheStep another(driver.cache());
  ASSERT_TRUE(another.Append(CacheStep::kDecode, &other, Text(1)));
  EXPECT_EQ(std::ranges::count(old.blocks, other.blocks(0).blocks[0]), 0);
}

}  // namespace
}  // namespace longview::kernels
