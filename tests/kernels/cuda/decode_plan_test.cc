// Cutting a plan into a decode step's pieces changes no answer, only where sums are kept.
#include "kernels/cuda/span/decode_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/cuda/span/launch_shape.h"
#include "kernels/span/paged_planner.h"
#include "tests/kernels/cuda/support/device_case.h"
#include "tests/kernels/support/pages.h"
#include "tests/kernels/support/random_plan.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels::cuda {
namespace {

using kernels::testing::MakeCall;
using kernels::testing::Pages;
using kernels::testing::RandomCase;
using kernels::testing::Tensor;
using testing::DeviceCase;
using testing::Strides;

// No span of a paged source crosses a multiple of a piece.
void CheckPieces(const Plan& plan) {
  for (const Tile& tile : plan.tiles) {
    for (int s = tile.span0; s < tile.span0 + tile.spans; ++s) {
      const Span& span = plan.spans[s];
      if (plan.sources[span.source].slots > 0) continue;
      EXPECT_EQ(span.key0 / kDecodePiece, (span.key0 + span.keys - 1) / kDecodePiece);
    }
  }
}

TEST(DecodePlanTest, RandomPlansGiveTheSameRows) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomCase random(seed, DType::kFloat32);
    Tensor want(random.rows(), random.heads(), random.Dv());
    Tensor got(random.rows(), random.heads(), random.Dv());
    kernels::testing::RunChecked(random.plan(), random.CallFor(DType::kFloat32, &want),
                                 Isa::kScalar);
    const Plan cut = CutForDecode(random.plan());
    CheckPieces(cut);
    EXPECT_EQ(cut.useful, random.plan().useful);
    kernels::testing::RunChecked(cut, random.CallFor(DType::kFloat32, &got), Isa::kScalar);
    for (size_t i = 0; i < want.elements(); ++i) ASSERT_NEAR(got.Get(i), want.Get(i), 4e-6) << i;
  }
}

constexpr int kHeads = 2, kDim = 64, kWindow = 100, kSegment = 4;

// A step of sequences with `lengths` tokens: a window of pages and one projected key per segment.
struct Step {
  explicit Step(const std::vector<int>& lengths)
      : window(DType::kFloat32, kDim, kDim, kHeads, 64),
        pages(DType::kFloat32, kDim, kDim, kHeads, 64),
        q(0, 1, 1) {
    std::mt19937 random(3);
    q = Tensor::Random(static_cast<int>(lengths.size()), kHeads, kDim, &random);
    for (const int length : lengths) Add(length, static_cast<int>(batch.size()));
  }

  // Keys are a function of the length and position, so that a sequence is the same in any batch.
  void Add(int length, int index) {
    std::mt19937 random(length);
    const int t = length - 1;
    const int first = std::max(0, t - kWindow + 1) / kBlockSlots;
    const Tensor k = Tensor::Random(length, kHeads, kDim, &random);
    const Tensor v = Tensor::Random(length, kHeads, kDim, &random);
    window_offset.push_back(static_cast<int32_t>(window_table.size()));
    for (int b = first; b <= t / kBlockSlots; ++b) window_table.push_back(used++);
    for (int p = first * kBlockSlots; p <= t; ++p) {
      window.Write(window_table[window_offset.back() + p / kBlockSlots - first], p % kBlockSlots, k,
                   v, p);
    }
    page_offset.push_back(static_cast<int32_t>(page_table.size()));
    const int projected = t / kSegment;
    for (int b = 0; b * kBlockSlots < projected; ++b) page_table.push_back(used_pages++);
    for (int j = 0; j < projected; ++j) {
      pages.Write(page_table[page_offset.back() + j / kBlockSlots], j % kBlockSlots, v, k, j);
    }
    const Tensor own = Tensor::Random(1, kHeads, kDim, &random);
    for (int h = 0; h < kHeads; ++h) {
      for (int d = 0; d < kDim; ++d) q.SetAt(index, h, d, own.At(0, h, d));
    }
    PagedSequence sequence;
    sequence.query_row0 = index;
    sequence.tokens = 1;
    sequence.start = t;
    sequence.first_block = first;
    batch.push_back(sequence);
  }

  Plan MakePlan() const {
    PagedPattern pattern;
    pattern.heads = kHeads;
    pattern.window = kWindow;
    pattern.segment = kSegment;
    pattern.rank = 1;
    pattern.tile_rows = kDeviceTileRows;
    return PlanPaged(pattern, batch);
  }

  std::vector<Source> Sources() const {
    std::vector<Source> sources = {pages.AsSource(Layout::kPaged), window.AsSource(Layout::kPaged)};
    sources[0].block_table = page_table.data();
    sources[0].seq_offset = page_offset.data();
    sources[1].block_table = window_table.data();
    sources[1].seq_offset = window_offset.data();
    return sources;
  }

  Pages window, pages;
  Tensor q;
  std::vector<PagedSequence> batch;
  std::vector<int32_t> window_table, window_offset, page_table, page_offset;
  int used = 0, used_pages = 0;
};

std::vector<uint32_t> RunStep(const std::vector<int>& lengths, testing::TestDevice* device,
                              std::vector<float>* values = nullptr) {
  const Step step(lengths);
  const Plan plan = CutForDecode(step.MakePlan());
  const int rows = static_cast<int>(lengths.size());
  Tensor out(rows, kHeads, kDim);
  Call call = MakeCall(step.q, &out, 0.125f);
  const std::vector<Source> sources = step.Sources();
  call.sources = sources;
  DeviceCase on_device(plan, call, Element::kFloat16, rows, Strides::kPieces,
                       RoundedUp(CapacityOf(plan)), device);
  on_device.Run(SpanKernel::kRows);
  if (values != nullptr) *values = on_device.Output();
  return on_device.Bits();
}

TEST(DecodePlanTest, StepsEqualTheCpusAndDependOnTheirSequenceAlone) {
  const std::vector<int> lengths = {2600, 1, 70, 2051, 100};
  const Step step(lengths);
  Tensor want(static_cast<int>(lengths.size()), kHeads, kDim);
  Call call = MakeCall(step.q, &want, 0.125f);
  const std::vector<Source> sources = step.Sources();
  call.sources = sources;
  const Plan plan = step.MakePlan();
  kernels::testing::RunChecked(plan, call, Isa::kScalar);
  EXPECT_GT(CutForDecode(plan).merges.size(), 0u);
  for (const auto& device : testing::TestDevices()) {
    SCOPED_TRACE(device->name());
    std::vector<float> values;
    const std::vector<uint32_t> together = RunStep(lengths, device.get(), &values);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], want.Get(i), 4e-3) << i;
    for (size_t s = 0; s < lengths.size(); ++s) {
      const std::vector<uint32_t> alone = RunStep({lengths[s]}, device.get());
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + s * alone.size()))
          << lengths[s] << " tokens";
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
