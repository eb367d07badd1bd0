// Whole decode steps of a Transformer-LS language model: one token for every sequence of a batch.
//
//   decode_bench --context=8192,32768 --batch=1,8,32 --caches=projection,full --dtypes=fp32,bf16
//
// Random weights of the published large model (30 layers, d 512, 8 heads, w 512, l 16, r 1) unless
// --model names a directory. The cache is filled with random rows instead of being read in. "full"
// is the same weights with a window as long as the text: raw keys and values of every token, with
// relative positions, beside the projected ones (a sixteenth more to read); its table of positions
// is as long as the text. "bytes" counts what a step must read once: weights, and per sequence
// visible keys and values, with the tables of positions once; "limit" is those bytes at the speed
// with which
// --threads threads sum a buffer of 256 MB in the same run. The context must be a multiple of 64.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/model_directory.h"
#include "models/parallel.h"
#include "models/transformer_ls/attention_plan.h"
#include "models/transformer_ls/decoder.h"
#include "tests/bench/random_transformer_ls.h"

ABSL_FLAG(std::string, model, "", "Model directory; empty: random weights.");
ABSL_FLAG(std::string, scratch, "/tmp/longview-random-transformer-ls", "Where those are written.");
ABSL_FLAG(int, layers, 30, "Layers of the random model.");
ABSL_FLAG(std::vector<std::string>, context, (std::vector<std::string>{"8192", "32768"}),
          "Tokens read before.");
ABSL_FLAG(std::vector<std::string>, batch, (std::vector<std::string>{"1", "8"}), "Sequences.");
ABSL_FLAG(std::vector<std::string>, caches, (std::vector<std::string>{"projection", "full"}),
          "Caches.");
ABSL_FLAG(std::vector<std::string>, dtypes, (std::vector<std::string>{"fp32", "bf16"}), "Types.");
ABSL_FLAG(int, threads, 2, "Compute threads.");
ABSL_FLAG(int, steps, 24, "Timed steps; the median is printed.");
ABSL_FLAG(double, max_gb, 12, "Cases whose cache needs more memory are left out.");

namespace longview::bench {
namespace {

using Clock = std::chrono::steady_clock;
using models::LsSequence;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
  std::exit(1);
}

// Bytes per second of reading, best of a few rounds.
double ReadSpeed(const kernels::ParallelFor& pool) {
  const size_t count = size_t{32} << 20;
  const std::vector<int64_t> buffer(count, 1);
  std::vector<int64_t> sums(static_cast<size_t>(pool.threads()) * 8);
  double best = 0;
  for (int round = 0; round < 5; ++round) {
    const auto start = Clock::now();
    kernels::RunOnThreads(pool, [&](int thread) {
      const auto threads = static_cast<size_t>(sums.size() / 8), t = static_cast<size_t>(thread);
      int64_t sum = 0;
      for (size_t i = count * t / threads; i < count * (t + 1) / threads; ++i) sum += buffer[i];
      sums[t * 8] = sum;
    });
    best = std::max(best, static_cast<double>(count) * 8 / Since(start));
  }
  return best;
}

// A sequence that has read `tokens` tokens, as far as the cache can tell.
std::unique_ptr<LsSequence> Filled(models::LsDecoder& decoder, int64_t tokens, uint32_t seed) {
  const models::LsLmConfig& config = decoder.config();
  kernels::ProjectionCache& cache = decoder.projection_cache();
  auto sequence = std::make_unique<LsSequence>(kernels::CacheSequence(&cache));
  const std::vector<int32_t> ids(static_cast<size_t>(tokens), static_cast<int32_t>(seed % 256));
  kernels::CacheStep step(&cache);
  if (!step.Append(kernels::CacheStep::kPrefill, &sequence->cache(), ids)) {
    std::fprintf(stderr, "no memory for a sequence\n");
    std::exit(1);
  }
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> rows(static_cast<size_t>(tokens * config.width));
  for (float& value : rows) value = normal(random);
  kernels::ProjectionCache::Rows from;
  from.k = from.v = rows.data();
  from.k_row_stride = from.v_row_stride = config.width;
  from.k_head_stride = from.v_head_stride = config.head_dim();
  for (int strip = 0; strip < static_cast<int>(cache.shape().strips.size()); ++strip) {
    for (int layer = 0; layer < config.layers; ++layer) {
      cache.Write(strip, layer, step.places(kernels::CacheStep::kPrefill, strip), from,
                  *decoder.context().pool);
    }
  }
  return sequence;
}

struct Result {
  double seconds = 0;
  models::LsTimes times;  // Per step.
};

Result TimeSteps(models::LsDecoder& decoder, int64_t context, int batch) {
  std::vector<std::unique_ptr<LsSequence>> sequences;
  for (int i = 0; i < batch; ++i) {
    sequences.push_back(Filled(decoder, context, static_cast<uint32_t>(i + 1)));
  }
  const int steps = absl::GetFlag(FLAGS_steps), warm = 3;
  const int32_t token = 65;
  Result result;
  std::vector<double> seconds;
  for (int s = 0; s < warm + steps; ++s) {
    if (s == warm) decoder.set_times(&result.times);
    std::vector<models::DecoderFeed> feeds;
    for (auto& sequence : sequences) {
      feeds.push_back({sequence.get(),
                       {&token, 1},
                       models::DecoderPhase::kDecode,
                       models::WantedLogits::kLast});
    }
    const auto start = Clock::now();
    const auto step = decoder.Begin(feeds);
    while (step->Advance()) {
    }
    if (s >= warm) seconds.push_back(Since(start));
    if (!step->status().ok()) OrDie<int>(step->status());
  }
  decoder.set_times(nullptr);
  std::nth_element(seconds.begin(), seconds.begin() + steps / 2, seconds.end());
  result.seconds = seconds[steps / 2];
  for (double* part : {&result.times.linears, &result.times.decode_attention, &result.times.rest}) {
    *part /= steps;
  }
  return result;
}

double StepBytes(const models::LsDecoder& decoder, int64_t context, int batch) {
  const models::LsLmConfig& config = decoder.config();
  const auto element = static_cast<double>(models::ElementBytes(decoder.context().compute));
  const auto cached = static_cast<double>(kernels::SizeOf(decoder.context().block_type()));
  const double rows =
      config.layers * config.width * static_cast<double>(VisibleKeys(config, context));
  const double weights =
      models::LinearWork(config) + static_cast<double>(config.vocab) * config.width;
  return element * (weights + rows) + cached * 2 * rows * batch;
}

void Case(const std::string& directory, const std::string& dtype, bool full, int64_t context,
          int batch, double read_speed) {
  models::ModelDirectory files = OrDie(models::OpenModelDirectory(directory));
  models::LsLmConfig config =
      OrDie(models::ParseLsLmConfig(files.config, files.common, files.config_path));
  const auto longest = static_cast<int>(context + absl::GetFlag(FLAGS_steps) + 8);
  if (full) config.window = longest;
  const models::Compute compute = dtype == "fp32" ? models::Compute::kFp32 : models::Compute::kBf16;
  const double cache =
      2.2 * 4 * config.layers * config.width * batch *
      (static_cast<double>(VisibleKeys(config, longest)) + 2 * config.window / 8.0 + 256);
  if (cache > absl::GetFlag(FLAGS_max_gb) * 1e9) {
    std::printf("%-5s %-10s %7ld %4d  left out: %.1f GB of cache\n", dtype.c_str(),
                full ? "full" : "projection", static_cast<long>(context), batch, cache / 1e9);
    return;
  }
  const auto decoder = OrDie(models::LsDecoder::Create(config, std::move(files.checkpoint),
                                                       directory, compute, longest, cache));
  const Result result = TimeSteps(*decoder, context, batch);
  const double bytes = StepBytes(*decoder, context, batch);
  const double limit = bytes / read_speed;
  std::printf("%-5s %-10s %7ld %4d %9.2f ms %9.1f %8.2f %8.2f %8.2f %8.1f MB %5.0f %%\n",
              dtype.c_str(), full ? "full" : "projection", static_cast<long>(context), batch,
              result.seconds * 1e3, batch / result.seconds, result.times.linears * 1e3,
              result.times.decode_attention * 1e3, result.times.rest * 1e3, bytes / 1e6,
              100 * limit / result.seconds);
  std::fflush(stdout);
}

void Main() {
  models::SetComputeThreads(absl::GetFlag(FLAGS_threads));
  std::string directory = absl::GetFlag(FLAGS_model);
  if (directory.empty()) {
    directory = absl::GetFlag(FLAGS_scratch);
    TransformerLsShape shape;
    shape.layers = absl::GetFlag(FLAGS_layers);
    WriteRandomTransformerLs(directory, shape);
  }
  const models::TorchParallelFor pool;
  const double read_speed = ReadSpeed(pool);
  std::printf("reading: %.1f GB/s with %d threads\n", read_speed / 1e9, pool.threads());
  std::printf(
      "dtype cache      context batch    step    tokens/s  linears  attention  rest (ms)"
      "   bytes   of limit\n");
  for (const std::string& dtype : absl::GetFlag(FLAGS_dtypes)) {
    for (const std::string& context : absl::GetFlag(FLAGS_context)) {
      for (const std::string& batch : absl::GetFlag(FLAGS_batch)) {
        for (const std::string& cache : absl::GetFlag(FLAGS_caches)) {
          int tokens = 0, sequences = 0;
          if (!absl::SimpleAtoi(context, &tokens) || tokens % 64 != 0 || tokens <= 0 ||
              !absl::SimpleAtoi(batch, &sequences) || sequences <= 0) {
            std::fprintf(stderr, "--context: multiples of 64; --batch: at least 1\n");
            std::exit(1);
          }
          Case(directory, dtype, cache == "full", tokens, sequences, read_speed);
        }
      }
    }
  }
}

}  // namespace
}  // namespace longview::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  longview::bench::Main();
}
