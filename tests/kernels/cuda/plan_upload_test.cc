// Plans uploaded one after the other: each kernel reads the plan that was the last when it was
// handed to the stream, at addresses that the capacity decides.
#include "kernels/cuda/plan_upload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/kernels/cuda/support/test_device.h"
#include "tests/kernels/support/random_plan.h"

namespace longview::kernels::cuda {
namespace {

TEST(PlanUploadTest, TheLastPlanIsThere) {
  for (const auto& device : testing::TestDevices()) {
    SCOPED_TRACE(device->name());
    PlanCapacity capacity;
    std::vector<std::unique_ptr<kernels::testing::RandomCase>> cases;
    for (uint32_t seed = 0; seed < 6; ++seed) {
      cases.push_back(std::make_unique<kernels::testing::RandomCase>(seed, DType::kFloat32));
      const PlanCapacity need = CapacityOf(cases.back()->plan());
      capacity.tiles = std::max(capacity.tiles, need.tiles);
      capacity.spans = std::max(capacity.spans, need.spans);
      capacity.intervals = std::max(capacity.intervals, need.intervals);
      capacity.biases = std::max(capacity.biases, need.biases);
      capacity.items = std::max(capacity.items, need.items);
      capacity.merges = std::max(capacity.merges, need.merges);
      capacity.sources = std::max(capacity.sources, need.sources);
      capacity.slot_rows = std::max(capacity.slot_rows, need.slot_rows);
      capacity.valid_words = std::max(capacity.valid_words, need.valid_words);
      capacity.partial_slots = std::max(capacity.partial_slots, need.partial_slots);
    }
    PlanUpload upload(device->api(), 0);
    ASSERT_EQ(upload.Reserve(ImageBytes(capacity)), 0);
    const Tile* tiles = nullptr;
    for (const auto& random : cases) {
      const Plan& plan = random->plan();
      ASSERT_EQ(upload.Upload(device->stream(), plan, capacity), 0);
      const Tile* const at = upload.view().tiles;
      EXPECT_EQ(at, tiles == nullptr ? at : tiles);
      tiles = at;
      const PlanCounts counts = device->Download(upload.view().counts, 1)[0];
      EXPECT_EQ(counts.items, static_cast<int>(plan.items.size()));
      EXPECT_EQ(counts.merges, static_cast<int>(plan.merges.size()));
      const std::vector<Span> spans = device->Download(upload.view().spans, plan.spans.size());
      if (spans.empty()) continue;
      EXPECT_EQ(std::memcmp(spans.data(), plan.spans.data(), spans.size() * sizeof(Span)), 0);
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
