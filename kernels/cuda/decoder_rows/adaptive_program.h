// An adaptive softmax: a block is a row's words before the first cut-off, or those of a tail.
#pragma once

#include <cmath>

#include "kernels/cuda/base/program.h"
#include "kernels/cuda/decoder_rows/token_api.h"

namespace longview::kernels::cuda {

struct AdaptiveProgram {
  using Args = AdaptiveRows;
  static constexpr int kThreads = 256;
  static constexpr int kSumPhases = 3;

  struct Thread {};
  struct Shared {
    float tops[kThreads];
    double sums[kThreads];
    double totals[2];  // Logs of the sums of exp(score): of the head, of the block's tail.
  };

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.rows, args.tails + 1}; }
  LONGVIEW_HD static int Phases(const Args&, Block block) {
    return (block.y == 0 ? 1 : 2) * kSumPhases + 1;
  }

  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread&,
                                Shared& shared) {
    if (phase + 1 == Phases(args, block)) return Write(args, block, thread, shared);
    const bool head = phase < kSumPhases;
    const Scores scores = head ? HeadOf(args, block) : TailOf(args, block);
    switch (phase % kSumPhases) {
      case 0:
        return FindTop(scores, thread, shared);
      case 1:
        return AddUp(scores, thread, shared);
      default:
        return Finish(head ? 0 : 1, thread, shared);
    }
  }

 private:
  // `count` scores, then `more` others.
  struct Scores {
    const float* from;
    int count;
    const float* others;
    int more;

    LONGVIEW_HD float At(int i) const { return i < count ? from[i] : others[i - count]; }
  };

  LONGVIEW_HD static const float* RowOf(const Args& args, Block block) {
    return args.scores + block.x * (args.words + args.tails);
  }
  LONGVIEW_HD static Scores HeadOf(const Args& args, Block block) {
    const float* row = RowOf(args, block);
    return {row, args.cutoffs[0], row + args.words, args.tails};
  }
  LONGVIEW_HD static int EndOf(const Args& args, int tail) {
    return tail + 1 < args.tails ? args.cutoffs[tail + 1] : args.words;
  }
  LONGVIEW_HD static Scores TailOf(const Args& args, Block block) {
    const int tail = block.y - 1, begin = args.cutoffs[tail];
    return {RowOf(args, block) + begin, EndOf(args, tail) - begin, nullptr, 0};
  }

  LONGVIEW_HD static void FindTop(const Scores& scores, int thread, Shared& shared) {
    float top = -INFINITY;
    for (int i = thread; i < scores.count + scores.more; i += kThreads) {
      top = fmaxf(top, scores.At(i));
    }
    shared.tops[thread] = top;
  }
  LONGVIEW_HD static float TopOf(const Shared& shared) {
    float top = shared.tops[0];
    for (int i = 1; i < kThreads; ++i) top = fmaxf(top, shared.tops[i]);
    return top;
  }
  LONGVIEW_HD static void AddUp(const Scores& scores, int thread, Shared& shared) {
    const double top = TopOf(shared);
    double sum = 0;
    for (int i = thread; i < scores.count + scores.more; i += kThreads) {
      sum += exp(static_cast<double>(scores.At(i)) - top);
    }
    shared.sums[thread] = sum;
  }
  LONGVIEW_HD static void Finish(int which, int thread, Shared& shared) {
    if (thread != 0) return;
    double sum = 0;
    for (int i = 0; i < kThreads; ++i) sum += shared.sums[i];
    shared.totals[which] = TopOf(shared) + log(sum);
  }

  LONGVIEW_HD static void Write(const Args& args, Block block, int thread, const Shared& shared) {
    const float* row = RowOf(args, block);
    float* const out = args.out + block.x * args.words;
    const int tail = block.y - 1;
    const int begin = tail < 0 ? 0 : args.cutoffs[tail];
    const int end = tail < 0 ? args.cutoffs[0] : EndOf(args, tail);
    const double shift =
        tail < 0 ? -shared.totals[0] : row[args.words + tail] - shared.totals[0] - shared.totals[1];
    for (int i = begin + thread; i < end; i += kThreads) {
      out[i] = static_cast<float>(row[i] + shift);
    }
  }
};

}  // namespace longview::kernels::cuda
