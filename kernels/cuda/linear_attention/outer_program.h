// RunningOuter as a block program: a block is a head of a sequence, a thread a row of P while keys
// are summed and a channel while values are. Up to eight tokens share a pass over the state, as on
// the CPU.
#pragma once

#include <cmath>

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/common_rows/column_programs.h"
#include "kernels/cuda/linear_attention/outer_api.h"

namespace longview::kernels::cuda {

LONGVIEW_HD inline float OuterPhi(OuterActivation activation, float x) {
  constexpr float kLog2E = 1.44269504f;
  switch (activation) {
    case OuterActivation::kSoftplusLn2:
      return fmaxf(x, 0.0f) + kLog2E * log1pf(exp2f(-fabsf(x)));
    case OuterActivation::kSoftplus:
      return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x)));
    case OuterActivation::kElu1:
      return x > 0.0f ? x + 1.0f : expf(x);
  }
  return 0.0f;
}

LONGVIEW_HD inline int OuterLanes(int count) { return (count + 15) / 16 * 16; }

// ElementProgram: a column of the projected rows per row.
struct PackOuterElements {
  using Args = PackedOuterRows;
  LONGVIEW_HD static int64_t Rows(const Args& args) { return args.width; }
  LONGVIEW_HD static int Columns(const Args& args) { return OuterLanes(args.rows); }
  LONGVIEW_HD static void Element(const Args& args, int64_t c, int lane) {
    args.packed[c * OuterLanes(args.rows) + lane] =
        lane < args.rows ? args.projected[lane * int64_t{args.width} + c] : 0.0f;
  }
};

struct OuterProgram {
  using Args = AppendOuterRows;
  static constexpr int kThreads = kMostOuterRows;
  static constexpr int kTokens = 8;  // Per pass.
  static constexpr int kPasses = 4;  // Phases of eight tokens.

  struct Thread {};
  struct Shared {
    float writes[kTokens][kMostOuterRows];  // a_t
    float scores[kTokens][kMostOuterRows];
    float reads[kTokens][kMostOuterRows];  // Weights of the read, not divided by their sum.
  };

  // One head's share of the call.
  struct Head {
    const DeviceOuterSequence* sequence;
    int64_t column;  // First channel of a row of q, k, v, g and out.
    int row_lanes;
    int width_lanes;
    const float* packed;  // [width][row_lanes]
    float* keys;          // [width][row_lanes]
    float* values;        // [rows][width_lanes]
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.count, args.heads}; }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    const int64_t tokens = args.sequences[block.x].tokens;
    return static_cast<int>((tokens + kTokens - 1) / kTokens) * kPasses;
  }

  LONGVIEW_HD static Head HeadOf(const Args& args, Block block) {
    Head head;
    head.sequence = args.sequences + block.x;
    head.column = int64_t{block.y} * args.width;
    head.row_lanes = OuterLanes(head.sequence->rows);
    head.width_lanes = OuterLanes(args.width);
    const int64_t key_floats = int64_t{args.width} * head.row_lanes;
    const int64_t value_floats = int64_t{head.sequence->rows} * head.width_lanes;
    head.packed = head.sequence->packed + block.y * key_floats;
    head.keys = head.sequence->state + block.y * (key_floats + value_floats);
    head.values = head.keys + key_floats;
    return head;
  }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const Head head = HeadOf(args, block);
    const int64_t first = int64_t{phase / kPasses} * kTokens;
    const int64_t left = head.sequence->tokens - first;
    const int tokens = left < kTokens ? static_cast<int>(left) : kTokens;
    const int64_t row = head.sequence->row0 + first;
    switch (phase % kPasses) {
      case 0:
        return WeighWrites(args, head, row, tokens, thread, shared);
      case 1:
        return ScanKeys(args, head, row, first, tokens, thread, shared);
      case 2:
        return WeighReads(args, head, first, tokens, thread, shared);
      default:
        return ScanValues(args, head, row, first, tokens, thread, shared);
    }
  }

 private:
  LONGVIEW_HD static void WeighWrites(const Args& args, const Head& head, int64_t row, int tokens,
                                      int thread, Shared& shared) {
    if (thread >= head.sequence->rows) return;
    float sums[kTokens] = {};
    for (int d = 0; d < args.width; ++d) {
      const float p = head.packed[int64_t{d} * head.row_lanes + thread];
      for (int i = 0; i < kTokens; ++i) {
        if (i < tokens) sums[i] += args.g[(row + i) * args.row_stride + head.column + d] * p;
      }
    }
    for (int i = 0; i < kTokens; ++i) {
      shared.writes[i][thread] = OuterPhi(args.activation, args.scale * sums[i]);
    }
  }

  // A text's sums begin as zeros, whatever the memory holds.
  LONGVIEW_HD static bool Begins(const Head& head, int64_t first) {
    return head.sequence->before + first == 0;
  }

  LONGVIEW_HD static void ScanKeys(const Args& args, const Head& head, int64_t row, int64_t first,
                                   int tokens, int thread, Shared& shared) {
    if (thread >= head.sequence->rows) return;
    const bool begins = Begins(head, first);
    float sums[kTokens] = {};
    for (int d = 0; d < args.width; ++d) {
      float* state = head.keys + int64_t{d} * head.row_lanes + thread;
      float key = begins ? 0.0f : *state;
      for (int i = 0; i < kTokens; ++i) {
        if (i >= tokens) continue;
        const int64_t at = (row + i) * args.row_stride + head.column + d;
        key += shared.writes[i][thread] * args.k[at];
        sums[i] += args.q[at] * key;
      }
      *state = key;
    }
    for (int i = 0; i < kTokens; ++i) shared.scores[i][thread] = sums[i];
  }

  LONGVIEW_HD static void WeighReads(const Args& args, const Head& head, int64_t first, int tokens,
                                     int thread, Shared& shared) {
    if (thread >= head.sequence->rows) return;
    for (int i = 0; i < tokens; ++i) {
      float top = shared.scores[i][0];
      for (int r = 1; r < head.sequence->rows; ++r) top = fmaxf(top, shared.scores[i][r]);
      const auto t = static_cast<float>(head.sequence->before + first + i + 1);
      shared.reads[i][thread] = expf((shared.scores[i][thread] - top) * (args.scale / t));
    }
  }

  LONGVIEW_HD static void ScanValues(const Args& args, const Head& head, int64_t row, int64_t first,
                                     int tokens, int thread, const Shared& shared) {
    if (thread >= args.width) return;
    const bool begins = Begins(head, first);
    float sums[kTokens] = {}, totals[kTokens] = {};
    for (int r = 0; r < head.sequence->rows; ++r) {
      float* state = head.values + int64_t{r} * head.width_lanes + thread;
      float value = begins ? 0.0f : *state;
      for (int i = 0; i < kTokens; ++i) {
        if (i >= tokens) continue;
        value += shared.writes[i][r] * args.v[(row + i) * args.row_stride + head.column + thread];
        sums[i] += shared.reads[i][r] * value;
        totals[i] += shared.reads[i][r];
      }
      *state = value;
    }
    for (int i = 0; i < tokens; ++i) {
      const auto t = static_cast<float>(head.sequence->before + first + i + 1);
      args.out[(row + i) * args.out_stride + head.column + thread] = sums[i] / (t * totals[i]);
    }
  }
};

// The programs of causal sums as a table; see program_runner.h.
template <class Runner>
constexpr OuterApi OuterTable() {
  return {
      .append = Runner::template Run<OuterProgram>,
      .pack = Runner::template Run<ElementProgram<PackOuterElements>>,
  };
}

}  // namespace longview::kernels::cuda
