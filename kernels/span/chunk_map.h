// A feature map cut into w x w chunks from its top-left corner, clipped at the right and lower
// border, and the token order the image planners use: chunk after chunk, row-major within.
//
// Plain values: thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "kernels/base/check.h"

namespace longview::kernels {

class ChunkMap {
 public:
  // REQUIRES: rows, cols, side >= 1.
  ChunkMap(int32_t rows, int32_t cols, int32_t side) : rows_(rows), cols_(cols), side_(side) {
    KERNEL_CHECK(rows >= 1 && cols >= 1 && side >= 1);
  }

  int32_t rows() const { return rows_; }
  int32_t cols() const { return cols_; }
  int32_t chunk_rows() const { return (rows_ + side_ - 1) / side_; }
  int32_t chunk_cols() const { return (cols_ + side_ - 1) / side_; }
  int32_t Height(int32_t m) const { return std::min(side_, rows_ - m * side_); }
  int32_t Width(int32_t n) const { return std::min(side_, cols_ - n * side_); }

  // Rank of chunk (m, n)'s first token in chunk-major order.
  int32_t First(int32_t m, int32_t n) const { return m * side_ * cols_ + n * side_ * Height(m); }
  // Rank of the token at row x, column y of the map.
  int32_t Rank(int32_t x, int32_t y) const {
    const int32_t m = x / side_;
    const int32_t n = y / side_;
    return First(m, n) + x % side_ * Width(n) + y % side_;
  }
  // order[rank] = row-major index: how a model permutes its tokens.
  std::vector<int32_t> Order() const;

 private:
  int32_t rows_, cols_, side_;
};

// Lays out expanded bias tables: one block of entries per pattern of queries and keys, in the order
// of first appearance. Where a pattern's block lies depends on the patterns alone, so tables
// expanded once serve every later plan of the same maps.
class BiasTables {
 public:
  // First entry of the pattern's block. `signature` tells patterns apart; index() gives which row
  // of the learned table each of its `size` query-key pairs reads.
  template <typename Index>
  int32_t Add(std::vector<int32_t> signature, int32_t size, Index&& index) {
    const auto [at, added] = first_.try_emplace(std::move(signature), size_);
    if (!added) return at->second;
    size_ += size;
    const std::vector<int32_t> rows = index();
    KERNEL_CHECK(rows.size() == static_cast<size_t>(size));
    entries_.insert(entries_.end(), rows.begin(), rows.end());
    return at->second;
  }

  // Entry -> row of the learned table. An Added table is [heads, entries] of it.
  const std::vector<int32_t>& entries() const { return entries_; }

 private:
  std::map<std::vector<int32_t>, int32_t> first_;
  int32_t size_ = 0;
  std::vector<int32_t> entries_;
};

// The tables of a batch: images with equal `table` share one.
class BatchBiasTables {
 public:
  BiasTables& Of(int32_t table) {
    KERNEL_CHECK(table >= 0 && table <= static_cast<int32_t>(tables_.size()));
    if (table == static_cast<int32_t>(tables_.size())) tables_.emplace_back();
    return tables_[table];
  }
  // By table: BiasTables::entries.
  std::vector<std::vector<int32_t>> Entries() const {
    std::vector<std::vector<int32_t>> entries;
    entries.reserve(tables_.size());
    for (const BiasTables& table : tables_) entries.push_back(table.entries());
    return entries;
  }

 private:
  std::vector<BiasTables> tables_;
};

}  // namespace longview::kernels
