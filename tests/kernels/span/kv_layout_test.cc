#include "kernels/span/kv_layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "kernels/span/tile_kernel.h"
#include "tests/kernels/support/pages.h"

namespace longview::kernels {
namespace {

using testing::Tensor;

TEST(KvLayoutTest, ElementsArePackedAsTheKernelsReadThem) {
  const KvLayout floats(DType::kFloat32, 20, 33, 2);
  EXPECT_EQ(floats.padded_dk(), 32);
  EXPECT_EQ(floats.padded_dv(), 48);
  EXPECT_EQ(floats.k_block_bytes(), 64u * 32 * 4);
  EXPECT_EQ(floats.KElement(0, 3), 3u * 16);  // 16 keys side by side.
  EXPECT_EQ(floats.KElement(17, 3), 32u * 16 + 3 * 16 + 1);
  EXPECT_EQ(floats.VElement(5, 7), 5u * 48 + 7);
  EXPECT_EQ(floats.KBlock(3, 1), 7 * floats.k_block_bytes());
  const KvLayout halves(DType::kBFloat16, 20, 33, 1);
  EXPECT_EQ(halves.padded_dk(), 32);
  EXPECT_EQ(halves.padded_dv(), 64);
  EXPECT_EQ(halves.KElement(1, 5), 2u * 32 + 2 + 1);  // Pair 2 of d, key 1, odd half.
  EXPECT_EQ(halves.VElement(35, 18), 32u * 64 + 512 + 1 * 32 + 2 * 2 + 1);
}

TEST(KvLayoutTest, EveryElementHasAPlaceOfItsOwn) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const auto& [Dk, Dv] : {std::pair{1, 128}, {64, 64}, {33, 17}, {128, 1}}) {
      const KvLayout layout(dtype, Dk, Dv, 1);
      std::set<size_t> k, v;
      for (int slot = 0; slot < kBlockSlots; ++slot) {
        for (int d = 0; d < layout.padded_dk(); ++d) k.insert(layout.KElement(slot, d));
        for (int d = 0; d < layout.padded_dv(); ++d) v.insert(layout.VElement(slot, d));
      }
      EXPECT_EQ(k.size() * SizeOf(dtype), layout.k_block_bytes());
      EXPECT_EQ(v.size() * SizeOf(dtype), layout.v_block_bytes());
      EXPECT_EQ((*k.rbegin() + 1) * SizeOf(dtype), layout.k_block_bytes());
      EXPECT_EQ((*v.rbegin() + 1) * SizeOf(dtype), layout.v_block_bytes());
    }
  }
}

TEST(KvLayoutTest, PackedRowsReadBackAndTheRestIsZero) {
  std::mt19937 random(3);
  for (const DType to : {DType::kFloat32, DType::kBFloat16}) {
    for (const DType from : {DType::kFloat32, DType::kBFloat16}) {
      const Tensor k = Tensor::Random(100, 1, 19, &random, from);
      const Tensor v = Tensor::Random(100, 1, 70, &random, from);
      const KvLayout layout(to, 19, 70, 1);
      std::vector<int32_t> rows(kBlockSlots, -1);
      for (int i = 0; i < 40; ++i) rows[i] = 99 - 2 * i;
      std::vector<std::byte> k_block(layout.k_block_bytes(), std::byte{0xff});
      std::vector<std::byte> v_block(layout.v_block_bytes(), std::byte{0xff});
      PackBlockPortable({&layout, k.data(), v.data(), from, k.row_stride(), v.row_stride(),
                         rows.data(), k_block.data(), v_block.data()});
      const auto want = [&](const Tensor& tensor, int slot, int d) {
        if (rows[slot] < 0 || d >= tensor.dim()) return 0.0f;
        const float value = tensor.At(rows[slot], 0, d);
        return to == DType::kFloat32 ? value : BFloat16ToFloat(FloatToBFloat16(value));
      };
      for (int slot = 0; slot < kBlockSlots; ++slot) {
        for (int d = 0; d < layout.padded_dk(); ++d) {
          ASSERT_EQ(layout.ReadK(k_block.data(), slot, d), want(k, slot, d));
        }
        for (int d = 0; d < layout.padded_dv(); ++d) {
          ASSERT_EQ(layout.ReadV(v_block.data(), slot, d), want(v, slot, d));
        }
      }
    }
  }
}

TEST(KvLayoutTest, EveryVariantPacksAsThePortablePacker) {
  std::mt19937 random(12);
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmxBf16}) {
    const TileKernel* kernel = FindTileKernel(isa);
    if (!IsaSupported(isa) || kernel->pack == nullptr) {
      std::printf("%s: skipped, %s\n", IsaName(isa).data(),
                  IsaSupported(isa) ? "uses the portable packer" : "this CPU cannot run it");
      continue;
    }
    for (const DType from : {DType::kFloat32, DType::kBFloat16}) {
      for (const auto& [Dk, Dv] : {std::pair{1, 128}, {64, 64}, {33, 17}, {128, 1}, {16, 48}}) {
        const Tensor k = Tensor::Random(80, 1, Dk, &random, from);
        const Tensor v = Tensor::Random(80, 1, Dv, &random, from);
        const KvLayout layout(kernel->panels, Dk, Dv, 1);
        std::vector<int32_t> rows(kBlockSlots);
        for (int i = 0; i < kBlockSlots; ++i) rows[i] = i % 7 == 3 ? -1 : 79 - i;
        const auto pack = [&](void (*function)(const PackBlock&)) {
          std::vector<std::byte> bytes(layout.k_block_bytes() + layout.v_block_bytes() + 64);
          void* block = bytes.data();
          size_t space = bytes.size();
          std::align(64, 1, block, space);
          std::byte* k_block = static_cast<std::byte*>(block);
          std::memset(k_block, 0xff, layout.k_block_bytes() + layout.v_block_bytes());
          function({&layout, k.data(), v.data(), from, k.row_stride(), v.row_stride(), rows.data(),
                    k_block, k_block + layout.k_block_bytes()});
          return std::vector<std::byte>(k_block,
                                        k_block + layout.k_block_bytes() + layout.v_block_bytes());
        };
        EXPECT_EQ(pack(kernel->pack), pack(PackBlockPortable))
            << IsaName(isa) << " " << Dk << " " << Dv;
      }
    }
  }
}

TEST(KvLayoutTest, CopiedBlocksAreWhole) {
  const KvLayout layout(DType::kFloat32, 8, 8, 3);
  std::vector<std::byte> k(layout.KBlock(4, 0)), v(layout.VBlock(4, 0));
  for (size_t i = 0; i < k.size(); ++i) k[i] = std::byte(i * 7 + i / 256);
  for (size_t i = 0; i < v.size(); ++i) v[i] = std::byte(i * 11 + i / 256);
  const std::vector<std::byte> before = k;
  layout.CopyBlock(k.data(), v.data(), 2, 0);
  const size_t bytes = layout.KBlock(1, 0);
  EXPECT_EQ(0, std::memcmp(k.data(), before.data() + 2 * bytes, bytes));
  EXPECT_EQ(0, std::memcmp(k.data() + bytes, before.data() + bytes, 3 * bytes));
  EXPECT_EQ(0, std::memcmp(v.data(), v.data() + 2 * layout.VBlock(1, 0), layout.VBlock(1, 0)));
}

}  // namespace
}  // namespace longview::kernels
