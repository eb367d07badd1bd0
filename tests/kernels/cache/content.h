// A stand-in for a model: whatever it stores for a token is a function of all ids up to that
// token, so that any sequence's rows can be checked whoever wrote them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"

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
  explicit Writer(ProjectionCache* cache) : cache_(cache) {}

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
        cache_->Write(strip, layer, places, rows, SerialFor());
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
          cache_->ReadRow(sequence, strip, layer, slot, head, k.data(), v.data());
          for (int d = 0; d < shape.Dk; ++d) {
            ASSERT_EQ(k[d], Value(hash, strip, layer, rank, head, d))
                << "strip " << strip << " slot " << slot << " of " << sequence.tokens();
          }
          for (int d = 0; d < shape.Dv; ++d) {
            ASSERT_EQ(v[d], -Value(hash, strip, layer, rank, head, d));
          }
        }
      }
      if (!found) CheckTail(sequence, strip);
    }
    if (found || shape.StateBytes() == 0 || sequence.tokens() == 0) return;
    for (int layer = 0; layer < shape.layers; ++layer) {
      const int last = shape.pool_columns - 1;
      ASSERT_EQ(cache_->State(sequence, layer).m[last], Value(hashes.back(), 7, layer, 0, 0, last));
    }
  }

 private:
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
      const PoolState state = cache_->State(sequence, layer);
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
  std::vector<float> k_, v_;
};

}  // namespace longview::kernels::testing
