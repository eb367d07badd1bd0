// Attention through the cache's blocks, in every layer and on every instruction set, against
// softmax over the rows that the cache says it holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/span/paged_planner.h"
#include "tests/kernels/support/check.h"

namespace longview::kernels {
namespace {

using testing::NaiveRow;
using testing::Tensor;

constexpr int kLayers = 3, kHeads = 2, kDk = 32, kDv = 48, kWindow = 100, kSegment = 16, kRank = 2;
constexpr float kScale = 0.3f;

CacheShape Shape(DType dtype) {
  CacheShape shape;
  shape.layers = kLayers;
  shape.kv_heads = kHeads;
  shape.Dk = kDk;
  shape.Dv = kDv;
  shape.dtype = dtype;
  shape.strips = {WindowStrip(kWindow), PageStrip(kSegment, kRank)};
  return shape;
}

class Attention {
 public:
  Attention(Isa isa, DType dtype)
      : isa_(isa),
        dtype_(dtype),
        budget_(1 << 30),
        cache_(ProjectionCache::Create(Shape(PanelDType(isa)), {}, &budget_)),
        step_(cache_.get()) {}

  CacheSequence New() { return CacheSequence(cache_.get()); }

  // Each sequence reads one token, whose row is compared in one layer after another.
  void Decode(const std::vector<CacheSequence*>& sequences) {
    for (CacheSequence* sequence : sequences) {
      const int32_t id = static_cast<int32_t>(random_() % 1000);
      ASSERT_TRUE(step_.Append(CacheStep::kDecode, sequence, {&id, 1}));
    }
    Write(CacheStep::kDecode);
    Attend(sequences, turn_++ % kLayers);
    step_.End();
  }

  void Prefill(CacheSequence* sequence, int tokens) {
    ASSERT_TRUE(step_.Append(CacheStep::kPrefill, sequence, std::vector<int32_t>(tokens, 5)));
    Write(CacheStep::kPrefill);
    step_.End();
  }

 private:
  void Write(CacheStep::Group group) {
    for (int strip = 0; strip < 2; ++strip) {
      const std::span<const CachePlace> places = step_.places(group, strip);
      for (int layer = 0; layer < kLayers; ++layer) {
        const int count = static_cast<int>(places.size());
        const Tensor k = Tensor::Random(count + 1, kHeads, kDk, &random_, dtype_);
        const Tensor v = Tensor::Random(count + 1, kHeads, kDv, &random_, dtype_);
        ProjectionCache::Rows rows;
        rows.k = k.data();
        rows.v = v.data();
        rows.dtype = dtype_;
        rows.k_row_stride = k.row_stride();
        rows.v_row_stride = v.row_stride();
        rows.k_head_stride = kDk;
        rows.v_head_stride = kDv;
        cache_->Write(strip, layer, places, rows, testing::Threads(3));
      }
    }
  }

  void Attend(const std::vector<CacheSequence*>& sequences, int layer) {
    PagedPattern pattern;
    pattern.heads = kHeads;
    pattern.window = kWindow;
    pattern.segment = kSegment;
    pattern.rank = kRank;
    pattern.tile_rows = TileRows(isa_);
    std::vector<PagedSequence> batch;
    for (size_t i = 0; i < sequences.size(); ++i) {
      PagedSequence& sequence = batch.emplace_back();
      sequence.query_row0 = static_cast<int32_t>(i);
      sequence.tokens = 1;
      sequence.start = static_cast<int32_t>(sequences[i]->tokens() - 1);
      sequence.first_block = step_.table(CacheStep::kDecode, 0).first_block[i];
    }
    const Tensor q = Tensor::Random(static_cast<int>(batch.size()), kHeads, kDk, &random_, dtype_);
    Tensor out(q.rows(), kHeads, kDv, dtype_);
    const Source sources[] = {cache_->PagedSource(1, layer, step_.table(CacheStep::kDecode, 1)),
                              cache_->PagedSource(0, layer, step_.table(CacheStep::kDecode, 0))};
    Call call = testing::MakeCall(q, &out, kScale);
    call.sources = sources;
    testing::RunChecked(PlanPaged(pattern, batch), call, isa_, 2);
    for (size_t i = 0; i < sequences.size(); ++i) {
      for (int h = 0; h < kHeads; ++h) {
        const std::vector<double> want = Expected(*sequences[i], layer, q, static_cast<int>(i), h);
        for (int d = 0; d < kDv; ++d) {
          ASSERT_NEAR(out.At(static_cast<int>(i), h, d), want[d],
                      2 * testing::Tolerance(isa_, dtype_))
              << "layer " << layer << " t " << batch[i].start;
        }
      }
    }
  }

  std::vector<double> Expected(const CacheSequence& sequence, int layer, const Tensor& q, int row,
                               int head) const {
    const int64_t t = sequence.tokens() - 1;
    NaiveRow naive;
    Tensor v(1, 1, kDv, DType::kFloat32);
    std::vector<float> k(kDk);
    std::vector<float> value(kDv);
    const auto add = [&](int strip, int64_t slot) {
      cache_->ReadRow(sequence, strip, layer, slot, head, k.data(), value.data());
      double score = 0;
      for (int d = 0; d < kDk; ++d) score += double{q.At(row, head, d)} * k[d];
      for (int d = 0; d < kDv; ++d) v.SetAt(0, 0, d, value[d]);
      naive.Add(kScale * score, v, 0, 0);
    };
    for (int64_t slot = 0; slot < t / kSegment * kRank; ++slot) add(1, slot);
    for (int64_t p = std::max<int64_t>(0, t - kWindow + 1); p <= t; ++p) add(0, p);
    return naive.Finish(kDv);
  }

  const Isa isa_;
  const DType dtype_;  // Type of queries and output; blocks have the variant's type.
  std::mt19937 random_{11};
  CacheBudget budget_;
  std::unique_ptr<ProjectionCache> cache_;
  CacheStep step_;
  int turn_ = 0;
};

TEST(CacheAttention, ForksOfDifferentLengthsInOneBatch) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const Isa isa : testing::IsasToTest(dtype)) {
      SCOPED_TRACE(IsaName(isa));
      Attention attention(isa, dtype);
      CacheSequence first = attention.New();
      attention.Prefill(&first, 250);
      CacheSequence young = attention.New();
      attention.Decode({&young});
      CacheSequence second = first.Fork();
      for (int i = 0; i < 20; ++i) attention.Decode({&second, &young, &first});
      CacheSequence third = second.Fork();
      for (int i = 0; i < 70; ++i) attention.Decode({&first, &third, &young, &second});
    }
  }
}

}  // namespace
}  // namespace longview::kernels
