// A whole Longformer forward pass, taken apart: linears, attention, the rest.
//
//   longformer_bench --model=DIR --tokens=512,1024,4096 --dtypes=fp32,bf16,int8 --threads=2
//
// Without --model a directory with random weights of longformer-base-4096's size is written to
// --scratch (600 MB) and kept there. One document with one global token, batch 1. "GEMM rate" is
// a loop over one packed 256-row product of the feed-forward shape in the same run; the share is
// the linears' part of the whole time. Memory is the peak of the resident set during a run
// beyond what was resident before the first, as the kernel counts it. "error" is the largest
// difference of logits from those of the first type, over their largest magnitude; a type that is
// off by more than a quarter ends the run.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/cpu_features.h"
#include "models/dense/linear.h"
#include "models/encoder/model.h"
#include "models/model.h"
#include "tests/bench/random_checkpoint.h"
#include "tests/bench/random_longformer.h"

ABSL_FLAG(std::string, model, "", "Model directory; empty: random weights of base size.");
ABSL_FLAG(std::string, scratch, "", "Where those are written; default: temporary files' folder.");
ABSL_FLAG(std::vector<std::string>, tokens, (std::vector<std::string>{"512", "1024", "4096"}),
          "Lengths.");
ABSL_FLAG(std::vector<std::string>, dtypes, (std::vector<std::string>{"fp32", "bf16"}), "Types.");
ABSL_FLAG(int, threads, 2, "Compute threads.");
ABSL_FLAG(int, repeats, 3, "Timed runs of each case; the best is printed.");

namespace longview::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A field of /proc/self/status in MB.
double StatusMegabytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::atof(line.c_str() + field.size() + 1) / 1024;
  }
  return 0;
}

void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double GemmRate(models::Compute compute, bool int8) {
  constexpr int kOut = 3072, kIn = 768;
  const std::vector<float> weight(static_cast<size_t>(kOut) * kIn, 0.01f);
  models::PanelRules rules;
  const auto linear = int8 ? models::Linear::PackInt8("rate", weight, kOut, kIn, compute)
                           : models::Linear::Pack("rate", weight, kOut, kIn, compute, rules);
  if (!linear.ok()) return 0;
  const std::vector<float> x(static_cast<size_t>(models::kPanelRows) * kIn, 0.5f);
  double best = 0;
  for (int i = 0; i < 100; ++i) {
    const auto start = Clock::now();
    linear->Panel(x.data(), models::kPanelRows, models::kPanelRows);
    best = std::max(best, 2.0 * models::kPanelRows * kOut * kIn / Since(start));
  }
  return best / 1e9;
}

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

struct Measured {
  double seconds = 1e30;
  models::RunTimes times;
  double prepare_seconds = 0;
  double peak_megabytes = 0;
  std::vector<float> logits;
};

Measured Measure(const models::Model& model, int tokens) {
  models::Request request;
  request.tokens.emplace();
  for (int i = 0; i < tokens; ++i) request.tokens->ids.push_back(5 + i * 7919 % 50000);
  request.tensors = {"logits"};
  const auto prepare = Clock::now();
  auto item = model.Prepare(request);
  if (!item.ok()) Fail(item.status());
  const models::Item* items[] = {item->get()};
  Measured best;
  best.prepare_seconds = Since(prepare);
  for (int i = 0; i <= absl::GetFlag(FLAGS_repeats); ++i) {
    models::RunTimes times;
    const double before = StatusMegabytes("VmRSS:");
    ResetPeak();
    const auto start = Clock::now();
    const auto run = model.Begin(items, &times);
    while (run->Advance()) {
    }
    const auto answer = run->Take(0);
    const double seconds = Since(start);
    if (!answer.ok()) Fail(answer.status());
    const std::span<const float> logits = answer->Find("logits")->floats();
    best.logits.assign(logits.begin(), logits.end());
    best.peak_megabytes = std::max(best.peak_megabytes, StatusMegabytes("VmHWM:") - before);
    if (i > 0 && seconds < best.seconds) {
      best.seconds = seconds;
      best.times = times;
    }
  }
  return best;
}

// Fails beyond a quarter: a time of a wrong answer says nothing.
double ErrorOf(const std::vector<float>& got, const std::vector<float>& want) {
  double most = 0, difference = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    most = std::max(most, std::abs(double{want[i]}));
    difference = std::max(difference, std::abs(double{got[i]} - want[i]));
  }
  if (difference > most / 4) Fail(absl::InternalError("logits differ too much to compare times"));
  return most > 0 ? difference / most : 0;
}

// By number of tokens.
using Logits = std::map<int, std::vector<float>>;

void Bench(const std::string& directory, const std::string& dtype, Logits& first) {
  auto model = models::LoadModel(directory, {.dtype = dtype, .device = "cpu"});
  if (!model.ok()) Fail(model.status());
  for (const std::string& note : (*model)->info().notes) std::printf("note: %s\n", note.c_str());
  const bool int8 = dtype == "int8";
  const bool bf16 = dtype == "bf16" || (int8 && kernels::Bf16IsNative());
  const auto compute = bf16 ? models::Compute::kBf16 : models::Compute::kFp32;
  std::printf("%s: %.0f MB of weights, GEMM rate %.0f GFLOP/s\n", (*model)->info().dtype.c_str(),
              (*model)->info().memory_bytes / 1e6, GemmRate(compute, int8));
  std::printf("%8s %10s %10s %10s %10s %7s %10s %9s %9s %9s\n", "tokens", "ms", "linears",
              "attention", "rest", "share", "predicted", "prepare", "peak MB", "error");
  if (auto status = (*model)->WarmUp(); !status.ok()) Fail(status);
  for (const std::string& text : absl::GetFlag(FLAGS_tokens)) {
    const int tokens = std::atoi(text.c_str());
    const Measured measured = Measure(**model, tokens);
    const auto cost = (*model)->EstimateTokens(tokens);
    if (!cost.ok()) Fail(cost.status());
    std::printf("%8d %10.1f %10.1f %10.1f %10.1f %7.2f %10.1f %9.2f %9.1f %9.1e\n", tokens,
                measured.seconds * 1e3, measured.times.linears * 1e3,
                measured.times.attention * 1e3, measured.times.rest * 1e3,
                measured.times.linears / measured.seconds, cost->seconds * 1e3,
                measured.prepare_seconds * 1e3, measured.peak_megabytes,
                ErrorOf(measured.logits, first.try_emplace(tokens, measured.logits).first->second));
  }
}

void Main() {
  models::SetComputeThreads(absl::GetFlag(FLAGS_threads));
  std::string directory = absl::GetFlag(FLAGS_model);
  if (directory.empty()) {
    directory = KeptModel(absl::GetFlag(FLAGS_scratch), "longformer",
                          [](const std::string& path) { WriteRandomLongformer(path, {}); });
  }
  std::printf("%s\n", models::DescribeBackend().c_str());
  Logits first;
  for (const std::string& dtype : absl::GetFlag(FLAGS_dtypes)) Bench(directory, dtype, first);
}

}  // namespace
}  // namespace longview::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  longview::bench::Main();
}
