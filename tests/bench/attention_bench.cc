// Banded attention alone: what the span executor makes of the CPU's arithmetic.
//
//   attention_bench --tokens=512,4096 --window=256 --isas=avx512,avx2 --threads=1,2
//
// Longformer's local rows with one global token, batch 1, random inputs. The result is held
// against the scalar reference on sampled rows before a figure is printed. Useful operations
// count the pairs of the pattern, 2 (Dk + Dv) each; the share is of a register-only
// multiply-add loop of the same instruction set in the same run, per thread. Times are of the
// busiest thread's own CPU clock, which other load on the machine hardly changes.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/base/peak_rate.h"
#include "kernels/span/band_planner.h"
#include "kernels/span/executor.h"
#include "tests/bench/timed_pool.h"

ABSL_FLAG(std::vector<std::string>, tokens,
          (std::vector<std::string>{"512", "1024", "4096", "16384"}), "Lengths.");
ABSL_FLAG(int, window, 256, "Keys seen on either side.");
ABSL_FLAG(int, heads, 12, "Heads.");
ABSL_FLAG(int, dim, 64, "Head dimension.");
ABSL_FLAG(int, globals, 1, "Global tokens at the front.");
ABSL_FLAG(std::vector<std::string>, isas, {}, "Variants; empty: all this CPU runs.");
ABSL_FLAG(std::vector<std::string>, dtypes, (std::vector<std::string>{"fp32", "bf16"}),
          "Types of queries, keys, values and output.");
ABSL_FLAG(std::vector<std::string>, threads, (std::vector<std::string>{"1", "2"}), "Threads.");
ABSL_FLAG(int, repeats, 9, "Timed runs of each case; the best and the median are printed.");
ABSL_FLAG(bool, json, false, "One JSON object per line instead of a table.");

namespace longview::bench {
namespace {

using kernels::Call;
using kernels::DType;
using kernels::Isa;
using kernels::Plan;

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Block = std::unique_ptr<void, FreeDeleter>;

Block Allocate(size_t bytes) {
  return Block(std::aligned_alloc(kernels::kAlignment, kernels::AlignUp(bytes + 1)));
}

// Queries, keys and values [tokens, heads, dim] of one layer.
struct Layer {
  int tokens, heads, dim;
  DType dtype;
  std::vector<float> wide[3];
  std::vector<uint16_t> narrow[3];

  const void* data(int which) const {
    if (dtype == DType::kFloat32) return wide[which].data();
    return narrow[which].data();
  }
};

Layer RandomLayer(int tokens, int heads, int dim, DType dtype) {
  Layer layer{tokens, heads, dim, dtype, {}, {}};
  std::mt19937 random(20260401);
  std::normal_distribution<float> normal;
  for (int which = 0; which < 3; ++which) {
    layer.wide[which].resize(static_cast<size_t>(tokens) * heads * dim);
    for (float& x : layer.wide[which]) {
      x = normal(random);
      if (dtype == DType::kBFloat16) {
        layer.narrow[which].push_back(kernels::FloatToBFloat16(x));
        x = kernels::BFloat16ToFloat(layer.narrow[which].back());
      }
    }
  }
  return layer;
}

Plan MakePlan(const Layer& layer, const std::vector<int32_t>* wanted, int tile_rows) {
  std::vector<uint8_t> roles(layer.tokens, kernels::kLocalToken);
  for (int i = 0; i < absl::GetFlag(FLAGS_globals) && i < layer.tokens; ++i) {
    roles[i] = kernels::kGlobalToken;
  }
  kernels::BandPattern pattern;
  pattern.heads = layer.heads;
  pattern.window_left = pattern.window_right = absl::GetFlag(FLAGS_window);
  pattern.tile_rows = tile_rows;
  kernels::BandSequence sequence;
  sequence.tokens = layer.tokens;
  sequence.roles = roles;
  sequence.wanted = wanted;
  return kernels::PlanBand(pattern, {&sequence, 1});
}

// A call and the memory it points to.
struct Run {
  Call call;
  std::vector<kernels::Source> sources;
  std::vector<std::byte> out;
  Block memory;
  kernels::Workspace workspace;
};

void Prepare(const Layer& layer, const Plan& plan, const void* q, int rows, Isa isa, int threads,
             Run* run) {
  const int64_t width = static_cast<int64_t>(layer.heads) * layer.dim;
  kernels::Source source;
  source.k = layer.data(1);
  source.v = layer.data(2);
  source.dtype = layer.dtype;
  source.k_row_stride = source.v_row_stride = width;
  source.k_head_stride = source.v_head_stride = layer.dim;
  run->sources.assign(plan.sources.size(), source);
  run->out.resize(rows * width * kernels::SizeOf(layer.dtype));
  Call& call = run->call;
  call.q = q;
  call.out = run->out.data();
  call.dtype = layer.dtype;
  call.q_row_stride = call.out_row_stride = width;
  call.q_head_stride = call.out_head_stride = layer.dim;
  call.Dk = call.Dv = layer.dim;
  call.H = layer.heads;
  call.scale = 1.0f / std::sqrt(static_cast<float>(layer.dim));
  call.sources = run->sources;
  const kernels::WorkspaceBytes bytes = kernels::Measure(plan, call, isa);
  run->memory = Allocate(bytes.total(threads));
  run->workspace = kernels::CarveWorkspace(run->memory.get(), bytes);
}

float OutputAt(const Run& run, DType dtype, size_t at) {
  if (dtype == DType::kFloat32) return reinterpret_cast<const float*>(run.out.data())[at];
  return kernels::BFloat16ToFloat(reinterpret_cast<const uint16_t*>(run.out.data())[at]);
}

std::vector<int32_t> SampledRows(int tokens) {
  std::vector<int32_t> rows;
  const int first = absl::GetFlag(FLAGS_globals);
  for (int row : {first, first + 1, absl::GetFlag(FLAGS_window), tokens / 2, tokens - 1}) {
    rows.push_back(std::min(row, tokens - 1));
  }
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) rows.push_back(first + random() % (tokens - first));
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

// Largest difference from the reference on sampled rows.
double MaxError(const Layer& layer, const Run& run) {
  const std::vector<int32_t> rows = SampledRows(layer.tokens);
  const size_t width = static_cast<size_t>(layer.heads) * layer.dim;
  const size_t row_bytes = width * kernels::SizeOf(layer.dtype);
  std::vector<std::byte> q(rows.size() * row_bytes);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto* from = static_cast<const std::byte*>(layer.data(0)) + rows[i] * row_bytes;
    std::copy_n(from, row_bytes, q.data() + i * row_bytes);
  }
  const Plan plan = MakePlan(layer, &rows, 1);
  Run reference;
  Prepare(layer, plan, q.data(), static_cast<int>(rows.size()), Isa::kScalar, 1, &reference);
  kernels::RunPlan(plan, reference.call, reference.workspace, kernels::SerialFor(), Isa::kScalar);
  double worst = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t c = 0; c < width; ++c) {
      const double want = OutputAt(reference, layer.dtype, i * width + c);
      const double got = OutputAt(run, layer.dtype, rows[i] * width + c);
      if (!(std::abs(want - got) <= worst)) worst = std::abs(want - got);
    }
  }
  return worst;
}

struct Timing {
  double pack = 0, total = 0, wall = 0;
};

// Regions in the executor's order: packing, items, and merging where a plan has partial states.
Timing TimeOnce(const Plan& plan, const Run& run, TimedPool* pool, Isa isa) {
  pool->Clear();
  kernels::RunPlan(plan, run.call, run.workspace, *pool, isa);
  Timing timing;
  timing.pack = pool->regions().front().cpu;
  for (const RegionTime& region : pool->regions()) {
    timing.total += region.cpu;
    timing.wall += region.wall;
  }
  return timing;
}

void Print(const Layer& layer, Isa isa, int threads, const Plan& plan, double error, double peak,
           std::vector<Timing> timings) {
  std::sort(timings.begin(), timings.end(),
            [](const Timing& a, const Timing& b) { return a.total < b.total; });
  const Timing& best = timings.front();
  const Timing& median = timings[timings.size() / 2];
  const double flop = 4.0 * layer.dim * static_cast<double>(plan.useful);
  const double rate = flop / best.total * 1e-9;
  const char* dtype = layer.dtype == DType::kFloat32 ? "fp32" : "bf16";
  const char* format =
      absl::GetFlag(FLAGS_json)
          ? "{\"T\": %d, \"dtype\": \"%s\", \"isa\": \"%s\", \"threads\": %d, \"best_ms\": %.4f, "
            "\"median_ms\": %.4f, \"wall_ms\": %.4f, \"pack_ms\": %.4f, \"gflops\": %.2f, "
            "\"peak_share\": %.4f, \"useful_share\": %.4f, \"max_error\": %.3g}\n"
          : "%6d  %s  %-10s  %d  %9.3f  %9.3f  %9.3f  %8.3f  %8.1f  %6.3f  %6.3f  %9.2g\n";
  std::printf(format, layer.tokens, dtype, std::string(kernels::IsaName(isa)).c_str(), threads,
              best.total * 1e3, median.total * 1e3, best.wall * 1e3, best.pack * 1e3, rate,
              rate / (peak * threads),
              static_cast<double>(plan.useful) / static_cast<double>(plan.executed), error);
  std::fflush(stdout);
}

// False where the result is wrong.
bool RunCase(const Layer& layer, Isa isa, int threads) {
  const double peak = kernels::PeakGflops(isa);
  const Plan plan = MakePlan(layer, nullptr, kernels::TileRows(isa));
  TimedPool pool(threads);
  Run run;
  Prepare(layer, plan, layer.data(0), layer.tokens, isa, threads, &run);
  TimeOnce(plan, run, &pool, isa);
  const double error = MaxError(layer, run);
  const double limit = layer.dtype == DType::kFloat32 ? 2e-5 : 2e-2;
  if (!(error <= limit)) {
    std::fprintf(stderr, "%s: error %g on sampled rows exceeds %g\n",
                 std::string(kernels::IsaName(isa)).c_str(), error, limit);
    return false;
  }
  std::vector<Timing> timings;
  for (int i = 0; i < absl::GetFlag(FLAGS_repeats); ++i) {
    timings.push_back(TimeOnce(plan, run, &pool, isa));
  }
  Print(layer, isa, threads, plan, error, peak, std::move(timings));
  return true;
}

std::vector<Isa> WantedIsas() {
  const std::vector<std::string> names = absl::GetFlag(FLAGS_isas);
  std::vector<Isa> isas;
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmxBf16}) {
    const bool wanted = names.empty() ||
                        std::find(names.begin(), names.end(), kernels::IsaName(isa)) != names.end();
    if (wanted && kernels::IsaSupported(isa)) isas.push_back(isa);
  }
  return isas;
}

std::vector<int> Numbers(const std::vector<std::string>& texts) {
  std::vector<int> numbers;
  for (const std::string& text : texts) {
    int number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < 1) {
      std::fprintf(stderr, "not a positive number: %s\n", text.c_str());
      std::exit(2);
    }
    numbers.push_back(number);
  }
  return numbers;
}

int Main() {
  if (!absl::GetFlag(FLAGS_json)) {
    std::printf("bf16 calls choose %s here\n",
                std::string(kernels::IsaName(kernels::BestBf16Isa())).c_str());
    std::printf(
        "     T  type  isa   threads  best ms  median ms    wall ms   pack ms   GFLOP/s  "
        "peak   useful   error\n");
  }
  bool right = true;
  for (int tokens : Numbers(absl::GetFlag(FLAGS_tokens))) {
    for (const std::string& name : absl::GetFlag(FLAGS_dtypes)) {
      const DType dtype = name == "bf16" ? DType::kBFloat16 : DType::kFloat32;
      const Layer layer =
          RandomLayer(tokens, absl::GetFlag(FLAGS_heads), absl::GetFlag(FLAGS_dim), dtype);
      for (Isa isa : WantedIsas()) {
        if (kernels::EffectiveIsa(isa, dtype) != isa) continue;
        for (int threads : Numbers(absl::GetFlag(FLAGS_threads))) {
          right = RunCase(layer, isa, threads) && right;
        }
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
