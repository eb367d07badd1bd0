// The one place for linear layers: y = x . W^T, packed once, run in panels of fixed rows.
//
// Libraries choose their inner loops by the number of rows, so the bits of a row would depend
// on who shares its batch. Here every product runs on one of three numbers of rows (the last
// panel is padded by rows that are never read), on one pack made without a batch size, and only
// those sizes are used whose rows were found to have equal bits when the weight was loaded
// (PanelSizes). Biases and activations belong to the caller's row-wise epilogue (rowwise.h),
// which works on a panel while it is still in cache.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "models/dense/compute.h"
#include "models/dense/weight_format.h"

namespace longview::models {

inline constexpr int kPanelRows = 256;  // No panel has more.

// Panel sizes in use: smaller ones where they give the same bits as the largest. Decided once
// per weight shape by running random rows at every place of every size.
struct PanelSizes {
  bool small = false;   // 16 rows
  bool medium = false;  // medium_rows
  // A panel's result should stay well below what the allocator maps afresh every time: very
  // wide outputs (a vocabulary) go without the largest panel where the medium one agrees.
  bool large = true;
  // One thread would give other bits than all: products run on all, whoever else computes.
  bool whole_team = false;
  // Any number of rows up to large_rows is a panel: int8 sums are exact.
  bool any = false;
  // 256 and 64 where the library treats all rows of such panels alike. oneDNN's AVX2 kernels take
  // six rows at a time and add up otherwise in a rest of two, as 256 has: there 192 and 48. One
  // choice for all weights of a compute type.
  int large_rows = kPanelRows;
  int medium_rows = 64;
};

// Results of the check, by (out, in, compute), and the panels' rows. One per load; not
// thread-safe.
class PanelRules {
 public:
  using Shape = std::tuple<int64_t, int64_t, Compute>;
  std::map<Shape, PanelSizes> known;
  std::map<Compute, PanelSizes> rows;
};

// How many rows the next panel takes when `left` rows remain: the least work among the sizes.
int NextPanel(PanelSizes sizes, int64_t left);

// Rows a buffer must be able to hold so that the last panel of `rows` rows stays inside, whatever
// the sizes.
inline constexpr int64_t PaddedRows(int64_t rows) { return rows + kPanelRows - 1; }

// The result of one panel, [panel rows, out] of the compute type. Owns its memory.
class PanelOutput {
 public:
  PanelOutput(void* handle, void* data) : handle_(handle), data_(data) {}
  PanelOutput(PanelOutput&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), data_(other.data_) {}
  PanelOutput& operator=(PanelOutput&&) = delete;
  ~PanelOutput();

  void* data() const { return data_; }

 private:
  void* handle_;
  void* data_;
};

// A packed weight [out, in]. Immutable after Pack, which copies: the caller's weight may go.
// Thread-safe. Panel uses all compute threads unless called inside a parallel region.
class Linear {
 public:
  // `weight` is row-major [out, in]; converted to `compute` once. `name` is for messages and for
  // the observer.
  // Fails if the library cannot multiply in `compute` here, or if equal rows of one panel do not
  // give equal bits.
  static absl::StatusOr<Linear> Pack(const std::string& name, std::span<const float> weight,
                                     int64_t out, int64_t in, Compute compute, PanelRules& rules);
  // Products are int8 (int8_linear.h); inputs and outputs are of `compute`, fp32 or bf16.
  static absl::StatusOr<Linear> PackInt8(const std::string& name, std::span<const float> weight,
                                         int64_t out, int64_t in, Compute compute);
  // Pack, and beside every product that of int8, whose distance `observer` hears.
  static absl::StatusOr<Linear> PackObserved(const std::string& name, std::span<const float> weight,
                                             int64_t out, int64_t in, Compute compute,
                                             PanelRules& rules, Int8Observer& observer);

  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;
  ~Linear();

  int64_t in() const;
  int64_t out() const;
  Compute compute() const;
  PanelSizes sizes() const;
  int64_t bytes() const;  // Size of the pack.
  // Bytes that a product takes for a row beside its result: a quantised row, if products are int8,
  // or in bf16 a row of whole steps, if its own inputs end within one.
  int64_t RowScratchBytes() const;

  // One panel: x is [panel_rows, in] without gaps, all of it readable; panel_rows is a size that
  // sizes() allows. The first `used` rows count, the others hold anything: the observer hears
  // nothing of those. Throws what LibTorch throws (torch_guard.h).
  PanelOutput Panel(const void* x, int panel_rows, int64_t used) const;

 private:
  struct Packed;
  explicit Linear(std::unique_ptr<Packed> packed);
  std::unique_ptr<Packed> packed_;
};

// Runs `linear` over `rows` rows of x [>= PaddedRows(rows), in] and hands every finished panel to
// `use(first_row, row_count, y)`; y is [row_count, out] of the compute type, mutable, gone after
// the call.
template <typename Use>
void ForEachPanel(const Linear& linear, const void* x, int64_t rows, Use&& use) {
  const int64_t row_bytes = linear.in() * ElementBytes(linear.compute());
  for (int64_t row = 0; row < rows;) {
    const int panel = NextPanel(linear.sizes(), rows - row);
    const int64_t used = rows - row < panel ? rows - row : panel;
    PanelOutput y = linear.Panel(static_cast<const char*>(x) + row * row_bytes, panel, used);
    use(row, used, y.data());
    row += used;
  }
}

}  // namespace longview::models
