// Key/value storage in blocks, filled row by row as a cache would.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "tests/kernels/support/tensors.h"

namespace longview::kernels::testing {

class Pages {
 public:
  Pages(DType dtype, int Dk, int Dv, int kv_heads, int blocks)
      : layout_(dtype, Dk, Dv, kv_heads),
        k_(Allocate(layout_.KBlock(blocks, 0))),
        v_(Allocate(layout_.VBlock(blocks, 0))) {}

  // Writes row `row` of the tensors, all heads, into slot `slot` of block `block`.
  void Write(int block, int slot, const Tensor& k, const Tensor& v, int row) {
    for (int h = 0; h < layout_.kv_heads(); ++h) {
      layout_.WriteK(k_.get() + layout_.KBlock(block, h), slot, RowOf(k, row, h), k.dtype());
      layout_.WriteV(v_.get() + layout_.VBlock(block, h), slot, RowOf(v, row, h), v.dtype());
    }
  }

  Source AsSource(Layout layout) const {
    Source source;
    source.k = k_.get();
    source.v = v_.get();
    source.dtype = layout_.dtype();
    source.layout = layout;
    source.kv_heads = layout_.kv_heads();
    return source;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  using Block = std::unique_ptr<std::byte, Free>;

  static Block Allocate(size_t bytes) {
    Block block(static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes)));
    std::memset(block.get(), 0, bytes);
    return block;
  }
  static const void* RowOf(const Tensor& tensor, int row, int head) {
    return static_cast<const std::byte*>(tensor.data()) +
           (row * tensor.row_stride() + int64_t{head} * tensor.dim()) * SizeOf(tensor.dtype());
  }

  KvLayout layout_;
  Block k_, v_;
};

}  // namespace longview::kernels::testing
