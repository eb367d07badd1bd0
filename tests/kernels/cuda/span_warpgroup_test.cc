// Properties of the Hopper forward that results do not show: pieces and boxes agree where an
// element lies, and keys come as boxes where they can.
#include <gtest/gtest.h>

#include <random>
#include <span>
#include <vector>

#include "kernels/cuda/span/swizzled_tile.h"
#include "kernels/span/full_planner.h"
#include "tests/kernels/cuda/support/device_case.h"
#include "tests/kernels/cuda/support/emulated_span.h"
#include "tests/kernels/support/tensors.h"

namespace longview::kernels::cuda {
namespace {

using kernels::testing::MakeCall;
using kernels::testing::RowsSource;
using kernels::testing::Tensor;
using testing::DeviceCase;
using testing::EmulatedBoxes;
using testing::Strides;

TEST(SwizzledTileTest, EveryPieceHasAPlaceInOtherBanksThanItsColumn) {
  std::vector<int> used(2 * kPanelBytes / 16);
  for (int column = 0; column < 2 * kPanelColumns; column += 8) {
    for (int row0 = 0; row0 < kBlockSlots; row0 += kSwizzleRows) {
      uint32_t banks = 0;  // Banks of 16 bytes.
      for (int row = row0; row < row0 + kSwizzleRows; ++row) {
        const int at = SwizzledPiece(row, column);
        ++used[at / 16];
        banks |= 1u << at / 16 % 8;
        // A row stays within its 128 bytes.
        EXPECT_EQ(at / kPanelRowBytes, column / kPanelColumns * kBlockSlots + row);
      }
      EXPECT_EQ(banks, 0xffu);
    }
  }
  for (const int times : used) EXPECT_EQ(times, 1);
}

TEST(SwizzledTileTest, DescriptorsNameEveryAddressOfABlock) {
  constexpr uint32_t kLast = 227 * 1024 - 16;
  EXPECT_EQ(MatrixDescriptor(kLast, 16, 1024),
            (uint64_t{1} << 62) | (uint64_t{64} << 32) | (uint64_t{1} << 16) | kLast / 16);
}

// Boxes that `tokens` keys ask for when each of 64 rows sees all of them.
int64_t BoxesFor(int tokens, int dim, Strides strides) {
  constexpr int kHeads = 2;
  std::mt19937 random(3);
  const Tensor q = Tensor::Random(64, kHeads, dim, &random);
  const Tensor k = Tensor::Random(tokens, kHeads, dim, &random);
  FullPattern pattern;
  pattern.heads = kHeads;
  pattern.tile_rows = 64;
  const FullSequence sequence{0, 64, 0, tokens, {}, 0, 0};
  const Plan plan = PlanFull(pattern, std::span(&sequence, 1));
  Tensor out(64, kHeads, dim);
  Call call = MakeCall(q, &out, 0.1f);
  const Source source = RowsSource(k, k);
  call.sources = std::span(&source, 1);
  const auto devices = testing::TestDevices();
  DeviceCase on_device(plan, call, Element::kFloat16, 64, strides, CapacityOf(plan),
                       devices.front().get());
  const int64_t before = EmulatedBoxes();
  on_device.Run(SpanKernel::kWarpgroups);
  return (EmulatedBoxes() - before) / kHeads;
}

TEST(SpanWarpgroupTest, WholeBlocksComeAsBoxes) {
  // A box for each 64 columns of keys and of values.
  EXPECT_EQ(BoxesFor(256, 64, Strides::kNatural), 4 * 2);
  EXPECT_EQ(BoxesFor(256, 128, Strides::kNatural), 4 * 4);
  EXPECT_EQ(BoxesFor(255, 40, Strides::kNatural), 3 * 2);  // The last block is not whole.
  EXPECT_EQ(BoxesFor(256, 40, Strides::kOdd), 0);          // No row starts at 16 bytes.
}

}  // namespace
}  // namespace longview::kernels::cuda
