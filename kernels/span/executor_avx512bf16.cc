// bfloat16 kernel for AVX512-BF16: 6 rows x 64 keys in 24 registers of float sums, two
// products per lane and instruction.
#include "kernels/span/simd_bf16.h"

namespace longview::kernels {
namespace {
constexpr int kWidth = 4;
}  // namespace
}  // namespace longview::kernels

#include "kernels/span/float_pack.h"
#include "kernels/span/group_products.h"

namespace longview::kernels {
namespace {

struct Bf16Ops {
  using Weights = Bf16Weights;
  static constexpr int kGroupRows = kGroup;
  static constexpr int kPanelStep = 1;
  static constexpr int kPanelBytes = 2;

  static void Scores(const TileState& t, const BlockWork& block, int row0, int rows, int first,
                     int panels) {
    const int words = t.dk / 2;
    GroupScores<PairProduct>(static_cast<const float*>(t.q) + row0 * words, rows, words,
                             reinterpret_cast<const float*>(block.k),
                             WordsTo(block.k, block.next_k), first, panels, t.s + row0 * kBlockKeys,
                             kBlockKeys);
  }

  // Values lie in chunks of 32 keys: [dv / 16][16 pairs of keys][16] words.
  static void Values(const TileState& t, const BlockWork& block, int row0, int rows, int key0,
                     int key1) {
    constexpr int kChunkWords = 16;
    const float* v = reinterpret_cast<const float*>(block.v);
    const int end = (key1 + 1) / 2;
    for (int word = key0 / 2; word < end;) {
      const int chunk = word / kChunkWords;
      const int stop = Least(end, (chunk + 1) * kChunkWords);
      const float* from = v + chunk * kChunkWords * t.dv + word % kChunkWords * 16;
      GroupValues<PairProduct>(t, row0, rows, t.s + row0 * kBlockKeys + word, from, stop - word,
                               {16, kChunkWords * 16}, WordsTo(block.v, block.next_v));
      word = stop;
    }
  }
};

}  // namespace

const VectorOps kAvx512Bf16Ops = {true,          AddBlock<Bf16Ops>, Dots,   PackBf16,
                                  PackFloatKeys, nullptr,           nullptr};

}  // namespace longview::kernels
