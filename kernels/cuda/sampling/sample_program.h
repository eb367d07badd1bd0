// Choosing tokens as a block program: a block is a row, so a row's token depends on nothing else in
// its batch. Scores are edited, cut to those that top-k, top-p, min-p, typical sampling and floors
// of probability leave, and drawn from in the order of their ids.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/base/counter_random.h"
#include "kernels/base/exponential.h"
#include "kernels/cuda/base/program.h"
#include "kernels/cuda/sampling/block_largest.h"
#include "kernels/cuda/sampling/mass_select.h"
#include "kernels/cuda/sampling/sampling_api.h"

namespace longview::kernels::cuda {

inline constexpr int kSampleThreads = 256;

struct SampleThread {
  SampleStatus status;
  Scored peak;      // The largest logit; its id is -1 if one is NaN.
  Scored best;      // The largest score.
  MassCut cut;      // By top-k, then by top-p, then by typical sampling.
  double total;     // Weight of the kept tokens.
  double entropy;   // Entropy of the kept tokens' distribution.
  double log_sum;   // log(sum(exp(logit - peak)))
  Scored reported;  // The last of those found.
};

struct SampleShared {
  MassSelect<kSampleThreads> select;
  BlockLargest<kSampleThreads> largest[2];  // In turns: one is given while the other is taken.
  double sums[kSampleThreads];
  double entropies[kSampleThreads];
  int32_t ties[kSampleThreads];
};

// A thread's part of one phase of a row.
class RowSampler {
 public:
  static constexpr int kEditPhases = 6;

  LONGVIEW_HD RowSampler(const SampleRows& args, int64_t index, int thread, SampleThread& mine,
                         SampleShared& shared)
      : row_(args.rows[index]),
        vocab_(args.vocab),
        scores_(args.scores + index * args.vocab),
        weights_(args.weights + index * args.vocab),
        out_(args.out[index]),
        top_(args.top + index * kMostReported),
        thread_(thread),
        mine_(mine),
        shared_(shared) {}

  LONGVIEW_HD static int DrawPhases(const SampleRow& row) {
    if (row.sample == 0) return 0;
    return 3 + (row.top_k > 0 ? Select::kPhases : 0) + (row.top_p < 1 ? Select::kPhases + 1 : 0) +
           (row.typical_p < 1 ? kTypicalPhases : 0) + FloorPhases(row);
  }
  LONGVIEW_HD static int ReportPhases(const SampleRow& row, int vocab) {
    return row.reported < 0 ? 0 : 2 + Reported(row, vocab);
  }

  // Biases, penalties and bans, and the largest score: greedy search ends here.
  LONGVIEW_HD void Edit(int phase) {
    switch (phase) {
      case 0:
        return Load();
      case 1:
        for (int i = thread_; i < row_.biased_count; i += kSampleThreads) {
          scores_[row_.biased[i]] += row_.biases[i];
        }
        return;
      case 2:
        return Penalise();
      case 3:
        for (int i = thread_; i < row_.banned_count; i += kSampleThreads) {
          scores_[row_.banned[i]] = -INFINITY;
        }
        return;
      case 4:
        return GiveLargest(1, scores_, {INFINITY, -1});
      default:
        return Decide();
    }
  }

  // REQUIRES: of this and of Report, that the row has a status of kChosen.
  LONGVIEW_HD void Draw(int phase) {
    const int top_k = row_.top_k > 0 ? Select::kPhases : 0;
    if (phase < top_k) return SelectTopK(phase);
    phase -= top_k;
    if (phase == 0) return Weigh();
    --phase;
    const int top_p = row_.top_p < 1 ? Select::kPhases : 0;
    if (phase < top_p) return SelectTopP(phase);
    phase -= top_p;
    if (top_p > 0 && phase-- == 0) return CountTies(Cut::kNucleus);
    if (phase == 0) return SumKept();
    --phase;
    const int typical = row_.typical_p < 1 ? kTypicalPhases : 0;
    if (phase < typical) return KeepTypical(phase);
    phase -= typical;
    if (phase < FloorPhases(row_)) return KeepAbove(phase);
    Pick();
  }

  LONGVIEW_HD void Report(int phase) {
    if (phase == 0) {
      double sum = 0;
      const auto peak = static_cast<float>(mine_.peak.score);
      for (int id = thread_; id < vocab_; id += kSampleThreads) {
        sum += Exponential(row_.logits[id] - peak);
      }
      shared_.sums[thread_] = sum;
      return;
    }
    const int found = phase - 1;
    if (found == 0) {
      mine_.log_sum = log(SumOfSums());
      mine_.reported = {INFINITY, -1};
      if (thread_ == 0) out_.logprob = LogProbability(row_.logits[out_.id]);
    } else {
      mine_.reported = shared_.largest[found % 2].Take();
      if (thread_ == 0) {
        const int32_t id = mine_.reported.id;
        top_[found - 1] = {id, LogProbability(row_.logits[id])};
      }
    }
    if (found < Reported(row_, vocab_)) {
      GiveLargest((found + 1) % 2, row_.logits, mine_.reported);
    }
  }

 private:
  using Select = MassSelect<kSampleThreads>;
  // The order of tokens for a cut by mass: their scores, or how near their surprise is to the mean.
  enum class Cut { kNucleus, kTypical };
  static constexpr int kTypicalPhases = Select::kPhases + 3;

  LONGVIEW_HD static int FloorPhases(const SampleRow& row) {
    return (row.epsilon_cutoff > 0 ? 2 : 0) + (row.eta_cutoff > 0 ? 2 : 0);
  }

  LONGVIEW_HD static int Reported(const SampleRow& row, int vocab) {
    return row.reported < vocab ? row.reported : vocab;
  }

  LONGVIEW_HD void Load() {
    Scored peak;
    bool numbers = true;
    for (int id = thread_; id < vocab_; id += kSampleThreads) {
      const Scored own{row_.logits[id], id};
      scores_[id] = own.score;
      numbers = numbers && own.score == own.score;
      if (own.Before(peak)) peak = own;
    }
    // Before every logit there is.
    shared_.largest[0].Give(thread_, numbers ? peak : Scored{INFINITY, -1});
  }

  LONGVIEW_HD void Penalise() {
    mine_.peak = shared_.largest[0].Take();
    for (int i = thread_; i < row_.seen_count; i += kSampleThreads) {
      double& score = scores_[row_.seen[i]];
      score = score < 0 ? score * row_.penalty : score / row_.penalty;
    }
  }

  LONGVIEW_HD void Decide() {
    mine_.best = shared_.largest[1].Take();
    mine_.status = SampleStatus::kChosen;
    if (mine_.peak.id < 0) {
      mine_.status = SampleStatus::kNotNumbers;
    } else if (row_.sample != 0 && mine_.best.score == -INFINITY) {
      mine_.status = SampleStatus::kNothingLeft;
    } else if (row_.sample != 0 && !(mine_.best.score < INFINITY)) {
      mine_.status = SampleStatus::kNotFinite;
    }
    if (thread_ == 0) out_ = {mine_.best.id, mine_.status, 0.0f};
  }

  // The first of this thread's numbers that come after `last`.
  template <typename T>
  LONGVIEW_HD void GiveLargest(int turn, const T* numbers, const Scored& last) {
    Scored best;
    for (int id = thread_; id < vocab_; id += kSampleThreads) {
      const Scored own{numbers[id], id};
      if (last.Before(own) && own.Before(best)) best = own;
    }
    shared_.largest[turn].Give(thread_, best);
  }

  LONGVIEW_HD void SelectTopK(int phase) {
    if (phase == 0) mine_.cut.wanted = row_.top_k;
    shared_.select.Phase(phase, thread_, mine_.cut, [&](auto&& item) {
      for (int id = thread_; id < vocab_; id += kSampleThreads) {
        if (scores_[id] != -INFINITY) item(OrderedKey(scores_[id]), 1.0);
      }
    });
  }

  // Scores by temperature, and their weights; those that are cut off have none.
  LONGVIEW_HD void Weigh() {
    if (row_.top_k > 0) shared_.select.Finish(mine_.cut);
    const double best = mine_.best.score, temperature = row_.temperature;
    // The host divides where it filters, and rounds accordingly.
    const bool divides = row_.top_k > 0 || row_.top_p < 1 || row_.min_p > 0 || row_.typical_p < 1 ||
                         FloorPhases(row_) > 0;
    double sum = 0;
    for (int id = thread_; id < vocab_; id += kSampleThreads) {
      const double score = scores_[id];
      const bool kept =
          score != -INFINITY && (row_.top_k == 0 || OrderedKey(score) >= mine_.cut.key);
      const double x =
          divides ? score / temperature - best / temperature : (score - best) * (1 / temperature);
      weights_[id] = kept ? Exponential(static_cast<float>(x)) : 0.0f;
      scores_[id] = score / temperature;
      sum += weights_[id];
    }
    shared_.sums[thread_] = sum;
  }

  LONGVIEW_HD void SelectTopP(int phase) {
    if (phase == 0) mine_.cut.wanted = row_.top_p * SumOfSums();
    shared_.select.Phase(phase, thread_, mine_.cut, [&](auto&& item) {
      for (int id = thread_; id < vocab_; id += kSampleThreads) {
        if (weights_[id] > 0) item(OrderedKey(scores_[id]), weights_[id]);
      }
    });
  }

  // Run of neighbouring ids per thread, for the parts that take ids in order.
  LONGVIEW_HD int RunSize() const { return (vocab_ + kSampleThreads - 1) / kSampleThreads; }
  LONGVIEW_HD int64_t RunBegin() const { return int64_t{thread_} * RunSize(); }
  LONGVIEW_HD int64_t RunEnd() const {
    const int64_t end = RunBegin() + RunSize();
    return end < vocab_ ? end : vocab_;
  }

  LONGVIEW_HD uint64_t KeyOf(Cut cut, int64_t id) const {
    if (cut == Cut::kNucleus) return OrderedKey(scores_[id]);
    return OrderedKey(-fabs(-log(weights_[id] / mine_.total) - mine_.entropy));
  }

  LONGVIEW_HD void CountTies(Cut cut) {
    shared_.select.Finish(mine_.cut);
    int ties = 0;
    for (int64_t id = RunBegin(); id < RunEnd(); ++id) {
      if (weights_[id] > 0 && KeyOf(cut, id) == mine_.cut.key) ++ties;
    }
    shared_.ties[thread_] = ties;
  }

  // Ties with the cut in the runs before this thread's.
  LONGVIEW_HD int64_t TiesBefore() const {
    int64_t rank = 0;
    for (int i = 0; i < thread_; ++i) rank += shared_.ties[i];
    return rank;
  }

  // Whether a cut of mass leaves a token, of those with weights; `rank` counts ties with it, in the
  // order of their ids. A token goes if those before it have the mass; the first never does.
  LONGVIEW_HD bool Keeps(Cut cut, int64_t id, int64_t& rank) const {
    const uint64_t key = KeyOf(cut, id);
    if (key != mine_.cut.key) return key > mine_.cut.key;
    const double before = mine_.cut.above + static_cast<double>(rank++) * weights_[id];
    return before == 0 || before < mine_.cut.wanted;
  }

  LONGVIEW_HD void SumKept() {
    int64_t rank = row_.top_p < 1 ? TiesBefore() : 0;
    double sum = 0;
    for (int64_t id = RunBegin(); id < RunEnd(); ++id) {
      if (weights_[id] <= 0) continue;
      const bool in_nucleus = row_.top_p >= 1 || Keeps(Cut::kNucleus, id, rank);
      // The best weighs 1.
      if (!in_nucleus || weights_[id] < row_.min_p) weights_[id] = 0.0f;
      sum += weights_[id];
    }
    shared_.sums[thread_] = sum;
  }

  // Total and entropy of what is kept, and the best of it, given for the next phase.
  LONGVIEW_HD void Survey() {
    mine_.total = SumOfSums();
    double entropy = 0;
    Scored best;
    for (int id = thread_; id < vocab_; id += kSampleThreads) {
      if (weights_[id] <= 0) continue;
      const double p = weights_[id] / mine_.total;
      if (p > 0) entropy -= p * log(p);
      const Scored own{scores_[id], id};
      if (own.Before(best)) best = own;
    }
    shared_.entropies[thread_] = entropy;
    shared_.largest[0].Give(thread_, best);
  }

  // Tokens whose surprise is nearest to the entropy, until they have the mass.
  LONGVIEW_HD void KeepTypical(int phase) {
    if (phase == 0) return Survey();
    --phase;
    if (phase == 0) {
      mine_.entropy = Sum(shared_.entropies);
      mine_.cut.wanted = row_.typical_p * mine_.total;
    }
    if (phase < Select::kPhases) {
      return shared_.select.Phase(phase, thread_, mine_.cut, [&](auto&& item) {
        for (int id = thread_; id < vocab_; id += kSampleThreads) {
          if (weights_[id] > 0) item(KeyOf(Cut::kTypical, id), weights_[id]);
        }
      });
    }
    if (phase == Select::kPhases) return CountTies(Cut::kTypical);
    int64_t rank = TiesBefore();
    double sum = 0;
    for (int64_t id = RunBegin(); id < RunEnd(); ++id) {
      if (weights_[id] <= 0) continue;
      if (!Keeps(Cut::kTypical, id, rank)) weights_[id] = 0.0f;
      sum += weights_[id];
    }
    shared_.sums[thread_] = sum;
  }

  // Tokens that are as probable as epsilon, then eta, asks; the best of them stays in any case.
  LONGVIEW_HD void KeepAbove(int phase) {
    if (phase % 2 == 0) return Survey();
    double floor = row_.epsilon_cutoff;
    if (phase > 1 || floor <= 0) {
      const double eta = row_.eta_cutoff, least = sqrt(eta) * exp(-Sum(shared_.entropies));
      floor = least < eta ? least : eta;
    }
    const int32_t best = shared_.largest[0].Take().id;
    double sum = 0;
    for (int64_t id = RunBegin(); id < RunEnd(); ++id) {
      if (weights_[id] <= 0) continue;
      if (id != best && weights_[id] / mine_.total < floor) weights_[id] = 0.0f;
      sum += weights_[id];
    }
    shared_.sums[thread_] = sum;
  }

  LONGVIEW_HD double SumOfSums() const { return Sum(shared_.sums); }

  LONGVIEW_HD static double Sum(const double* of_threads) {
    double total = 0;
#pragma unroll 4
    for (int i = 0; i < kSampleThreads; ++i) total += of_threads[i];
    return total;
  }

  // Every thread finds whose run the draw falls into, and that thread the token.
  LONGVIEW_HD void Pick() {
    double left = SumOfSums() * Uniform(row_.seed, row_.sequence, row_.step);
    double left_of_run = 0;
    int run = -1;  // The last that can be drawn from: rounding may leave it a rest.
#pragma unroll 4
    for (int i = 0; i < kSampleThreads; ++i) {
      if (shared_.sums[i] <= 0) continue;
      run = i;
      left_of_run = left;
      left -= shared_.sums[i];
      if (left < 0) break;
    }
    if (run != thread_) return;
    for (int64_t id = RunBegin(); id < RunEnd(); ++id) {
      if (weights_[id] <= 0) continue;
      out_.id = static_cast<int32_t>(id);
      left_of_run -= weights_[id];
      if (left_of_run < 0) break;
    }
  }

  LONGVIEW_HD float LogProbability(float logit) const {
    return static_cast<float>(double{logit} - mine_.peak.score - mine_.log_sum);
  }

  const SampleRow& row_;
  const int vocab_;
  double* const scores_;
  float* const weights_;
  SampledToken& out_;
  ReportedToken* const top_;
  const int thread_;
  SampleThread& mine_;
  SampleShared& shared_;
};

struct SampleProgram {
  using Args = SampleRows;
  using Thread = SampleThread;
  using Shared = SampleShared;
  static constexpr int kThreads = kSampleThreads;

  LONGVIEW_HD static Grid GridOf(const Args& args) { return {args.count, 1}; }
  LONGVIEW_HD static int Phases(const Args& args, Block block) {
    const SampleRow& row = args.rows[block.x];
    return RowSampler::kEditPhases + RowSampler::DrawPhases(row) +
           RowSampler::ReportPhases(row, args.vocab);
  }
  LONGVIEW_HD static void Phase(const Args& args, Block block, int phase, int thread, Thread& mine,
                                Shared& shared) {
    RowSampler sampler(args, block.x, thread, mine, shared);
    if (phase < RowSampler::kEditPhases) return sampler.Edit(phase);
    if (mine.status != SampleStatus::kChosen) return;
    phase -= RowSampler::kEditPhases;
    const int draws = RowSampler::DrawPhases(args.rows[block.x]);
    if (phase < draws) return sampler.Draw(phase);
    sampler.Report(phase - draws);
  }
};

}  // namespace longview::kernels::cuda
