// The decode step's forward: what one thread block does with one item of few query rows. A step
// reads every key and value once and computes little, so the block is laid out for reading: a group
// of lanes takes one key, each lane eight of its columns in one 16-byte load (two of fp32).
//
// Groups take the slots of a block in turns, by their place on the source's grid, and are merged in
// order at the end: a row's bits are a function of its own keys.
//
// Written over a machine, as span_tile.h; of its members it needs EachThread, EachWarp, Sync,
// shared memory, and of a warp Each and SumGroups.
#pragma once

#include <cstdint>

#include "kernels/cuda/span/block_view.h"
#include "kernels/cuda/span/state_math.h"
#include "kernels/cuda/span/tile_head.h"

namespace longview::kernels::cuda {

inline constexpr int kRowsThreads = 128;

// How a key's columns are shared out.
template <int kD>
struct RowsShape {
  // Lanes of a group: a power of two with eight columns each; of 96, the last four idle.
  static constexpr int kGroup = kD <= 32 ? 4 : kD <= 64 ? 8 : 16;
  static constexpr int kGroups = kRowsThreads / kGroup;
  // Keys of a group whose loads are under way together.
  static constexpr int kKeys = kBlockSlots / kGroups < 4 ? kBlockSlots / kGroups : 4;
  // A group's state: m, l and its weighted sums.
  static constexpr int kStateFloats = 2 + kGroup * 8;
  static constexpr int kBytes = kGroups * kStateFloats * 4;
};

// The state of one lane. Eight elements are kept as they were read: four words, or eight of fp32.
template <int kKeys, Element kElement>
struct RowsLane {
  static constexpr int kWords = kElement == Element::kFloat32 ? 8 : 4;
  float q[8];  // With the source's q_add.
  float o[8];
  float m;
  float l;
  uint32_t k[kKeys][kWords];
  uint32_t v[kKeys][kWords];
  float dot[kKeys];  // This lane's share, then the group's sum.
  bool seen[kKeys];
};

template <class Machine, int kD, Element kElement>
class SpanRows : private TileHead {
 public:
  static constexpr int kThreads = kRowsThreads;
  using Shared = RowsShape<kD>;
  using Lane = RowsLane<Shared::kKeys, kElement>;
  using Lanes = typename Machine::template Lanes<Lane>;

  LONGVIEW_HD SpanRows(Machine& machine, const PlanView& plan, const SpanCall& call,
                       const Item& item)
      : TileHead(plan, call, item), machine_(machine) {}

  LONGVIEW_HD void Run(Lanes& lanes) {
    for (int row = 0; row < tile_.rows; ++row) RunRow(lanes, row);
  }

 private:
  LONGVIEW_HD static int GroupOf(int warp, int lane) { return (warp * 32 + lane) / Shared::kGroup; }
  LONGVIEW_HD static int ColumnOf(int lane) { return lane % Shared::kGroup * 8; }

  LONGVIEW_HD void RunRow(Lanes& lanes, int row) {
    machine_.EachWarp(lanes, [&](auto& warp, auto& mine) {
      warp.Each([&](int lane) { Clear(mine[lane]); });
      for (int s = 0; s < tile_.spans; ++s) {
        const Span& span = plan_.spans[tile_.span0 + s];
        if (span.keys <= 0) continue;
        const SpanSource& source = call_.sources[span.source];
        warp.Each([&](int lane) { GatherQuery(mine[lane], lane, row, source.q_add); });
        const int32_t end = (span.key0 + span.keys - 1) / kBlockSlots + 1;
        for (int32_t block = span.key0 / kBlockSlots; block < end; ++block) {
          const uint64_t keys = RowKeys(plan_, span, block, SpanKeys(plan_, span, block), row);
          if (keys == 0) continue;
          AddBlock(warp, mine, span, source, block, keys, row);
        }
      }
      warp.Each([&](int lane) { Publish(mine[lane], warp.index(), lane); });
    });
    machine_.Sync();
    machine_.EachThread([&](int thread) { Finish(thread, row); });
    machine_.Sync();  // The next row publishes to the same memory.
  }

  LONGVIEW_HD static void Clear(Lane& r) {
#pragma unroll
    for (int i = 0; i < 8; ++i) r.o[i] = 0.0f;
    r.m = -INFINITY;
    r.l = 0.0f;
  }

  LONGVIEW_HD void GatherQuery(Lane& r, int lane, int row, const float* q_add) const {
    const int64_t q0 = QueryAt(row);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int d = ColumnOf(lane) + i;
      r.q[i] = 0.0f;
      if (d >= call_.Dk) continue;
      r.q[i] = LoadElement(call_.q, kElement, q0 + d);
      if (q_add != nullptr) r.q[i] += q_add[head_ * call_.Dk + d];
    }
  }

  // Slots g, g + groups, ... of the block, `kKeys` of each group at a time.
  template <class Warp, class Mine>
  LONGVIEW_HD void AddBlock(Warp& warp, Mine& mine, const Span& span, const SpanSource& source,
                            int32_t block, uint64_t keys, int row) const {
    for (int j0 = 0; j0 < kBlockSlots; j0 += Shared::kGroups * Shared::kKeys) {
      warp.Each([&](int lane) {
        Lane& r = mine[lane];
#pragma unroll
        for (int u = 0; u < Shared::kKeys; ++u) {
          const int j = KeyOf(j0, u, warp.index(), lane);
          r.seen[u] = (keys >> j & 1) != 0;
          if (!r.seen[u]) continue;
          const int64_t slot = static_cast<int64_t>(block) * kBlockSlots + j;
          const KeyPlace at = PlaceOfSlot(plan_, source, span.source, tile_.seq, slot, kv_head_);
          Read(source.k, at.k, ColumnOf(lane), call_.Dk, source.pieces, r.k[u]);
          Read(source.v, at.v, ColumnOf(lane), call_.Dv, source.pieces, r.v[u]);
        }
#pragma unroll
        for (int u = 0; u < Shared::kKeys; ++u) r.dot[u] = r.seen[u] ? Dot(r.q, r.k[u]) : 0.0f;
      });
#pragma unroll
      for (int u = 0; u < Shared::kKeys; ++u) {
        warp.template SumGroups<Shared::kGroup>(mine, [&](Lane& r) -> float& { return r.dot[u]; });
      }
      warp.Each([&](int lane) {
        Lane& r = mine[lane];
#pragma unroll
        for (int u = 0; u < Shared::kKeys; ++u) {
          if (!r.seen[u]) continue;
          float score = call_.scale * r.dot[u];
          if (span.bias >= 0) {
            const int j = KeyOf(j0, u, warp.index(), lane);
            score += KeyBias(span, block * kBlockSlots + j - span.key0, row);
          }
          AddKey(r, score * kLog2E, r.v[u]);
        }
      });
    }
  }

  LONGVIEW_HD static int KeyOf(int j0, int u, int warp, int lane) {
    return j0 + u * Shared::kGroups + GroupOf(warp, lane);
  }

  // Eight elements of a row, those at and beyond D as zeros.
  LONGVIEW_HD static void Read(const void* data, int64_t row, int column, int D, int pieces,
                               uint32_t* words) {
    const int64_t at = row + column;
    if (pieces != 0 && column + 8 <= D) {
#pragma unroll
      for (int w = 0; w < Lane::kWords; w += 4) {
        Machine::Read16(static_cast<const char*>(data) + at * ElementBytes(kElement) + 4 * w,
                        words + w);
      }
      return;
    }
#pragma unroll
    for (int w = 0; w < Lane::kWords; ++w) {
      if constexpr (kElement == Element::kFloat32) {
        words[w] = column + w < D ? static_cast<const uint32_t*>(data)[at + w] : 0;
      } else {
        const auto* from = static_cast<const uint16_t*>(data) + at + 2 * w;
        const uint32_t low = column + 2 * w < D ? from[0] : 0;
        const uint32_t high = column + 2 * w + 1 < D ? from[1] : 0;
        words[w] = low | high << 16;
      }
    }
  }

  LONGVIEW_HD static void Widen(const uint32_t* words, float* to) {
#pragma unroll
    for (int w = 0; w < Lane::kWords; ++w) {
      if constexpr (kElement == Element::kFloat32) {
        to[w] = FloatOfBits(words[w]);
      } else {
        Machine::template Unpack<kElement>(words[w], to + 2 * w);
      }
    }
  }

  LONGVIEW_HD static float Dot(const float* q, const uint32_t* words) {
    float k[8];
    Widen(words, k);
    float dot = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) dot += q[i] * k[i];
    return dot;
  }

  LONGVIEW_HD static void AddKey(Lane& r, float x, const uint32_t* words) {
    if (x > r.m) {
      const float keep = Exp2Below(r.m, x);
      r.l *= keep;
#pragma unroll
      for (int i = 0; i < 8; ++i) r.o[i] *= keep;
      r.m = x;
    }
    const float weight = Exp2Below(x, r.m);
    float v[8];
    Widen(words, v);
    r.l += weight;
#pragma unroll
    for (int i = 0; i < 8; ++i) r.o[i] += weight * v[i];
  }

  LONGVIEW_HD float* StateOf(int group) const {
    return reinterpret_cast<float*>(machine_.shared()) + group * Shared::kStateFloats;
  }

  LONGVIEW_HD void Publish(const Lane& r, int warp, int lane) const {
    float* state = StateOf(GroupOf(warp, lane));
    if (ColumnOf(lane) == 0) {
      state[0] = r.m;
      state[1] = r.l;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) state[2 + ColumnOf(lane) + i] = r.o[i];
  }

  // Column `d` of the row, all groups merged in order; every thread does the same m and l.
  LONGVIEW_HD void Finish(int d, int row) const {
    if (d >= call_.Dv) return;
    float m = -INFINITY, l = 0.0f, o = 0.0f;
    for (int g = 0; g < Shared::kGroups; ++g) {
      const float* state = StateOf(g);
      if (state[0] == -INFINITY && state[1] == 0.0f) continue;
      const float top = m > state[0] ? m : state[0];
      const float keep = Exp2Below(m, top);
      const float take = Exp2Below(state[0], top);
      l = l * keep + state[1] * take;
      o = o * keep + state[2 + d] * take;
      m = top;
    }
    if (tile_.part >= 0) {
      const int64_t slot = PartSlot(row);
      if (d == 0) {
        call_.part_m[slot] = m;
        call_.part_l[slot] = l;
      }
      call_.part_o[slot * call_.part_stride + d] = o;
      return;
    }
    StoreElement(call_.out, kElement, OutAt(row) + d, l == 0.0f ? 0.0f : o * Share(l) + 0.0f);
  }

  Machine& machine_;
};

}  // namespace longview::kernels::cuda
