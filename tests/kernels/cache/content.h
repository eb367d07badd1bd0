// A stand-in for a model: whatever it stores for a token is a function of all ids up to that
// token, so that any sequence's rows can be checked whoever wrote them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "tests/kernels/cache/apart_memory.h"

namespace longview::kernels::testing {

inline uint64_t Mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x9E3779B97F4A7C15u;
  return x ^ (x >> 29);
}

// Hash of ids[0 .. n) for every n.
inline std::vector<uint64_t> Prefixes(std::span<const int32_t> ids) {
  std::vector<uint64_t> hashes(ids.size() + 1, 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    hashes[i + 1] = Mix(hashes[i] * 31 + static_cast<uint64_t>(ids[i]) + 7);
  }
  return hashes;
}

// Whole numbers that bfloat16 holds exactly.
inline float Value(uint64_t prefix, int strip, int layer, int rank, int head, int d) {
  const auto at = static_cast<uint64_t>((((strip * 8 + layer) * 8 + rank) * 8 + head) * 256 + d);
  return static_cast<float>(Mix(prefix + at * 0x632BE59BD9B4E019u) >> 56) + 1;
}

class Writer {
 public:
  // `apart`: where the cache's blocks lie, null for the host's memory.
  explicit Writer(ProjectionCache* cache, const ApartMemory* apart = nullptr)
      : cache_(cache), apart_(apart) {}

  // Hash that decides the row in `slot` of a strip.
  static uint64_t Decides(const StripShape& strip, const std::vector<uint64_t>& hashes,
                          int64_t slot) {
    return hashes[(slot / strip.rank + 1) * strip.segment];
  }

  // Writes what one group of a step owes, in every layer and strip. `before` and `sequences` as
  // appended.
  void Write(const CacheStep& step, CacheStep::Group group,
             std::span<const CacheSequence* const> sequences, std::span<const int64_t> before) {
    const CacheShape& shape = cache_->shape();
    for (int strip = 0; strip < static_cast<int>(shape.strips.size()); ++strip) {
      for (int layer = 0; layer < shape.layers; ++layer) {
        Gather(strip, layer, sequences, before);
        const std::span<const CachePlace> places = step.places(group, strip);
        ASSERT_EQ(places.size() * shape.kv_heads * shape.Dk, k_.size());
        ProjectionCache::Rows rows;
        rows.k = k_.data();
        rows.v = v_.data();
        rows.k_row_stride = int64_t{shape.kv_heads} * shape.Dk;
        rows.k_head_stride = shape.Dk;
        rows.v_row_stride = int64_t{shape.kv_heads} * shape.Dv;
        rows.v_head_stride = shape.Dv;
        if (apart_ == nullptr) {
          cache_->Write(strip, layer, places, rows, SerialFor());
        } else {
          WriteApart(strip, layer, places);
        }
      }
    }
    for (const CacheSequence* sequence : sequences) WriteState(*sequence);
  }

  // Every slot a later query can read, in every layer, and the state. `found`: nothing was
  // appended since Open found a prefix.
  void Check(const CacheSequence& sequence, bool found = false) const {
    const CacheShape& shape = cache_->shape();
    const std::vector<uint64_t> hashes = Prefixes(sequence.ids());
    std::vector<float> k(shape.Dk);
    std::vector<float> v(shape.Dv);
    for (int strip = 0; strip < static_cast<int>(shape.strips.size()); ++strip) {
      const int64_t first = shape.FirstSlotAt(strip, sequence.tokens());
      for (int64_t slot = first; slot < shape.Slots(strip, sequence.tokens()); ++slot) {
        const uint64_t hash = Decides(shape.strips[strip], hashes, slot);
        const int rank = static_cast<int>(slot % shape.strips[strip].rank);
        for (int layer = 0; layer < shape.layers; ++layer) {
          const int head = static_cast<int>(slot + layer) % shape.kv_heads;
          ReadRow(sequence, strip, layer, slot, head, k.data(), v.data());
          for (int d = 0; d < shape.Dk; ++d) {
            ASSERT_EQ(k[d], Value(hash, strip, layer, rank, head, d))
                << "strip " << strip << " slot " << slot << " of " << sequence.tokens();
          }
          for (int d = 0; d < shape.Dv; ++d) {
            ASSERT_EQ(v[d], -Value(hash, strip, layer, rank, head, d));
          }
        }
      }
      if (!found && apart_ == nullptr) CheckTail(sequence, strip);
    }
    if (found || shape.StateBytes() == 0 || sequence.tokens() == 0) return;
    for (int layer = 0; layer < shape.layers; ++layer) {
      const int last = shape.pool_columns - 1;
      ASSERT_EQ(State(sequence, layer).m[last], Value(hashes.back(), 7, layer, 0, 0, last));
    }
  }

 private:
  PoolState State(const CacheSequence& sequence, int layer) const {
    if (apart_ == nullptr) return cache_->State(sequence, layer);
    const CacheShape& shape = cache_->shape();
    return CarvePoolState(apart_->Inside(cache_->StateAddress(sequence, layer)), shape.pool_columns,
                          shape.pool_widths);
  }

  // The row of a device of BlockForm::kRows: `block` counts layers, as a table's ids do.
  std::byte* RowApart(const void* area, int64_t block, int head, int64_t slot, int columns) const {
    const int64_t pitch = (columns + 7) / 8 * 8;
    const int64_t row = (block * cache_->shape().kv_heads + head) * kBlockSlots + slot;
    return apart_->Inside(static_cast<const std::byte*>(area)) +
           row * pitch * static_cast<int64_t>(SizeOf(cache_->shape().dtype));
  }

  static void Store(DType dtype, const float* from, int columns, std::byte* to) {
    for (int d = 0; d < columns; ++d) {
      if (dtype == DType::kFloat32) {
        reinterpret_cast<float*>(to)[d] = from[d];
      } else {
        reinterpret_cast<uint16_t*>(to)[d] = FloatToBFloat16(from[d]);
      }
    }
  }

  static void Load(DType dtype, const std::byte* from, int columns, float* to) {
    for (int d = 0; d < columns; ++d) {
      to[d] = dtype == DType::kFloat32
                  ? reinterpret_cast<const float*>(from)[d]
                  : BFloat16ToFloat(reinterpret_cast<const uint16_t*>(from)[d]);
    }
  }

  // Writes k_ and v_ as a device's kernel does.
  void WriteApart(int strip, int layer, std::span<const CachePlace> places) const {
    const CacheShape& shape = cache_->shape();
    const Source source = cache_->PagedSource(strip, layer, CacheTable());
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i].block < 0) continue;
      const int64_t block = int64_t{places[i].block} * shape.layers;
      for (int head = 0; head < shape.kv_heads; ++head) {
        const size_t at = i * shape.kv_heads + head;
        Store(shape.dtype, k_.data() + at * shape.Dk, shape.Dk,
              RowApart(source.k, block, head, places[i].slot, shape.Dk));
        Store(shape.dtype, v_.data() + at * shape.Dv, shape.Dv,
              RowApart(source.v, block, head, places[i].slot, shape.Dv));
      }
    }
  }

  void ReadRow(const CacheSequence& sequence, int strip, int layer, int64_t slot, int head,
               float* k, float* v) const {
    if (apart_ == nullptr) return cache_->ReadRow(sequence, strip, layer, slot, head, k, v);
    const CacheShape& shape = cache_->shape();
    const BlockList& list = sequence.blocks(strip);
    const int64_t block =
        int64_t{list.blocks.at(static_cast<size_t>(slot / kBlockSlots - list.first))} *
        shape.layers;
    const Source source = cache_->PagedSource(strip, layer, CacheTable());
    const int64_t in_block = slot % kBlockSlots;
    Load(shape.dtype, RowApart(source.k, block, head, in_block, shape.Dk), shape.Dk, k);
    Load(shape.dtype, RowApart(source.v, block, head, in_block, shape.Dv), shape.Dv, v);
  }

  void Gather(int strip, int layer, std::span<const CacheSequence* const> sequences,
              std::span<const int64_t> before) {
    const CacheShape& shape = cache_->shape();
    k_.clear();
    v_.clear();
    for (size_t s = 0; s < sequences.size(); ++s) {
      const std::vector<uint64_t> hashes = Prefixes(sequences[s]->ids());
      const int64_t end = shape.Slots(strip, sequences[s]->tokens());
      for (int64_t slot = shape.Slots(strip, before[s]); slot < end; ++slot) {
        const uint64_t hash = Decides(shape.strips[strip], hashes, slot);
        const int rank = static_cast<int>(slot % shape.strips[strip].rank);
        for (int h = 0; h < shape.kv_heads; ++h) {
          for (int d = 0; d < shape.Dk; ++d) {
            k_.push_back(Value(hash, strip, layer, rank, h, d));
          }
          for (int d = 0; d < shape.Dv; ++d) {
            v_.push_back(-Value(hash, strip, layer, rank, h, d));
          }
        }
      }
    }
  }

  void WriteState(const CacheSequence& sequence) {
    const CacheShape& shape = cache_->shape();
    if (shape.StateBytes() == 0) return;
    const uint64_t hash = Prefixes(sequence.ids()).back();
    for (int layer = 0; layer < shape.layers; ++layer) {
      const PoolState state = State(sequence, layer);
      for (int c = 0; c < shape.pool_columns; ++c) {
        state.m[c] = Value(hash, 7, layer, 0, 0, c);
        state.s[c] = 1;
      }
    }
  }

  // Slots after the end are zeros: a kernel multiplies them by zero weights.
  void CheckTail(const CacheSequence& sequence, int strip) const {
    const CacheShape& shape = cache_->shape();
    const BlockList& list = sequence.blocks(strip);
    const int64_t end = shape.Slots(strip, sequence.tokens());
    std::vector<float> k(shape.Dk);
    std::vector<float> v(shape.Dv);
    for (int64_t slot = end; slot < list.end() * kBlockSlots; ++slot) {
      cache_->ReadRow(sequence, strip, shape.layers - 1, slot, 0, k.data(), v.data());
      for (float x : k) ASSERT_EQ(x, 0.0f) << "strip " << strip << " slot " << slot;
      for (float x : v) ASSERT_EQ(x, 0.0f) << "strip " << strip << " slot " << slot;
    }
  }

  ProjectionCache* cache_;
  const ApartMemory* apart_;
  std::vector<float> k_, v_;
};

}  // namespace longview::kernels::testing
