// Every instruction set against the reference on random plans, and what a row's bits may
// depend on.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/span/band_planner.h"
#include "kernels/span/tile_kernel.h"
#include "kernels/span/vector_kernel.h"
#include "tests/kernels/support/emulated_amx.h"
#include "tests/kernels/support/random_plan.h"
#include "tests/kernels/support/run.h"

namespace longview::kernels {
namespace {

using testing::MakeCall;
using testing::RandomCase;
using testing::RowsSource;
using testing::Tensor;

struct Variant {
  std::string name;
  TileKernel kernel;
};

// The kernels that this CPU runs for calls of `dtype`, and the AMX kernel with emulated tiles.
std::vector<Variant> Variants(DType dtype) {
  std::vector<Variant> variants;
  for (const Isa isa : testing::IsasToTest(dtype)) {
    if (isa != Isa::kScalar) variants.push_back({std::string(IsaName(isa)), *FindTileKernel(isa)});
  }
  if (dtype == DType::kBFloat16 && IsaSupported(Isa::kAvx512Bf16)) {
    variants.push_back(
        {"amx_emulated", VectorKernel<testing::kEmulatedAmxOps, DType::kBFloat16>(Isa::kAmxBf16)});
  }
  return variants;
}

void CheckAgainstReference(uint32_t seed, DType dtype, const std::vector<Variant>& variants) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  RandomCase random(seed, dtype);
  Tensor want(random.rows(), random.heads(), random.Dv(), dtype);
  testing::RunChecked(random.plan(), random.CallFor(DType::kFloat32, &want), Isa::kScalar);
  for (const Variant& variant : variants) {
    SCOPED_TRACE(variant.name);
    Tensor got(random.rows(), random.heads(), random.Dv(), dtype);
    // Rows that no kernel writes would keep this value.
    for (size_t i = 0; i < got.elements(); ++i) got.Set(i, 1e30f);
    testing::RunCheckedWith(variant.kernel, random.plan(),
                            random.CallFor(variant.kernel.panels, &got), 2);
    for (size_t i = 0; i < want.elements(); ++i) {
      ASSERT_NEAR(got.Get(i), want.Get(i), testing::Tolerance(variant.kernel.isa, dtype))
          << "element " << i;
    }
  }
}

TEST(KernelFuzzTest, RandomPlansInFloat) {
  const std::vector<Variant> variants = Variants(DType::kFloat32);
  for (uint32_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    CheckAgainstReference(seed, DType::kFloat32, variants);
  }
}

TEST(KernelFuzzTest, RandomPlansInBFloat16) {
  const std::vector<Variant> variants = Variants(DType::kBFloat16);
  for (uint32_t seed = 1000; seed < 1060 && !HasFailure(); ++seed) {
    CheckAgainstReference(seed, DType::kBFloat16, variants);
  }
}

// A band with globals and holes over `tokens` rows that start at `row0` of q, k and v.
Tensor RunBand(const Variant& variant, const Tensor& q, const Tensor& k, const Tensor& v, int row0,
               int tokens, int tile_rows, int threads) {
  std::vector<uint8_t> roles(tokens, kLocalToken);
  roles[0] = roles[tokens / 2] = kGlobalToken;
  for (int i = tokens / 3; i < tokens / 3 + 70; ++i) roles[i] = kMaskedToken;
  BandSequence other;
  other.tokens = row0;
  BandSequence sequence;
  sequence.row0 = sequence.query_row0 = row0;
  sequence.tokens = tokens;
  sequence.roles = roles;
  BandPattern pattern;
  pattern.heads = q.heads();
  pattern.window_left = 90;
  pattern.window_right = 75;
  pattern.tile_rows = tile_rows;
  std::vector<BandSequence> batch;
  if (row0 > 0) batch.push_back(other);
  batch.push_back(sequence);
  const Plan plan = PlanBand(pattern, batch);
  Tensor out(q.rows(), q.heads(), v.dim(), q.dtype());
  Call call = MakeCall(q, &out, 0.3f);
  const std::vector<Source> sources(plan.sources.size(), RowsSource(k, v));
  call.sources = sources;
  testing::RunCheckedWith(variant.kernel, plan, call, threads);
  return out.Slice(row0, tokens);
}

bool SameBits(const Tensor& a, const Tensor& b) {
  const size_t bytes = a.elements() * SizeOf(a.dtype());
  return a.elements() == b.elements() && std::memcmp(a.data(), b.data(), bytes) == 0;
}

// Neither the tile cut, nor the threads, nor what else is in the batch shows in a row's bits.
TEST(KernelBitsTest, DependOnTheSequenceAlone) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    std::mt19937 random(17);
    constexpr int kTokens = 333, kOther = 131, kHeads = 2;
    const Tensor q = Tensor::Random(kOther + kTokens, kHeads, 40, &random, dtype, 3.0f);
    const Tensor k = Tensor::Random(kOther + kTokens, kHeads, 40, &random, dtype);
    const Tensor v = Tensor::Random(kOther + kTokens, kHeads, 72, &random, dtype);
    const Tensor alone_q = q.Slice(kOther, kTokens), alone_k = k.Slice(kOther, kTokens),
                 alone_v = v.Slice(kOther, kTokens);
    for (const Variant& variant : Variants(dtype)) {
      SCOPED_TRACE(variant.name);
      const Tensor want = RunBand(variant, alone_q, alone_k, alone_v, 0, kTokens, 48, 1);
      for (const int tile_rows : {1, 5, 6, 7, 16, 33, 64}) {
        EXPECT_TRUE(
            SameBits(want, RunBand(variant, alone_q, alone_k, alone_v, 0, kTokens, tile_rows, 1)))
            << tile_rows << " rows per tile";
      }
      EXPECT_TRUE(SameBits(want, RunBand(variant, q, k, v, kOther, kTokens, 48, 3)))
          << "in a batch";
    }
  }
}

// Fresh rows and cache blocks hold the same panels.
TEST(KernelBitsTest, PackingWritesWhatKvLayoutWrites) {
  for (const DType from : {DType::kFloat32, DType::kBFloat16}) {
    for (const Variant& variant : Variants(DType::kBFloat16)) {
      for (const auto& [Dk, Dv] :
           {std::pair<int, int>{64, 64}, {1, 128}, {33, 7}, {100, 48}, {128, 17}}) {
        SCOPED_TRACE(variant.name + " " + std::to_string(Dk) + " " + std::to_string(Dv));
        std::mt19937 random(Dk);
        const Tensor k = Tensor::Random(80, 1, Dk, &random, from);
        const Tensor v = Tensor::Random(80, 1, Dv, &random, from);
        const KvLayout layout(variant.kernel.panels, Dk, Dv, 1);
        std::vector<std::byte> blocks[2];
        for (auto& block : blocks) {
          block.assign(layout.k_block_bytes() + layout.v_block_bytes(), std::byte{0xff});
        }
        std::vector<int32_t> rows(kBlockSlots, -1);
        for (int i = 3; i < kBlockSlots; ++i) rows[i] = i % 9 == 0 ? -1 : 79 - i;
        PackBlock request;
        request.layout = &layout;
        request.k = k.data();
        request.v = v.data();
        request.from = from;
        request.k_row_stride = Dk;
        request.v_row_stride = Dv;
        request.rows = rows.data();
        request.k_block = blocks[0].data();
        request.v_block = blocks[0].data() + layout.k_block_bytes();
        variant.kernel.pack(request);
        request.k_block = blocks[1].data();
        request.v_block = blocks[1].data() + layout.k_block_bytes();
        PackBlockPortable(request);
        EXPECT_EQ(blocks[0], blocks[1]);
      }
    }
  }
}

}  // namespace
}  // namespace longview::kernels
