// Rows of a ragged batch: a view of memory on the host or a device, never an owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace longview::models {

// The element type of rows: fp32, or the type that a model computes in.
enum class RowType { kFloat, kCompute };

// A matrix [count, width] whose rows lie `stride` elements apart.
struct Rows {
  std::byte* data = nullptr;  // Null while bytes are only counted.
  int64_t count = 0;
  int64_t width = 0;    // 0: no rows were given.
  int64_t stride = 0;   // Elements.
  int64_t element = 0;  // Bytes of an element.
  bool few = false;     // Rows of a decode step: linears read their weight once for all of them.

  explicit operator bool() const { return width > 0; }
  bool dense() const { return stride == width; }
  int64_t row_bytes() const { return width * element; }
  double elements() const { return static_cast<double>(count) * static_cast<double>(width); }
  std::byte* Row(int64_t i) const { return data + i * stride * element; }
  // View of each row as `parts` rows of the same memory. REQUIRES: dense rows, width % parts == 0.
  Rows Split(int64_t parts) const {
    Rows view = *this;
    view.count = count * parts;
    view.width = view.stride = width / parts;
    return view;
  }
  // REQUIRES: the elements are fp32.
  float* floats() const { return reinterpret_cast<float*>(data); }

  Rows First(int64_t rows) const {
    Rows view = *this;
    view.count = rows;
    return view;
  }
  // Rows from `row` on.
  Rows From(int64_t row) const {
    Rows view = *this;
    if (data != nullptr) view.data = Row(row);
    view.count = count - row;
    return view;
  }
  // Rows from `row` on, `rows` of them, which decode or not.
  Rows Part(int64_t row, int64_t rows, bool decode) const {
    Rows view = From(row).First(rows);
    view.few = decode;
    return view;
  }
  Rows Columns(int64_t first, int64_t columns) const {
    Rows view = *this;
    if (data != nullptr) view.data = data + first * element;
    view.width = columns;
    return view;
  }
};

// Moves rows [from, from + count) of host memory to [to, to + count). REQUIRES: dense rows.
inline void MoveRows(const Rows& rows, int64_t from, int64_t to, int64_t count) {
  if (from == to || count == 0) return;
  std::memmove(rows.Row(to), rows.Row(from), static_cast<size_t>(count * rows.row_bytes()));
}

}  // namespace longview::models
