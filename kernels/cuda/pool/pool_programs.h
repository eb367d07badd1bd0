// Pooling as block programs: pieces of whole segments, their merge, and open segments.
#pragma once

#include <cmath>

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/base/program_runner.h"
#include "kernels/cuda/base/typed_element.h"
#include "kernels/cuda/pool/pool_api.h"

namespace longview::kernels::cuda {

inline constexpr float kNoToken = -__builtin_inff();

// A block takes one piece, up to four columns of one head and 128 channels; a thread is a channel
// while values are summed. The weights of a column are computed by every block that needs them.
template <typename T>
struct PoolPiecesProgram {
  using Args = PoolPieces;
  static constexpr int kThreads = 128;
  static constexpr int kColumns = 4;
  static constexpr int kRuns = 16;  // Runs of a column's tokens, for its largest score and its sum.
  static constexpr int kRun = kPoolPiece / kRuns;

  struct Thread {};
  struct Shared {
    float weights[kColumns][kPoolPiece];
    float tops[kColumns][kRuns];
    float totals[kColumns][kRuns];
  };

  // The part of block (x, y).
  struct Part {
    PoolPiece piece;
    int head;
    int column;   // First of the call's columns.
    int columns;  // Up to kColumns.
    int channel;  // First.
  };

  LONGVIEW_HD static int ColumnGroups(const Args& args) {
    return (args.columns.columns_per_head + kColumns - 1) / kColumns;
  }
  LONGVIEW_HD static int ChannelGroups(const Args& args) {
    return (args.rows.width + kThreads - 1) / kThreads;
  }
  LONGVIEW_HD static Grid GridOf(const Args& args) {
    const int heads = args.columns.columns / args.columns.columns_per_head;
    return {args.count, heads * ColumnGroups(args) * ChannelGroups(args)};
  }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 5; }

  LONGVIEW_HD static Part PartOf(const Args& args, Block block) {
    const int per_head = args.columns.columns_per_head;
    const int rest = block.y / ChannelGroups(args);
    const int group = rest % ColumnGroups(args);
    const int left = per_head - group * kColumns;
    Part part;
    part.piece = args.pieces[block.x];
    part.head = rest / ColumnGroups(args);
    part.column = part.head * per_head + group * kColumns;
    part.columns = left < kColumns ? left : kColumns;
    part.channel = block.y % ChannelGroups(args) * kThreads;
    return part;
  }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    const Part part = PartOf(args, block);
    switch (phase) {
      case 0:
        return LoadScores(args, part, thread, shared);
      case 1:
        return FindTops(thread, shared);
      case 2:
        return Weigh(part, thread, shared);
      case 3:
        AddWeights(thread, shared);
        return AddValues(args, part, block.x, thread, shared);
      default:
        if (part.channel == 0) WriteColumn(args, part, block.x, thread, shared);
    }
  }

 private:
  LONGVIEW_HD static void LoadScores(const Args& args, const Part& part, int thread,
                                     Shared& shared) {
    for (int i = thread; i < kPoolPiece; i += kThreads) {
      const int64_t t = int64_t{part.piece.begin} + i;
      const bool seen =
          t < part.piece.end && (args.columns.visible == nullptr || args.columns.visible[t] != 0);
      const float* scores = args.columns.scores + t * args.columns.score_stride + part.column;
      for (int c = 0; c < kColumns; ++c) {
        shared.weights[c][i] = seen && c < part.columns ? scores[c] : kNoToken;
      }
    }
  }

  LONGVIEW_HD static void FindTops(int thread, Shared& shared) {
    if (thread >= kColumns * kRuns) return;
    const int c = thread / kRuns, run = thread % kRuns;
    float top = kNoToken;
    for (int i = 0; i < kRun; ++i) top = fmaxf(top, shared.weights[c][run * kRun + i]);
    shared.tops[c][run] = top;
  }

  LONGVIEW_HD static float TopOf(const Shared& shared, int c) {
    float top = kNoToken;
    for (int run = 0; run < kRuns; ++run) top = fmaxf(top, shared.tops[c][run]);
    return top;
  }

  LONGVIEW_HD static void Weigh(const Part& part, int thread, Shared& shared) {
    for (int c = 0; c < kColumns; ++c) {
      const float top = c < part.columns ? TopOf(shared, c) : kNoToken;
      for (int i = thread; i < kPoolPiece; i += kThreads) {
        const float score = shared.weights[c][i];
        shared.weights[c][i] = score == kNoToken ? 0.0f : expf(score - top);
      }
    }
  }

  LONGVIEW_HD static void AddWeights(int thread, Shared& shared) {
    if (thread >= kColumns * kRuns) return;
    const int c = thread / kRuns, run = thread % kRuns;
    float total = 0;
    for (int i = 0; i < kRun; ++i) total += shared.weights[c][run * kRun + i];
    shared.totals[c][run] = total;
  }

  LONGVIEW_HD static void AddValues(const Args& args, const Part& part, int64_t piece, int thread,
                                    const Shared& shared) {
    const int channel = part.channel + thread;
    if (channel >= args.rows.width) return;
    const T* values = static_cast<const T*>(args.rows.data) +
                      part.piece.begin * args.rows.row_stride + part.head * args.rows.head_stride +
                      channel;
    float sums[kColumns] = {};
    for (int i = 0; i < part.piece.end - part.piece.begin; ++i) {
      const float value = Widen(values[i * args.rows.row_stride]);
      for (int c = 0; c < kColumns; ++c) {
        // A token that is left out may hold anything, infinities too.
        const float weight = shared.weights[c][i];
        if (weight != 0.0f) sums[c] += weight * value;
      }
    }
    for (int c = 0; c < part.columns; ++c) {
      const int64_t column = piece * args.columns.columns + part.column + c;
      args.out.sums[column * args.rows.width + channel] = sums[c];
    }
  }

  LONGVIEW_HD static void WriteColumn(const Args& args, const Part& part, int64_t piece, int thread,
                                      const Shared& shared) {
    if (thread >= part.columns) return;
    float total = 0;
    for (int run = 0; run < kRuns; ++run) total += shared.totals[thread][run];
    const int64_t column = piece * args.columns.columns + part.column + thread;
    args.out.m[column] = TopOf(shared, thread);
    args.out.s[column] = total;
  }
};

// A block per segment and column; a thread takes every 128th channel.
struct PoolMergeProgram {
  using Args = PoolMerge;
  static constexpr int kThreads = 128;
  struct Thread {};
  struct Shared {};

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.segments, args.columns}; }
  LONGVIEW_HD static int Phases(const Args&, Block) { return 1; }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int, int thread, Thread&, Shared&) {
    const int first = args.piece0[block.x], last = args.piece0[block.x + 1];
    for (int channel = thread; channel < args.width; channel += kThreads) {
      float m = kNoToken, s = 0, sum = 0;
      for (int piece = first; piece < last; ++piece) {
        const int64_t column = int64_t{piece} * args.columns + block.y;
        const float of_piece = args.pieces.m[column];
        if (of_piece == kNoToken) continue;
        const float top = fmaxf(m, of_piece);
        const float keep = m == kNoToken ? 0.0f : expf(m - top);
        const float take = expf(of_piece - top);
        m = top;
        s = s * keep + args.pieces.s[column] * take;
        sum = sum * keep + args.pieces.sums[column * args.width + channel] * take;
      }
      const int64_t at = (block.x * args.columns + block.y) * args.width + channel;
      args.out[at] = s == 0.0f ? 0.0f : sum / s;
    }
  }
};

// A block per open segment and column; a thread takes every 128th channel of its values side by
// side and walks the scores itself, so that none waits for another. Thread 0, which always has a
// channel, keeps m and s.
template <typename T>
struct PoolAppendProgram {
  using Args = PoolAppend;
  static constexpr int kThreads = 128;
  struct Thread {
    float m, s;
  };
  struct Shared {};

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.count, args.columns.columns}; }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    return args.runs[block.x].begin < args.runs[block.x].end ? 2 : 0;
  }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread& mine,
                                Shared&) {
    const PoolRun run = args.runs[block.x];
    float* const state = run.state + (run.shifted != 0 ? args.shift : 0);
    const int columns = args.state_columns, width = args.rows.width;
    const int of_state = args.column0 + block.y;
    if (phase == 1) {
      if (thread != 0) return;
      state[of_state] = mine.m;
      state[columns + of_state] = mine.s;
      return;
    }
    const int channels = args.second == nullptr ? width : 2 * width;
    for (int channel = thread; channel < channels; channel += kThreads) {
      const int64_t value = channel / width;
      float* const at =
          state + 2 * columns + (value * columns + of_state) * width + channel % width;
      mine.m = run.begins != 0 ? kNoToken : state[of_state];
      mine.s = run.begins != 0 ? 0.0f : state[columns + of_state];
      const void* const data = value == 0 ? args.rows.data : args.second;
      *at = Walk(args, run, data, channel % width, run.begins != 0 ? 0.0f : *at, mine, block.y);
    }
  }

 private:
  LONGVIEW_HD static float Walk(const Args& args, const PoolRun& run, const void* data, int channel,
                                float sum, Thread& mine, int c) {
    const int64_t head = c / args.columns.columns_per_head;
    const T* const values = static_cast<const T*>(data) + head * args.rows.head_stride + channel;
    for (int64_t t = run.begin; t < run.end; ++t) {
      if (args.columns.visible != nullptr && args.columns.visible[t] == 0) continue;
      const float score = args.columns.scores[t * args.columns.score_stride + c];
      const float top = fmaxf(mine.m, score);
      const float keep = mine.m == kNoToken ? 0.0f : expf(mine.m - top);
      const float take = expf(score - top);
      mine.m = top;
      mine.s = mine.s * keep + take;
      sum = sum * keep + take * Widen(values[t * args.rows.row_stride]);
    }
    return sum;
  }
};

// The programs of means over segments as a table; see program_runner.h.
template <class Runner>
constexpr PoolApi PoolTable() {
  return {
      .pieces = RunTyped<Runner, PoolPiecesProgram>,
      .merge = Runner::template Run<PoolMergeProgram>,
      .append = RunTyped<Runner, PoolAppendProgram>,
  };
}

}  // namespace longview::kernels::cuda
