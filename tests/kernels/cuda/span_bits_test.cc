// A row's bits on a device depend on its sequence alone: not on the batch, on how rows are cut into
// tiles, or on pieces that see nothing. Exact on every device, emulated ones included.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/cuda/span/launch_shape.h"
#include "kernels/span/band_planner.h"
#include "kernels/span/full_planner.h"
#include "kernels/span/paged_planner.h"
#include "tests/kernels/cuda/support/device_case.h"
#include "tests/kernels/support/tensors.h"

namespace longview::kernels::cuda {
namespace {

using kernels::testing::MakeCall;
using kernels::testing::RowsSource;
using kernels::testing::Tensor;
using testing::DeviceCase;
using testing::Strides;
using testing::TestDevice;

constexpr int kOther = 131, kTokens = 333, kHeads = 2, kDim = 40, kValueDim = 56;

struct Tensors {
  Tensor q, k, v;
};

Tensors MakeTensors(int rows) {
  std::mt19937 random(17);
  return {Tensor::Random(rows, kHeads, kDim, &random, DType::kFloat32, 2.0f),
          Tensor::Random(rows, kHeads, kDim, &random),
          Tensor::Random(rows, kHeads, kValueDim, &random)};
}

// A kernel and what it computes in.
struct Way {
  Element element;
  SpanKernel kernel = SpanKernel::kTiles;
};

// The ways of a device.
std::vector<Way> WaysOf(const TestDevice& device) {
  std::vector<Way> ways = {{Element::kFloat32}, {Element::kBFloat16}, {Element::kFloat16}};
  if (device.Runs(SpanKernel::kWarpgroups)) {
    ways.push_back({Element::kBFloat16, SpanKernel::kWarpgroups});
    ways.push_back({Element::kFloat16, SpanKernel::kWarpgroups});
  }
  return ways;
}
std::string Name(const TestDevice& device, const Way& way) {
  return device.name() + " element " + std::to_string(static_cast<int>(way.element)) + " kernel " +
         std::to_string(static_cast<int>(way.kernel));
}

std::vector<uint32_t> RunOn(TestDevice* device, const Plan& plan, const Tensors& tensors,
                            const Way& way, Strides strides = Strides::kPieces) {
  Tensor out(tensors.q.rows(), kHeads, kValueDim);
  Call call = MakeCall(tensors.q, &out, 0.3f);
  const std::vector<Source> sources(plan.sources.size(), RowsSource(tensors.k, tensors.v));
  call.sources = sources;
  DeviceCase on_device(plan, call, way.element, tensors.q.rows(), strides, CapacityOf(plan),
                       device);
  on_device.Run(way.kernel);
  return on_device.Bits();
}

// A band over `kTokens` rows from `row0` on, behind another document if row0 > 0.
Plan MakeBand(int row0, int tile_rows, const std::vector<int32_t>& dilation) {
  static const std::vector<uint8_t> roles = [] {
    std::vector<uint8_t> made(kTokens, kLocalToken);
    made[0] = made[kTokens / 2] = kGlobalToken;
    std::fill_n(made.begin() + kTokens / 3, 70, kMaskedToken);
    return made;
  }();
  BandPattern pattern;
  pattern.heads = kHeads;
  pattern.window_left = 90;
  pattern.window_right = 75;
  pattern.dilation = dilation;
  pattern.tile_rows = tile_rows;
  std::vector<BandSequence> batch;
  if (row0 > 0) {
    batch.push_back({});
    batch.back().tokens = row0;
  }
  BandSequence sequence;
  sequence.row0 = sequence.query_row0 = row0;
  sequence.tokens = kTokens;
  sequence.roles = roles;
  batch.push_back(sequence);
  return PlanBand(pattern, batch);
}

// Rows of global tokens are written by whoever's tile ends there; nobody reads them.
bool IsLocal(int token) { return token != 0 && token != kTokens / 2; }

TEST(SpanBitsTest, BandsDependOnTheirSequenceAlone) {
  const Tensors together = MakeTensors(kOther + kTokens);
  const Tensors alone = {together.q.Slice(kOther, kTokens), together.k.Slice(kOther, kTokens),
                         together.v.Slice(kOther, kTokens)};
  constexpr int kRow = kHeads * kValueDim;
  for (const auto& device : testing::TestDevices()) {
    for (const Way& way : WaysOf(*device)) {
      for (const std::vector<int32_t>& dilation :
           {std::vector<int32_t>{}, std::vector<int32_t>{1, 3}}) {
        SCOPED_TRACE(Name(*device, way) + (dilation.empty() ? "" : " dilated"));
        const std::vector<uint32_t> want =
            RunOn(device.get(), MakeBand(0, kDeviceTileRows, dilation), alone, way);
        const auto expect_same = [&](const std::vector<uint32_t>& got, int row0) {
          for (int token = 0; token < kTokens; ++token) {
            if (!IsLocal(token)) continue;
            ASSERT_TRUE(std::equal(want.begin() + token * kRow, want.begin() + (token + 1) * kRow,
                                   got.begin() + (row0 + token) * kRow))
                << "token " << token;
          }
        };
        for (const int tile_rows : {7, 33}) {
          SCOPED_TRACE(std::to_string(tile_rows) + " rows per tile");
          expect_same(RunOn(device.get(), MakeBand(0, tile_rows, dilation), alone, way), 0);
        }
        expect_same(RunOn(device.get(), MakeBand(kOther, kDeviceTileRows, dilation), together, way),
                    kOther);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Keys come as boxes, piece by piece or element by element, as strides allow.
TEST(SpanBitsTest, HowKeysComeChangesNoBit) {
  const Tensors tensors = MakeTensors(kTokens);
  const Plan plan = MakeBand(0, kDeviceTileRows, {});
  for (const auto& device : testing::TestDevices()) {
    for (const Way& way : WaysOf(*device)) {
      SCOPED_TRACE(Name(*device, way));
      const std::vector<uint32_t> boxes = RunOn(device.get(), plan, tensors, way);
      EXPECT_EQ(RunOn(device.get(), plan, tensors, way, Strides::kOdd), boxes);
    }
  }
}

// A Transformer-LS window with its relative positions: how products with the table are rounded must
// not depend on where tiles end either.
TEST(SpanBitsTest, DottedRowsDependOnTheirSequenceAlone) {
  std::mt19937 random(5);
  const int lengths[] = {75, 200};
  const int rows = lengths[0] + lengths[1];
  const Tensors tensors = {Tensor::Random(rows, kHeads, kDim, &random),
                           Tensor::Random(rows, kHeads, kDim, &random),
                           Tensor::Random(rows, kHeads, kValueDim, &random)};
  PagedPattern pattern;
  pattern.heads = kHeads;
  pattern.window = 90;
  pattern.fresh = true;
  pattern.window_table = 0;
  const Tensor table_rows = Tensor::Random(pattern.window, kHeads, kDim, &random);
  Table table;
  table.data = table_rows.data();
  table.entries = table_rows.rows();
  table.head_stride = kDim;
  table.entry_stride = table_rows.row_stride();
  const std::vector<PagedSequence> batch = {{0, lengths[0], 0, 0, 0},
                                            {lengths[0], lengths[1], 0, 0, lengths[0]}};
  const std::vector<int32_t> no_blocks(2, 0);
  Source cached;
  cached.layout = Layout::kPaged;
  cached.kv_heads = kHeads;
  cached.block_table = cached.seq_offset = no_blocks.data();
  const std::vector<Source> sources = {cached, RowsSource(tensors.k, tensors.v)};
  for (const auto& device : testing::TestDevices()) {
    for (const Element element : {Element::kFloat32, Element::kBFloat16, Element::kFloat16}) {
      SCOPED_TRACE(device->name() + " " + std::to_string(static_cast<int>(element)));
      const auto run = [&](std::span<const PagedSequence> sequences, int tile_rows) {
        pattern.tile_rows = tile_rows;
        const Plan plan = PlanPaged(pattern, sequences);
        Tensor out(rows, kHeads, kValueDim);
        Call call = MakeCall(tensors.q, &out, 0.2f);
        call.sources = sources;
        call.tables = std::span(&table, 1);
        DeviceCase on_device(plan, call, element, rows, Strides::kPieces, CapacityOf(plan),
                             device.get());
        on_device.Run(SpanKernel::kTiles);
        return on_device.Bits();
      };
      const std::vector<uint32_t> together = run(batch, kDeviceTileRows);
      const size_t begin = size_t{75} * kHeads * kValueDim;
      for (const int tile_rows : {5, 33, kDeviceTileRows}) {
        const std::vector<uint32_t> second = run(std::span(batch).subspan(1), tile_rows);
        EXPECT_TRUE(std::equal(together.begin() + begin, together.end(), second.begin() + begin))
            << tile_rows << " rows per tile";
      }
    }
  }
}

// Splitting calls: pieces are a property of the document, and merging one piece changes nothing.
TEST(SpanBitsTest, PiecesAreAPropertyOfTheDocument) {
  const int lengths[] = {60, kSplitSlots + 300};
  std::mt19937 random(21);
  const int rows = lengths[0] + lengths[1];
  const Tensors tensors = {Tensor::Random(6, kHeads, kDim, &random),
                           Tensor::Random(rows, kHeads, kDim, &random),
                           Tensor::Random(rows, kHeads, kValueDim, &random)};
  const std::vector<FullSequence> batch = {{0, 2, 0, lengths[0], {}, 0, 0},
                                           {2, 4, lengths[0], lengths[1], {}, 0, 0}};
  FullPattern pattern;
  pattern.heads = kHeads;
  pattern.tile_rows = kDeviceTileRows;
  for (const auto& device : testing::TestDevices()) {
    for (const Way& way : WaysOf(*device)) {
      SCOPED_TRACE(Name(*device, way));
      const auto run = [&](std::span<const FullSequence> sequences, bool split, int tile_rows) {
        FullPattern wanted = pattern;
        wanted.split = split;
        wanted.tile_rows = tile_rows;
        return RunOn(device.get(), PlanFull(wanted, sequences), tensors, way);
      };
      const std::vector<uint32_t> together = run(batch, true, kDeviceTileRows);
      const std::vector<uint32_t> second = run(std::span(batch).subspan(1), true, 3);
      const size_t begin = size_t{2} * kHeads * kValueDim;
      EXPECT_TRUE(std::equal(together.begin() + begin, together.end(), second.begin() + begin));
      // The short document fits one piece: with or without merging, the same bits.
      const std::vector<uint32_t> whole =
          run(std::span(batch).subspan(0, 1), false, kDeviceTileRows);
      EXPECT_TRUE(std::equal(together.begin(), together.begin() + begin, whole.begin()));
    }
  }
}

}  // namespace
}  // namespace longview::kernels::cuda
