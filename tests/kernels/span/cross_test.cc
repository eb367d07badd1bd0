// Attention to encoded documents in cached blocks, by the definition; a document's rows in any
// batch.
#include "kernels/span/cross_planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/kernels/support/check.h"
#include "tests/kernels/support/pages.h"

namespace longview::kernels {
namespace {

using testing::NaiveRow;
using testing::PageTable;
using testing::Tensor;

constexpr int kHeads = 2;
constexpr int kDim = 24;
constexpr float kScale = 0.2f;

// Documents whose keys lie in blocks handed out in random order.
struct Library {
  Library(const std::vector<int>& keys, DType panels) : k(0, kHeads, kDim), v(k) {
    std::mt19937 random(5);
    int rows = 0, blocks = 0;
    for (const int count : keys) {
      first_row.push_back(rows);
      rows += count;
      blocks += (count + 63) / 64;
    }
    k = Tensor::Random(rows, kHeads, kDim, &random);
    v = Tensor::Random(rows, kHeads, kDim, &random);
    pages = std::make_unique<PageTable>(panels, kDim, kDim, kHeads, blocks, &random);
    for (size_t d = 0; d < keys.size(); ++d) pages->Add(k, v, first_row[d], 0, keys[d]);
  }

  Tensor k, v;
  std::unique_ptr<PageTable> pages;
  std::vector<int> first_row;
};

Tensor Attend(const Library& library, const Tensor& q, const std::vector<CrossDocument>& batch,
              Isa isa) {
  Tensor out(q.rows(), kHeads, kDim);
  Call call = testing::MakeCall(q, &out, kScale);
  const Source source = library.pages->AsSource();
  call.sources = std::span(&source, 1);
  testing::RunChecked(PlanCross(kHeads, TileRows(isa), batch), call, isa, 2);
  return out;
}

TEST(CrossTest, EveryQuerySeesItsDocument) {
  const std::vector<int> keys = {130, 1, 4100};
  const std::vector<CrossDocument> batch = {{0, 4, keys[0]}, {4, 1, keys[1]}, {5, 70, keys[2]}};
  std::mt19937 random(8);
  const Tensor q = Tensor::Random(75, kHeads, kDim, &random);
  for (const Isa isa : testing::IsasToTest(DType::kFloat32)) {
    SCOPED_TRACE(IsaName(isa));
    const Library library(keys, PanelDType(isa));
    const Tensor out = Attend(library, q, batch, isa);
    for (size_t d = 0; d < batch.size(); ++d) {
      for (int i = 0; i < batch[d].queries; ++i) {
        const int row = batch[d].query_row0 + i, head = i % kHeads;
        NaiveRow naive;
        for (int j = 0; j < keys[d]; ++j) {
          const int key = library.first_row[d] + j;
          naive.Add(kScale * Dot(q, row, head, library.k, key, head), library.v, key, head);
        }
        const std::vector<double> want = naive.Finish(kDim);
        for (int c = 0; c < kDim; ++c) {
          ASSERT_NEAR(out.At(row, head, c), want[c], testing::Tolerance(isa, DType::kFloat32));
        }
      }
    }
  }
}

TEST(CrossTest, RowsAloneHaveTheBitsOfRowsAmongBatchMates) {
  const std::vector<int> keys = {4200, 90};
  std::mt19937 random(9);
  const Tensor q = Tensor::Random(9, kHeads, kDim, &random);
  for (const Isa isa : testing::IsasToTest(DType::kFloat32)) {
    SCOPED_TRACE(IsaName(isa));
    const Library library(keys, PanelDType(isa));
    const Tensor together = Attend(library, q, {{0, 7, keys[0]}, {7, 2, keys[1]}}, isa);
    for (int row = 0; row < 7; ++row) {
      const Tensor alone = Attend(library, q.Slice(row, 1), {{0, 1, keys[0]}}, isa);
      EXPECT_EQ(0, std::memcmp(alone.data(), together.Slice(row, 1).data(),
                               alone.elements() * sizeof(float)))
          << row;
    }
  }
}

}  // namespace
}  // namespace longview::kernels
