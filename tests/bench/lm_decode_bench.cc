// Tokens per second of a language model that decodes: the projection cache against a full cache, in
// one binary, with the same weights.
//
//   lm_decode_bench --context=8192,32768 --batch=1,8 --dtypes=fp32,bf16
//
// Transformer-LS of the published shape (30 layers, d 512, 8 heads, f 2048, w 512, l 16, r 1,
// V 208), random weights. States are filled with random rows, then steps of one token per sequence
// are timed, the two caches in turns. Before any of that a text of one segment is decoded both
// ways: its weights do not tell positions of the window apart, so the two must agree. The limit is
// what a step must read (weights, state, tables of positions) over the rate of a plain loop over as
// much memory in the same run.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/model_directory.h"
#include "models/transformer_ls/decoder.h"
#include "tests/bench/full_cache_decoder.h"
#include "tests/bench/random_cache.h"
#include "tests/bench/random_checkpoint.h"

ABSL_FLAG(std::vector<std::string>, context, (std::vector<std::string>{"8192", "32768"}),
          "Tokens of each sequence.");
ABSL_FLAG(std::vector<std::string>, batch, (std::vector<std::string>{"1", "8"}), "Sequences.");
ABSL_FLAG(std::vector<std::string>, dtypes, (std::vector<std::string>{"fp32", "bf16"}),
          "Types of weights and caches.");
ABSL_FLAG(int, layers, 30, "Layers.");
ABSL_FLAG(int, steps, 12, "Timed steps of each cache; the median is printed.");
ABSL_FLAG(double, max_gb, 9, "Caches larger than this are left out.");
ABSL_FLAG(bool, full, true, "Also decode with a full cache.");
ABSL_FLAG(int, threads, 2, "Compute threads.");

namespace longview::bench {
namespace {

using models::Compute;
using models::DecoderFeed;
using models::LsDecoder;
using models::LsSequence;

constexpr int kWidth = 512, kHeads = 8, kIntermediate = 2048, kVocab = 208;
constexpr int kWindow = 512, kSegment = 16;
constexpr int64_t kReadBytes = int64_t{1} << 29;  // Of the plain loop.

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "lm_decode_bench: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (!value.ok()) Die(value.status().ToString());
  return *std::move(value);
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<RandomTensor> Tensors(int layers) {
  const std::string model = "decoder.model.";
  std::vector<RandomTensor> tensors = {{model + "in_emb.weight", {kVocab, kWidth}, 0, 0.1f},
                                       {model + "out_emb.bias", {kVocab}, 0, 0.1f}};
  for (int i = 0; i < layers; ++i) {
    const std::string layer = model + "layers." + std::to_string(i) + ".";
    const std::string attention = layer + "attn.";
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, float mean,
                         float spread) {
      tensors.push_back({name, std::move(shape), mean, spread});
    };
    const auto add_norm = [&](const std::string& name) {
      add(name + ".weight", {kWidth}, 1, 0.1f);
      add(name + ".bias", {kWidth}, 0, 0.05f);
    };
    for (const char* name : {"proj_query", "proj_key", "proj_val", "proj_out"}) {
      add(attention + name + ".weight", {kWidth, kWidth}, 0, 0.07f);
    }
    add(attention + "dconv_1.weight", {kHeads, kWidth}, 0, 0.07f);
    add(attention + "dconv_1.bias", {kHeads}, 0, 0.07f);
    // Zeros: positions of the window are not told apart.
    add(attention + "r_net.weight", {kWidth, kWidth}, 0, 0);
    add(attention + "r_r_bias", {1, kHeads, 1, kWidth / kHeads}, 0, 0);
    add(attention + "r_w_bias", {1, kHeads, 1, 1, kWidth / kHeads}, 0, 0);
    add(attention + "r_net_chunk.weight", {kWidth, kWidth}, 0, 0.07f);
    add(attention + "r_net_chunk.bias", {kWidth}, 0, 0.07f);
    add_norm(attention + "dual_ln_dproj");
    add_norm(attention + "dual_ln_win");
    add_norm(layer + "norm1");
    add_norm(layer + "norm2");
    add(layer + "ff.fc1.weight", {kIntermediate, kWidth}, 0, 0.07f);
    add(layer + "ff.fc1.bias", {kIntermediate}, 0, 0.07f);
    add(layer + "ff.fc2.weight", {kWidth, kIntermediate}, 0, 0.04f);
    add(layer + "ff.fc2.bias", {kWidth}, 0, 0.07f);
  }
  return tensors;
}

void WriteModel(const std::string& directory, int layers) {
  const nlohmann::json config = {{"model_type", "transformer_ls"},
                                 {"architectures", {"TransformerLSForCausalLM"}},
                                 {"vocab_size", kVocab},
                                 {"d_model", kWidth},
                                 {"n_head", kHeads},
                                 {"d_inner", kIntermediate},
                                 {"n_layer", layers},
                                 {"window_len", kWindow},
                                 {"chunk_size", kSegment},
                                 {"chunk_rank", 1},
                                 {"pre_ln", true},
                                 {"use_gelu", true}};
  // The vocabulary is too small for bytes; ids are all this needs.
  WriteRandomModel(directory, config, Tensors(layers));
}

std::unique_ptr<LsDecoder> Load(const std::string& directory, Compute compute, int max_tokens) {
  nlohmann::json config = nlohmann::json::parse(std::ifstream(directory + "/config.json"));
  models::CommonConfig common;
  const models::LsLmConfig parsed = OrDie(models::ParseLsLmConfig(config, common, directory));
  return OrDie(LsDecoder::Create(parsed, OrDie(models::Checkpoint::Open(directory)), directory,
                                 compute, max_tokens, absl::GetFlag(FLAGS_max_gb) * 1e9));
}

// One token for each sequence by the decoder; the logits of all.
std::vector<float> DecodeOnce(LsDecoder& decoder, std::span<LsSequence* const> sequences) {
  const int32_t id = 1;
  std::vector<DecoderFeed> feeds;
  for (LsSequence* sequence : sequences) {
    feeds.push_back(
        {sequence, {&id, 1}, models::DecoderPhase::kDecode, models::WantedLogits::kLast});
  }
  const std::unique_ptr<models::DecoderStep> step = decoder.Begin(feeds);
  while (step->Advance()) {
  }
  if (!step->status().ok()) Die(step->status().ToString());
  std::vector<float> logits;
  for (size_t i = 0; i < feeds.size(); ++i) {
    const std::span<const float> row = step->Logits(static_cast<int>(i));
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

// Largest difference of logits between the two caches over one segment.
double Disagreement(LsDecoder& decoder) {
  FullCacheDecoder full(decoder, 1, kSegment);
  kernels::CacheSequence of_full(full.cache());
  LsSequence of_projection{kernels::CacheSequence(decoder.context().cache)};
  double worst = 0;
  for (int t = 0; t < kSegment; ++t) {
    LsSequence* const one = &of_projection;
    kernels::CacheSequence* const other = &of_full;
    const std::vector<float> got = DecodeOnce(decoder, {&one, 1});
    const std::vector<float>& want = full.Step({&other, 1});
    for (size_t i = 0; i < got.size(); ++i) {
      const double error = std::abs(static_cast<double>(got[i]) - want[i]);
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

// Bytes per second of a loop that only reads.
double PlainRate(const kernels::ParallelFor& pool) {
  static volatile uint64_t sink;
  std::vector<uint64_t> memory(kReadBytes / 8, 3);
  std::vector<double> seconds;
  for (int i = 0; i < 4; ++i) {
    const double start = Now();
    kernels::RunOnThreads(pool, [&](int thread) {
      const size_t share = memory.size() / pool.threads() / 8 * 8;
      const uint64_t* from = memory.data() + thread * share;
      uint64_t sums[8] = {};
      for (size_t at = 0; at < share; at += 8) {
        for (int j = 0; j < 8; ++j) sums[j] += from[at + j];
      }
      for (uint64_t sum : sums) sink = sink + sum;
    });
    seconds.push_back(Now() - start);
  }
  return static_cast<double>(kReadBytes) / Median(seconds);
}

struct Case {
  int64_t context = 0;
  int batch = 0;
  const char* dtype = "";
};

// What a step must read beside its sequences' state: every linear once, and tables of positions.
double WeightBytes(const LsDecoder& decoder) {
  double bytes = 0;
  for (const models::LsLmLayer& layer : decoder.weights().layers) {
    for (const auto* dense : {&layer.project, &layer.out, &layer.expand, &layer.contract}) {
      bytes += static_cast<double>(dense->linear.bytes());
    }
  }
  return bytes + static_cast<double>(decoder.weights().logits->linear.bytes());
}

double TableBytes(const LsDecoder& decoder, int64_t context) {
  const models::LsLmConfig& config = decoder.config();
  const auto entries = static_cast<double>(kWindow + models::SegmentIds(config, context));
  return entries * kWidth * config.layers *
         static_cast<double>(models::ElementBytes(decoder.context().compute));
}

// Bytes of the keys and values that a step's queries see.
double StateBytes(const LsDecoder& decoder, const Case& what, bool full) {
  const int64_t rows =
      full ? what.context : models::VisibleKeys(decoder.config(), what.context - 1);
  return 2.0 * kWidth * static_cast<double>(rows) * what.batch * decoder.config().layers *
         static_cast<double>(kernels::SizeOf(decoder.context().block_type()));
}

double StepSeconds(const std::function<void()>& step) {
  const double start = Now();
  step();
  return Now() - start;
}

void Print(const Case& what, const char* cache, double seconds, double cache_bytes,
           double read_bytes, double plain_rate) {
  std::printf("%7ld %3d  %s  %-10s %9.2f ms %9.2f tokens/s %8.3f GB cache %7.2f GB/s  %5.3f\n",
              static_cast<long>(what.context), what.batch, what.dtype, cache, seconds * 1e3,
              what.batch / seconds, cache_bytes * 1e-9, read_bytes / seconds * 1e-9,
              read_bytes / plain_rate / seconds);
  std::fflush(stdout);
}

void RunCase(const Case& what, LsDecoder& decoder, double plain_rate) {
  const int64_t longest = what.context + absl::GetFlag(FLAGS_steps) + 2;
  const double limit = absl::GetFlag(FLAGS_max_gb) * 1e9;
  const double full_bytes = StateBytes(decoder, what, true);
  const auto own_bytes = static_cast<double>(
      what.batch * decoder.context().cache->shape().SequenceBytes(0, longest, 1));
  std::vector<LsSequence> projection;
  std::vector<LsSequence*> sequences;
  if (own_bytes < limit) {
    for (int i = 0; i < what.batch; ++i) {
      projection.emplace_back(RandomSequence(decoder.context().cache, what.context));
    }
    for (LsSequence& sequence : projection) sequences.push_back(&sequence);
  }
  std::optional<FullCacheDecoder> full;
  std::vector<kernels::CacheSequence> full_state;
  std::vector<kernels::CacheSequence*> full_sequences;
  if (absl::GetFlag(FLAGS_full) && full_bytes < limit) {
    full.emplace(decoder, what.batch, longest + kernels::kBlockSlots);
    for (int i = 0; i < what.batch; ++i) {
      full_state.push_back(RandomSequence(full->cache(), what.context));
    }
    for (kernels::CacheSequence& sequence : full_state) full_sequences.push_back(&sequence);
  }
  std::vector<double> own_seconds, full_seconds;
  for (int i = 0; i <= absl::GetFlag(FLAGS_steps); ++i) {
    const double own = sequences.empty() ? 0 : StepSeconds([&] { DecodeOnce(decoder, sequences); });
    const double other = full ? StepSeconds([&] { full->Step(full_sequences); }) : 0;
    if (i == 0) continue;
    own_seconds.push_back(own);
    full_seconds.push_back(other);
  }
  if (sequences.empty()) {
    std::printf("%7ld %3d  %s  projection left out: %.1f GB\n", static_cast<long>(what.context),
                what.batch, what.dtype, own_bytes * 1e-9);
    return;
  }
  const double shared = WeightBytes(decoder);
  Print(what, "projection", Median(own_seconds),
        static_cast<double>(decoder.context().cache->budget().used()),
        shared + TableBytes(decoder, what.context) + StateBytes(decoder, what, false), plain_rate);
  if (!full) {
    std::printf("%7ld %3d  %s  full       left out: %.1f GB\n", static_cast<long>(what.context),
                what.batch, what.dtype, full_bytes * 1e-9);
    return;
  }
  Print(what, "full", Median(full_seconds), static_cast<double>(full->cache_bytes()),
        shared + full_bytes, plain_rate);
  std::printf("%7ld %3d  %s  projection cache: %.2f times the tokens per second\n",
              static_cast<long>(what.context), what.batch, what.dtype,
              Median(full_seconds) / Median(own_seconds));
}

int64_t Number(const std::string& text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 1) Die("not a positive number: " + text);
  return number;
}

int Main() {
  models::SetComputeThreads(absl::GetFlag(FLAGS_threads));
  char directory[] = "/tmp/lm_decode_benchXXXXXX";
  if (mkdtemp(directory) == nullptr) Die("no temporary directory");
  WriteModel(directory, absl::GetFlag(FLAGS_layers));
  int64_t longest = 0;
  for (const std::string& context : absl::GetFlag(FLAGS_context)) {
    longest = std::max(longest, Number(context));
  }
  const int max_tokens = static_cast<int>(longest) + absl::GetFlag(FLAGS_steps) + 64;
  bool right = true;
  for (const std::string& dtype : absl::GetFlag(FLAGS_dtypes)) {
    const Compute compute = dtype == "bf16" ? Compute::kBf16 : Compute::kFp32;
    const std::unique_ptr<LsDecoder> decoder = Load(directory, compute, max_tokens);
    const double error = Disagreement(*decoder);
    const double most = compute == Compute::kFp32 ? 2e-3 : 0.5;
    const double rate = PlainRate(*decoder->context().pool);
    std::printf("%s: logits of both caches differ by at most %.2g; a plain loop reads %.2f GB/s\n",
                dtype.c_str(), error, rate * 1e-9);
    if (!(error <= most)) {
      std::fprintf(stderr, "%s: more than %g\n", dtype.c_str(), most);
      right = false;
      continue;
    }
    for (const std::string& context : absl::GetFlag(FLAGS_context)) {
      for (const std::string& batch : absl::GetFlag(FLAGS_batch)) {
        RunCase({Number(context), static_cast<int>(Number(batch)), dtype.c_str()}, *decoder, rate);
      }
    }
  }
  std::filesystem::remove_all(directory);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace longview::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return longview::bench::Main();
}
