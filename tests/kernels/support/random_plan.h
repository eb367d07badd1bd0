// Random plans that no planner would write: any mixture of sources, layouts, spans, intervals,
// holes, biases, partial states and tile shapes that the executor's contract allows.
#pragma once

#include <deque>
#include <random>
#include <vector>

#include "kernels/span/executor.h"
#include "tests/kernels/support/tensors.h"

namespace longview::kernels::testing {

// A plan and everything its call points to. Not movable: the call holds pointers.
class RandomCase {
 public:
  RandomCase(uint32_t seed, DType dtype);
  RandomCase(const RandomCase&) = delete;
  RandomCase& operator=(const RandomCase&) = delete;

  const Plan& plan() const { return plan_; }
  int rows() const { return rows_; }
  int heads() const { return heads_; }
  int Dv() const { return dv_; }

  // The call for a kernel that reads `panels`; out is [rows, heads, Dv] of the case's dtype.
  Call CallFor(DType panels, Tensor* out);

 private:
  struct SourceData {
    Layout layout = Layout::kRows;
    Tensor k, v;  // One row per slot, in slot order.
    std::vector<int32_t> block_table, seq_offset;
    std::vector<float> q_add;
    std::vector<std::byte> blocks[2][2];  // [panel dtype][K, V]
    int slots = 0;                        // Slots that hold a key.
  };

  int Draw(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  bool Chance(double p) { return std::bernoulli_distribution(p)(random_); }
  std::vector<float> Normals(size_t count);

  void AddSource();
  void StoreBlocks(SourceData* source, DType dtype);
  void AddTables();
  void AddTiles();
  void AddTile(const Tile& tile);
  std::vector<Span> DrawSpans(const Tile& tile);
  int32_t DrawIntervals(const Tile& tile, int keys);
  int32_t DrawBias(const Tile& tile, int keys);

  std::mt19937 random_;
  DType dtype_;
  int rows_ = 0, heads_ = 0, kv_group_ = 0, dk_ = 0, dv_ = 0, sequences_ = 0;
  Tensor q_{0, 1, 1};
  std::deque<SourceData> sources_;
  std::vector<Source> call_sources_;
  std::vector<float> added_, dotted_, dot_add_;
  std::vector<Table> tables_;
  Plan plan_;
};

}  // namespace longview::kernels::testing
