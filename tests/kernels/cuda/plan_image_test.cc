// Images hold what plans hold: every array, the rows of slots, and nothing beyond their bytes.
#include "kernels/cuda/span/plan_image.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/span/band_planner.h"
#include "kernels/span/kv_layout.h"
#include "tests/kernels/support/random_plan.h"

namespace longview::kernels::cuda {
namespace {

template <typename T>
void ExpectSame(const std::vector<T>& want, const T* got, const char* name) {
  if (want.empty()) return;
  EXPECT_EQ(std::memcmp(want.data(), got, want.size() * sizeof(T)), 0) << name;
}

void CheckImage(const Plan& plan, const PlanCapacity& capacity) {
  const size_t bytes = ImageBytes(capacity);
  constexpr size_t kCanary = 64;
  // Room as a device's memory is aligned, with a canary behind.
  std::vector<std::max_align_t> memory((bytes + kCanary) / sizeof(std::max_align_t) + 1);
  auto* image = reinterpret_cast<std::byte*>(memory.data());
  std::memset(image, 0xa5, bytes + kCanary);
  WriteImage(plan, capacity, image);
  for (size_t i = bytes; i < bytes + kCanary; ++i) ASSERT_EQ(image[i], std::byte{0xa5});
  const PlanView view = ViewImage(capacity, image);
  EXPECT_EQ(view.counts->tiles, static_cast<int>(plan.tiles.size()));
  EXPECT_EQ(view.counts->items, static_cast<int>(plan.items.size()));
  EXPECT_EQ(view.counts->merges, static_cast<int>(plan.merges.size()));
  ExpectSame(plan.tiles, view.tiles, "tiles");
  ExpectSame(plan.spans, view.spans, "spans");
  ExpectSame(plan.intervals, view.intervals, "intervals");
  ExpectSame(plan.biases, view.biases, "biases");
  ExpectSame(plan.items, view.items, "items");
  ExpectSame(plan.merges, view.merges, "merges");
  ExpectSame(plan.valid, view.valid, "valid");
  for (size_t s = 0; s < plan.sources.size(); ++s) {
    const SlotMap& map = plan.sources[s];
    EXPECT_EQ(view.sources[s].valid0, map.valid0);
    if (map.runs == 0) continue;
    for (int slot = 0; slot < map.slots; ++slot) {
      ASSERT_EQ(view.slot_rows[view.sources[s].slot_row0 + slot], SlotRow(plan, map, slot))
          << "source " << s << " slot " << slot;
    }
  }
}

TEST(PlanImageTest, HoldsRandomPlans) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const kernels::testing::RandomCase random(seed, DType::kFloat32);
    const PlanCapacity exact = CapacityOf(random.plan());
    CheckImage(random.plan(), exact);
    CheckImage(random.plan(), RoundedUp(exact));
  }
}

TEST(PlanImageTest, HoldsDilatedBandsWithGlobals) {
  std::vector<uint8_t> roles(300, kLocalToken);
  roles[0] = roles[250] = kGlobalToken;
  roles[17] = kMaskedToken;
  BandPattern pattern;
  pattern.heads = 3;
  pattern.window_left = pattern.window_right = 20;
  pattern.dilation = {1, 3, 3};
  std::vector<BandSequence> batch(2);
  batch[0].tokens = 300;
  batch[0].roles = roles;
  batch[1].row0 = batch[1].query_row0 = 300;
  batch[1].tokens = 77;
  const Plan plan = PlanBand(pattern, batch);
  CheckImage(plan, CapacityOf(plan));
}

TEST(PlanImageTest, AnEmptyPlanIsAnEmptyImage) {
  const Plan plan;
  CheckImage(plan, CapacityOf(plan));
  EXPECT_EQ(CapacityOf(plan), PlanCapacity{});
}

// A recorded graph keeps its addresses: they are a function of the capacity alone.
TEST(PlanImageTest, CapacitiesOfNeighbouringStepsAreOne) {
  PlanCapacity a, b;
  a.tiles = 33;
  a.spans = 100;
  b.tiles = 64;
  b.spans = 65;
  EXPECT_EQ(RoundedUp(a), RoundedUp(b));
  EXPECT_TRUE(Fits(a, RoundedUp(b)));
  EXPECT_FALSE(Fits(b, a));
  EXPECT_EQ(RoundedUp(RoundedUp(a)), RoundedUp(a));
  PlanCapacity none;
  EXPECT_EQ(RoundedUp(none), none);
}

}  // namespace
}  // namespace longview::kernels::cuda
