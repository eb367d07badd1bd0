// Tokens per second of a language model that decodes: the projection cache against a full cache, in
// one binary, with the same weights.
//
//   lm_decode_bench --context=8192,32768 --batch=1,8 --dtypes=fp32,bf16
//   lm_decode_bench --context=2048 --batch=1 --dtypes=fp32,int8 --full=false
//
// Transformer-LS of the published shape (30 layers, d 512, w 512, l 16, r 1) with random weights.
// States are filled with random rows; every sequence then reads one token a step. The first step of
// the first and the last sequence is held against plain loops in double (naive_lm.h), for a full
// cache at the smallest context, and nothing is printed where they differ. Steps of either cache
// and a loop that only reads are timed in turns, a few in a row; medians.
//
// The limit of a step is what it must read (weights, state, tables of positions) over the rate of
// that loop over as much memory, at most 1 GiB. Bytes of state are the allocator's.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "kernels/base/cpu_features.h"
#include "models/dense/weight_format.h"
#include "models/model.h"
#include "tests/bench/full_decoder.h"
#include "tests/bench/lm_contenders.h"
#include "tests/bench/naive_lm.h"
#include "tests/bench/plain_reader.h"
#include "tests/bench/random_lm.h"
#include "tests/bench/timed_steps.h"
#include "tests/support/temp_directory.h"

ABSL_FLAG(std::vector<std::string>, context, (std::vector<std::string>{"8192", "32768"}),
          "Tokens of each sequence.");
ABSL_FLAG(std::vector<std::string>, batch, (std::vector<std::string>{"1", "8"}), "Sequences.");
ABSL_FLAG(std::vector<std::string>, dtypes, (std::vector<std::string>{"fp32", "bf16"}),
          "Types of weights and caches.");
ABSL_FLAG(int, layers, 30, "Layers.");
ABSL_FLAG(int, rounds, 3, "Rounds; each times a few steps of both caches.");
ABSL_FLAG(int, steps, 4, "Timed steps of a round, after one that is not.");
ABSL_FLAG(double, max_gb, 9, "Caches larger than this are left out.");
ABSL_FLAG(bool, full, true, "Also decode with a full cache.");
ABSL_FLAG(int, threads, 2, "Compute threads.");
ABSL_FLAG(bool, cpu_time, false, "One thread by its CPU clock, for a machine that others use too.");

namespace longview::bench {
namespace {

using models::Compute;
using models::ForwardDecoder;

// The next step; where `naive` is given, its largest error beside the largest logit.
double CheckedStep(const NaiveLm* naive, int batch, Contender& contender) {
  std::vector<int> checked;
  std::vector<std::vector<double>> wanted;
  if (naive != nullptr) {
    checked = batch == 1 ? std::vector<int>{0} : std::vector<int>{0, batch - 1};
  }
  for (const int index : checked) {
    wanted.push_back(naive->Logits(contender.cache(), contender.sequence(index),
                                   contender.remembered(), kNextId));
  }
  const std::vector<float> got = contender.Step();
  double error = 0;
  for (size_t i = 0; i < checked.size(); ++i) {
    const size_t vocab = wanted[i].size();
    error = std::max(error,
                     RelativeError(std::span(got).subspan(checked[i] * vocab, vocab), wanted[i]));
  }
  return error;
}

// Wall time, or this thread's.
double Now() {
  timespec now{};
  clock_gettime(absl::GetFlag(FLAGS_cpu_time) ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Beside a loop over as much memory as a step reads.
class TimedOnHost {
 public:
  TimedOnHost(Contender& contender, double error, const kernels::ParallelFor& pool)
      : reader_(std::min(static_cast<int64_t>(contender.read_bytes()), kMostPlainBytes), pool),
        steps_(contender, error, {reader_.bytes(), [this] { reader_.Read(); }}, Now) {}

  TimedSteps& steps() { return steps_; }

 private:
  PlainReader reader_;
  TimedSteps steps_;
};

void PrintParts(const DecodeCase& what, const Projections& own) {
  const double each = 1e3 / own.steps();
  const models::RunTimes& times = own.times();
  std::printf("%s  a step: linears %.2f ms, attention %.2f, the rest %.2f\n", what.Text().c_str(),
              times.linears * each, times.attention * each, times.rest * each);
}

// False where a result is wrong.
bool RunCase(const DecodeCase& what, const NaiveLm& naive, bool check_full,
             ForwardDecoder& decoder) {
  const int rounds = absl::GetFlag(FLAGS_rounds), steps = absl::GetFlag(FLAGS_steps);
  const int64_t longest = what.context + rounds * (steps + 1) + 2;
  const double limit = absl::GetFlag(FLAGS_max_gb) * 1e9;
  const DecodedModel model{LmOf(decoder).config(), decoder.frame().compute,
                           decoder.host().block_type(), what.dtype == "int8"};
  const auto own_bytes =
      static_cast<double>(what.batch * decoder.frame().cache->shape().SequenceBytes(0, longest, 1));
  const double full_bytes = static_cast<double>(longest + 64) * what.batch * model.RowBytes();
  if (own_bytes > limit) {
    std::printf("%s  left out: %.1f GB\n", what.Text().c_str(), own_bytes * 1e-9);
    return true;
  }
  const kernels::ParallelFor& pool = *decoder.host().pool;
  Projections own(decoder, model, what, RandomOnHost(what));
  own.TimeParts();
  const double own_error = CheckedStep(&naive, what.batch, own);
  TimedOnHost timed_own(own, own_error, pool);
  std::unique_ptr<FullCache> full;
  std::unique_ptr<TimedOnHost> timed_full;
  double full_error = 0;
  if (absl::GetFlag(FLAGS_full) && full_bytes <= limit) {
    full = std::make_unique<FullCache>(
        std::make_unique<FullDecoder>(decoder, what.batch, longest + kernels::kBlockSlots), model,
        what, RandomOnHost(what));
    full_error = CheckedStep(check_full ? &naive : nullptr, what.batch, *full);
    timed_full = std::make_unique<TimedOnHost>(*full, full_error, pool);
  }
  if (!(own_error <= model.MostError()) || !(full_error <= model.MostError())) {
    std::fprintf(stderr, "%s  wrong: errors %g and %g of the largest logit, more than %g\n",
                 what.Text().c_str(), own_error, full_error, model.MostError());
    return false;
  }
  Race(what, rounds, steps, timed_own.steps(), timed_full ? &timed_full->steps() : nullptr);
  own.PrintState();
  PrintParts(what, own);
  if (absl::GetFlag(FLAGS_full) && !timed_full) {
    std::printf("%s  full       left out: %.1f GB\n", what.Text().c_str(), full_bytes * 1e-9);
  }
  std::fflush(stdout);
  return true;
}

int Main() {
  models::SetComputeThreads(absl::GetFlag(FLAGS_cpu_time) ? 1 : absl::GetFlag(FLAGS_threads));
  const std::vector<int64_t> contexts = Contexts(absl::GetFlag(FLAGS_context));
  const std::vector<int64_t> batches = PositiveNumbers(absl::GetFlag(FLAGS_batch));
  const longview::testing::TempDirectory folder;
  const std::string& directory = folder.path();
  WriteRandomLm(directory, absl::GetFlag(FLAGS_layers));
  const auto [shortest, longest] = std::minmax_element(contexts.begin(), contexts.end());
  const int max_tokens = static_cast<int>(*longest) +
                         absl::GetFlag(FLAGS_rounds) * (absl::GetFlag(FLAGS_steps) + 1) + 64;
  bool right = true;
  for (const std::string& dtype : absl::GetFlag(FLAGS_dtypes)) {
    models::Int8Linears int8;
    const bool bf16 = dtype == "bf16" || (dtype == "int8" && kernels::Bf16IsNative());
    const Compute compute = bf16 ? Compute::kBf16 : Compute::kFp32;
    const models::WeightFormat format(compute, dtype == "int8" ? &int8 : nullptr);
    const std::unique_ptr<ForwardDecoder> decoder =
        LoadLm(directory, format, max_tokens, absl::GetFlag(FLAGS_max_gb) * 1e9);
    const NaiveLm naive(directory, LmOf(*decoder).config(), compute == Compute::kBf16);
    for (const int64_t context : contexts) {
      for (const int64_t batch : batches) {
        const DecodeCase what{context, static_cast<int>(batch), dtype};
        right = RunCase(what, naive, context == *shortest, *decoder) && right;
      }
    }
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace longview::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return longview::bench::Main();
}
