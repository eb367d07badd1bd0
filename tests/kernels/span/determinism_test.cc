// A row's bits: the same alone, in any batch, with any tile cut, on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>

#include "kernels/span/band_planner.h"
#include "kernels/span/chunk_grid_planner.h"
#include "kernels/span/full_planner.h"
#include "kernels/span/segment_planner.h"
#include "kernels/span/slice_planner.h"
#include "kernels/span/window_grid_planner.h"
#include "tests/kernels/support/check.h"

namespace longview::kernels {
namespace {

using testing::RowsSource;
using testing::Tensor;

constexpr int kHeads = 3;
constexpr int kDim = 40;
constexpr int kProjected = 5;  // Projected keys of a document, Transformer-LS.

// One document of a batch: where its rows start, which of the pool's documents it is.
struct Placed {
  int row0;
  int document;
};

struct Documents {
  std::vector<int> lengths;
  std::vector<std::vector<uint8_t>> roles;
  std::vector<Tensor> q, k, v, pk, pv;
};

Documents MakeDocuments(DType dtype) {
  Documents documents;
  std::mt19937 random(99);
  documents.lengths = {1, 47, 48, 64, 65, 130, 470};
  for (const int n : documents.lengths) {
    documents.roles.emplace_back(n, kLocalToken);
    for (int t = 0; t < n; t += 90) documents.roles.back()[t] = kGlobalToken;
    for (int t = 40; t < n; t += 77) documents.roles.back()[t] = kMaskedToken;
    for (auto* tensors : {&documents.q, &documents.k, &documents.v}) {
      tensors->push_back(Tensor::Random(n, kHeads, kDim, &random, dtype, 1.5f));
    }
    for (auto* tensors : {&documents.pk, &documents.pv}) {
      tensors->push_back(Tensor::Random(kProjected, kHeads, kDim, &random, dtype));
    }
  }
  return documents;
}

Tensor Joined(const std::vector<Tensor>& parts, const std::vector<Placed>& batch) {
  int rows = 0;
  for (const Placed& placed : batch) rows += parts[placed.document].rows();
  Tensor joined(rows, kHeads, kDim, parts[0].dtype());
  size_t at = 0;
  for (const Placed& placed : batch) {
    const Tensor& part = parts[placed.document];
    for (size_t i = 0; i < part.elements(); ++i) joined.Set(at++, part.Get(i));
  }
  return joined;
}

// Rows of the squarest map with n tokens: documents serve as images too.
int MapRows(int n) {
  int rows = 1;
  for (int r = 2; r * r <= n; ++r) {
    if (n % r == 0) rows = r;
  }
  return rows;
}

// How a family plans a batch; every source reads k and v except those listed as projected.
struct Family {
  const char* name;
  std::function<Plan(const Documents&, const std::vector<Placed>&, int tile_rows)> plan;
  int projected_source = -1;
};

using Batch = std::vector<Placed>;

Family Band(const char* name, std::vector<int32_t> dilation, int right) {
  const auto plan = [=](const Documents& documents, const Batch& batch, int tile_rows) {
    BandPattern pattern;
    pattern.heads = kHeads;
    pattern.window_left = 70;
    pattern.window_right = right;
    pattern.dilation = dilation;
    pattern.tile_rows = tile_rows;
    std::vector<BandSequence> sequences;
    for (const Placed& placed : batch) {
      sequences.push_back({placed.row0, documents.lengths[placed.document],
                           documents.roles[placed.document], nullptr, 0});
    }
    return PlanBand(pattern, sequences);
  };
  return {name, plan};
}

Family Chunks(const char* name, ChunkRule rule) {
  const auto plan = [=](const Documents& documents, const Batch& batch, int tile_rows) {
    ChunkPattern pattern;
    pattern.heads = kHeads;
    pattern.chunk = 7;
    pattern.rule = rule;
    pattern.tile_rows = tile_rows;
    std::vector<ChunkImage> images;
    for (const Placed& placed : batch) {
      const int n = documents.lengths[placed.document];
      images.push_back({placed.row0, MapRows(n), n / MapRows(n)});
    }
    return PlanChunkGrid(pattern, images).plan;
  };
  return {name, plan};
}

Plan PlanCausal(const Documents& documents, const Batch& batch, int tile_rows) {
  FullPattern pattern;
  pattern.heads = kHeads;
  pattern.causal = true;
  pattern.tile_rows = tile_rows;
  std::vector<FullSequence> sequences;
  for (const Placed& placed : batch) {
    const int n = documents.lengths[placed.document];
    sequences.push_back({placed.row0, n, placed.row0, n, {}, 0, 0});
  }
  return PlanFull(pattern, sequences);
}

Plan PlanText(const Documents& documents, const Batch& batch, int tile_rows) {
  std::vector<SegmentSequence> sequences;
  for (size_t s = 0; s < batch.size(); ++s) {
    const int n = documents.lengths[batch[s].document];
    sequences.push_back({batch[s].row0, n, static_cast<int>(s) * kProjected, kProjected, {}});
  }
  return PlanSegments({kHeads, 20, 10, tile_rows}, sequences);
}

Plan PlanLocalSlices(const Documents& documents, const Batch& batch, int tile_rows) {
  SlicePattern pattern;
  pattern.heads = kHeads;
  pattern.slice = 25;
  pattern.extension = 10;
  pattern.positions = false;
  pattern.tile_rows = tile_rows;
  std::vector<SliceSequence> sequences;
  for (const Placed& placed : batch) {
    sequences.push_back({placed.row0, documents.lengths[placed.document], {}});
  }
  return PlanSlices(pattern, sequences);
}

Plan PlanWindows(const Documents& documents, const Batch& batch, int tile_rows) {
  WindowGridPattern pattern;
  pattern.heads = kHeads;
  pattern.window = 4;
  pattern.extension = 2;
  pattern.tile_rows = tile_rows;
  std::vector<WindowImage> images;
  for (size_t s = 0; s < batch.size(); ++s) {
    const int n = documents.lengths[batch[s].document];
    images.push_back(
        {batch[s].row0, MapRows(n), n / MapRows(n), static_cast<int>(s) * kProjected, kProjected});
  }
  return PlanWindowGrid(pattern, images).plan;
}

std::vector<Family> Families() {
  return {Band("band", {}, 70),
          Band("causal band", {}, 0),
          Band("dilated band", {1, 3, 3}, 70),
          Chunks("chunks", ChunkRule::kChunks),
          Chunks("exact chunks", ChunkRule::kExact),
          {"causal", PlanCausal},
          {"segments", PlanText, 0},
          {"slices", PlanLocalSlices},
          {"window grids", PlanWindows, 1}};
}

Tensor RunBatch(const Family& family, const Documents& documents, std::vector<int> order, Isa isa,
                int tile_rows, int threads) {
  std::vector<Placed> batch;
  int rows = 0;
  for (const int document : order) {
    batch.push_back({rows, document});
    rows += documents.lengths[document];
  }
  const Tensor q = Joined(documents.q, batch);
  const Tensor k = Joined(documents.k, batch);
  const Tensor v = Joined(documents.v, batch);
  const Tensor pk = Joined(documents.pk, batch);
  const Tensor pv = Joined(documents.pv, batch);
  Tensor out(rows, kHeads, kDim, q.dtype());
  const Plan plan = family.plan(documents, batch, tile_rows);
  Call call = testing::MakeCall(q, &out, 0.16f);
  std::vector<Source> sources(plan.sources.size(), RowsSource(k, v));
  if (family.projected_source >= 0) sources[family.projected_source] = RowsSource(pk, pv);
  call.sources = sources;
  testing::RunChecked(plan, call, isa, threads);
  return out;
}

// Compares the rows of `document` that start at `row0` of `out` with its own run.
void ExpectSameBits(const Documents& documents, int document, const Tensor& out, int row0,
                    const Tensor& alone) {
  for (int t = 0; t < documents.lengths[document]; ++t) {
    // Rows of global tokens have no meaning here: where a tile ends decides who writes them.
    if (documents.roles[document][t] == kGlobalToken) continue;
    for (int h = 0; h < kHeads; ++h) {
      for (int d = 0; d < kDim; ++d) {
        const float a = out.At(row0 + t, h, d);
        const float b = alone.At(t, h, d);
        ASSERT_EQ(std::bit_cast<uint32_t>(a), std::bit_cast<uint32_t>(b))
            << "document " << document << " position " << t << " head " << h << " d " << d << ": "
            << a << " and " << b;
      }
    }
  }
}

void CheckFamilies(DType dtype) {
  const Documents documents = MakeDocuments(dtype);
  const int count = static_cast<int>(documents.lengths.size());
  for (const Isa isa : testing::IsasToTest(dtype)) {
    for (const Family& family : Families()) {
      SCOPED_TRACE(::testing::Message() << IsaName(isa) << ", " << family.name);
      std::vector<Tensor> alone;
      for (int i = 0; i < count; ++i) {
        alone.push_back(RunBatch(family, documents, {i}, isa, TileRows(isa), 1));
      }
      std::mt19937 random(7);
      std::vector<int> order = testing::Range(0, count);
      for (const auto& [tile_rows, threads] :
           {std::pair{TileRows(isa), 4}, {13, 1}, {1, 2}, {32, 3}}) {
        std::shuffle(order.begin(), order.end(), random);
        const Tensor out = RunBatch(family, documents, order, isa, tile_rows, threads);
        int row0 = 0;
        for (const int document : order) {
          ExpectSameBits(documents, document, out, row0, alone[document]);
          if (::testing::Test::HasFatalFailure()) return;
          row0 += documents.lengths[document];
        }
      }
    }
  }
}

TEST(DeterminismTest, FloatRowsAreTheSameAmongAnyBatchMates) { CheckFamilies(DType::kFloat32); }

TEST(DeterminismTest, BFloat16RowsAreTheSameAmongAnyBatchMates) { CheckFamilies(DType::kBFloat16); }

// Global rows: a splitting call, whose pieces are a property of the document.
TEST(DeterminismTest, SplitRowsAreTheSameAmongAnyBatchMates) {
  std::mt19937 random(21);
  const std::vector<int> lengths = {100, kSplitSlots, 2 * kSplitSlots + 700};
  const int rows = lengths[0] + lengths[1] + lengths[2];
  const Tensor q = Tensor::Random(6, 2, 16, &random);
  const Tensor k = Tensor::Random(rows, 2, 16, &random);
  const Tensor v = Tensor::Random(rows, 2, 16, &random);
  FullPattern pattern;
  pattern.heads = 2;
  pattern.split = true;
  std::vector<FullSequence> batch;
  int row0 = 0;
  for (int s = 0; s < 3; ++s) {
    batch.push_back({2 * s, 2, row0, lengths[s], {}, 0, 0});
    row0 += lengths[s];
  }
  const Source source = RowsSource(k, v);
  for (const Isa isa : testing::IsasToTest(DType::kFloat32)) {
    SCOPED_TRACE(IsaName(isa));
    const auto run = [&](std::span<const FullSequence> sequences, int tile_rows, int threads) {
      pattern.tile_rows = tile_rows;
      Tensor out(6, 2, 16);
      Call call = testing::MakeCall(q, &out, 0.25f);
      call.sources = std::span(&source, 1);
      testing::RunChecked(PlanFull(pattern, sequences), call, isa, threads);
      return out;
    };
    const Tensor together = run(batch, TileRows(isa), 4);
    for (int s = 0; s < 3; ++s) {
      const Tensor alone = run(std::span(batch).subspan(s, 1), 1, 1);
      EXPECT_EQ(0, std::memcmp(together.Slice(2 * s, 2).data(), alone.Slice(2 * s, 2).data(),
                               2 * 2 * 16 * sizeof(float)))
          << "document " << s;
    }
  }
}

}  // namespace
}  // namespace longview::kernels
