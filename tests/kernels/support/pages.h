// Key/value storage in blocks, filled row by row as a cache would.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
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

// Pages of several sequences, whose blocks are handed out in random order as a pool in use would.
// Its sources point into it.
class PageTable {
 public:
  PageTable(DType dtype, int Dk, int Dv, int kv_heads, int blocks, std::mt19937* random)
      : pages_(dtype, Dk, Dv, kv_heads, blocks), free_(static_cast<size_t>(blocks)) {
    std::iota(free_.begin(), free_.end(), 0);
    std::shuffle(free_.begin(), free_.end(), *random);
  }

  // The next sequence: positions from the start of block `first_block` to `end`, of which position
  // p is row row0 + p of the tensors.
  void Add(const Tensor& k, const Tensor& v, int row0, int first_block, int end) {
    offsets_.push_back(static_cast<int32_t>(table_.size()));
    for (int p = first_block * kBlockSlots; p < end; ++p) {
      if (p % kBlockSlots == 0) {
        table_.push_back(free_.back());
        free_.pop_back();
      }
      pages_.Write(table_.back(), p % kBlockSlots, k, v, row0 + p);
    }
  }

  Source AsSource() const {
    Source source = pages_.AsSource(Layout::kPaged);
    source.block_table = table_.data();
    source.seq_offset = offsets_.data();
    return source;
  }

 private:
  Pages pages_;
  std::vector<int32_t> free_, table_, offsets_;
};

}  // namespace longview::kernels::testing
