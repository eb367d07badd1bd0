// Random plans that no planner would write: any mixture of sources, layouts, spans, intervals,
// holes, biases, partial states and tile shapes that the executor's contract allows.
#pragma once

#include <deque>
#include <initializer_list>
#include <random>
#include <span>
#include <vector>

#include "kernels/span/executor.h"
#include "tests/kernels/support/tensors.h"

namespace longview::kernels::testing {

// The source of a case's decisions: a seed, or bytes that a fuzzer chose (zeros when they end).
// Tensor values are random in both cases.
class Choices {
 public:
  explicit Choices(uint32_t seed) : random_(seed) {}
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes), from_bytes_(true) {}

  int Draw(int lo, int hi);  // Both inclusive.
  bool Chance(double p);
  std::mt19937& random() { return random_; }

 private:
  std::mt19937 random_;
  std::span<const uint8_t> bytes_;
  bool from_bytes_ = false;
};

// A plan and everything its call points to. Not movable: the call holds pointers.
class RandomCase {
 public:
  RandomCase(Choices choices, DType dtype);
  RandomCase(uint32_t seed, DType dtype) : RandomCase(Choices(seed), dtype) {}
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

  int Draw(int lo, int hi) { return choices_.Draw(lo, hi); }
  int Pick(std::initializer_list<int> from);
  bool Chance(double p) { return choices_.Chance(p); }
  std::vector<float> Normals(size_t count);

  void AddSource();
  void StoreBlocks(SourceData* source, DType dtype);
  void AddTables();
  void AddTiles();
  void AddTile(const Tile& tile);
  std::vector<Span> DrawSpans(const Tile& tile);
  int32_t DrawIntervals(const Tile& tile, int keys);
  int32_t DrawBias(const Tile& tile, int keys);

  Choices choices_;
  std::mt19937& random_ = choices_.random();
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
