// Tokens per second of a language model that decodes: the projection cache against a full cache, in
// one binary, with the same weights.
//
//   lm_decode_bench --context=8192,32768 --batch=1,8 --dtypes=fp32,bf16
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
#include <absl/strings/numbers.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/model.h"
#include "models/transformer_ls/decoder.h"
#include "tests/bench/lm_contenders.h"
#include "tests/bench/naive_lm.h"
#include "tests/bench/plain_reader.h"
#include "tests/bench/random_lm.h"
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
using models::LsDecoder;

constexpr int64_t kMostPlainBytes = int64_t{1} << 30;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "lm_decode_bench: %s\n", what.c_str());
  std::exit(1);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

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
  double error = 0, largest = 0;
  for (size_t i = 0; i < checked.size(); ++i) {
    const float* row = got.data() + checked[i] * wanted[i].size();
    for (size_t j = 0; j < wanted[i].size(); ++j) {
      largest = std::max(largest, std::abs(wanted[i][j]));
      const double difference = std::abs(row[j] - wanted[i][j]);
      if (!std::isfinite(difference)) return HUGE_VAL;
      error = std::max(error, difference);
    }
  }
  return largest > 0 ? error / largest : 0;
}

// Of the wall, or of this thread.
double Now() {
  timespec now{};
  clock_gettime(absl::GetFlag(FLAGS_cpu_time) ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Seconds(const std::function<void()>& work) {
  const double start = Now();
  work();
  return Now() - start;
}

class Timed {
 public:
  Timed(Contender& contender, const kernels::ParallelFor& pool)
      : contender_(contender),
        reader_(std::min(static_cast<int64_t>(contender.read_bytes()), kMostPlainBytes), pool) {}

  void Round(int steps) {
    for (int i = 0; i <= steps; ++i) {
      const double seconds = Seconds([&] { contender_.Step(); });
      if (i > 0) steps_.push_back(seconds);
    }
    for (int i = 0; i <= steps; ++i) {
      const double seconds = Seconds([&] { reader_.Read(); });
      if (i > 0) reads_.push_back(seconds);
    }
  }

  double seconds() const { return Median(steps_); }

  void Print(const DecodeCase& what, double error) const {
    const double plain = static_cast<double>(reader_.bytes()) / Median(reads_);
    const double rate = contender_.read_bytes() / seconds();
    std::printf(
        "%s  %-10s %9.2f ms (least %.2f) %9.2f tokens/s  reads %.3f GB at %.2f GB/s, %.3f of %.2f "
        "(best %.2f)",
        what.Text().c_str(), contender_.name(), seconds() * 1e3,
        *std::min_element(steps_.begin(), steps_.end()) * 1e3, what.batch / seconds(),
        contender_.read_bytes() * 1e-9, rate * 1e-9, rate / plain, plain * 1e-9,
        static_cast<double>(reader_.bytes()) * 1e-9 /
            *std::min_element(reads_.begin(), reads_.end()));
    if (error > 0) std::printf("; error %.2g", error);
    std::printf("\n");
  }

 private:
  Contender& contender_;
  PlainReader reader_;
  std::vector<double> steps_, reads_;
};

void PrintMore(const DecodeCase& what, const Projections& own, const LsDecoder& decoder) {
  const double row_bytes = what.batch * RowBytes(decoder);
  const auto context = static_cast<double>(what.context);
  const double rows = kLmWindow + context / kLmSegment;
  std::printf(
      "%s  state: %.3f MB, closed form %.3f; %.3f of w + T r / l rows, 1 / %.2f of T rows\n",
      what.Text().c_str(), own.held_bytes() * 1e-6, own.closed_form() * 1e-6,
      own.held_bytes() / (rows * row_bytes), context * row_bytes / own.held_bytes());
  const double each = 1e3 / own.steps();
  const models::EncoderTimes& times = own.times();
  std::printf("%s  a step: linears %.2f ms, attention %.2f, the rest %.2f\n", what.Text().c_str(),
              times.linears * each, times.attention * each, times.rest * each);
}

double MostError(const LsDecoder& decoder) {
  return decoder.context().compute == Compute::kFp32 ? 1e-4 : 3e-2;
}

// False where a result is wrong.
bool RunCase(const DecodeCase& what, const NaiveLm& naive, bool check_full, LsDecoder& decoder) {
  const int rounds = absl::GetFlag(FLAGS_rounds), steps = absl::GetFlag(FLAGS_steps);
  const int64_t longest = what.context + rounds * (steps + 1) + 2;
  const double limit = absl::GetFlag(FLAGS_max_gb) * 1e9;
  const auto own_bytes = static_cast<double>(
      what.batch * decoder.context().cache->shape().SequenceBytes(0, longest, 1));
  const double full_bytes = static_cast<double>(longest + 64) * what.batch * RowBytes(decoder);
  if (own_bytes > limit) {
    std::printf("%s  left out: %.1f GB\n", what.Text().c_str(), own_bytes * 1e-9);
    return true;
  }
  const kernels::ParallelFor& pool = *decoder.context().pool;
  Projections own(decoder, what);
  const double own_error = CheckedStep(&naive, what.batch, own);
  Timed timed_own(own, pool);
  std::unique_ptr<FullCache> full;
  std::unique_ptr<Timed> timed_full;
  double full_error = 0;
  if (absl::GetFlag(FLAGS_full) && full_bytes <= limit) {
    full = std::make_unique<FullCache>(decoder, what, longest + kernels::kBlockSlots);
    full_error = CheckedStep(check_full ? &naive : nullptr, what.batch, *full);
    timed_full = std::make_unique<Timed>(*full, pool);
  }
  if (!(own_error <= MostError(decoder)) || !(full_error <= MostError(decoder))) {
    std::fprintf(stderr, "%s  wrong: errors %g and %g of the largest logit, more than %g\n",
                 what.Text().c_str(), own_error, full_error, MostError(decoder));
    return false;
  }
  for (int i = 0; i < rounds; ++i) {
    timed_own.Round(steps);
    if (timed_full) timed_full->Round(steps);
  }
  timed_own.Print(what, own_error);
  PrintMore(what, own, decoder);
  if (timed_full) {
    timed_full->Print(what, full_error);
    std::printf("%s  projection cache: %.2f times the tokens per second\n", what.Text().c_str(),
                timed_full->seconds() / timed_own.seconds());
  } else if (absl::GetFlag(FLAGS_full)) {
    std::printf("%s  full       left out: %.1f GB\n", what.Text().c_str(), full_bytes * 1e-9);
  }
  std::fflush(stdout);
  return true;
}

std::vector<int64_t> Numbers(const std::vector<std::string>& texts) {
  std::vector<int64_t> numbers;
  for (const std::string& text : texts) {
    if (!absl::SimpleAtoi(text, &numbers.emplace_back()) || numbers.back() < 1) {
      Die("not a positive number: " + text);
    }
  }
  return numbers;
}

int Main() {
  models::SetComputeThreads(absl::GetFlag(FLAGS_cpu_time) ? 1 : absl::GetFlag(FLAGS_threads));
  const std::vector<int64_t> contexts = Numbers(absl::GetFlag(FLAGS_context));
  const std::vector<int64_t> batches = Numbers(absl::GetFlag(FLAGS_batch));
  for (const int64_t context : contexts) {
    // Random rows stand for whole segments and blocks; open ones would need sums too.
    if (context % kernels::kBlockSlots != 0) Die("a context is not a multiple of 64");
  }
  const longview::testing::TempDirectory folder;
  const std::string& directory = folder.path();
  WriteRandomLm(directory, absl::GetFlag(FLAGS_layers));
  const auto [shortest, longest] = std::minmax_element(contexts.begin(), contexts.end());
  const int max_tokens = static_cast<int>(*longest) +
                         absl::GetFlag(FLAGS_rounds) * (absl::GetFlag(FLAGS_steps) + 1) + 64;
  bool right = true;
  for (const std::string& dtype : absl::GetFlag(FLAGS_dtypes)) {
    const Compute compute = dtype == "bf16" ? Compute::kBf16 : Compute::kFp32;
    const std::unique_ptr<LsDecoder> decoder =
        LoadLm(directory, compute, max_tokens, absl::GetFlag(FLAGS_max_gb) * 1e9);
    const NaiveLm naive(directory, decoder->config(), compute == Compute::kBf16);
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
