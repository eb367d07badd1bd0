// Attention of decode steps alone: how much of the memory's speed the span executor reads cached
// keys and values with.
//
//   decode_attention_bench --context=8192,32768 --batch=1,8 --caches=projection,full
//
// One token per sequence against the cache of a published language model (30 layers, d 512, 8
// heads, w 512, l 16, r 1), random rows, position scores as Added tables like the decoder's; or
// against a full cache of as many tokens. Every layer is run in turn, as a step does, so that no
// cache level keeps what the next step reads. A layer's result is held against the scalar reference
// before a figure is printed. GB/s count the rows that queries see; beside them stand those of a
// plain loop over the same blocks in the same run. Times are of the busiest thread's own CPU clock.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/bfloat16.h"
#include "kernels/cache/cache_step.h"
#include "kernels/cache/projection_cache.h"
#include "kernels/span/executor.h"
#include "kernels/span/paged_planner.h"
#include "tests/bench/random_cache.h"
#include "tests/bench/timed_pool.h"

ABSL_FLAG(std::vector<std::string>, context, (std::vector<std::string>{"8192", "32768"}),
          "Tokens of each sequence.");
ABSL_FLAG(std::vector<std::string>, batch, (std::vector<std::string>{"1", "8"}), "Sequences.");
ABSL_FLAG(std::vector<std::string>, caches, (std::vector<std::string>{"projection", "full"}),
          "What is read: projection, full.");
ABSL_FLAG(std::vector<std::string>, dtypes, (std::vector<std::string>{"fp32", "bf16"}),
          "Types of queries and output; blocks are what the variant reads.");
ABSL_FLAG(std::string, isa, "", "Variant; empty: what a model of the type would choose.");
ABSL_FLAG(int, layers, 30, "Layers.");
ABSL_FLAG(int, threads, 2, "Threads.");
ABSL_FLAG(int, repeats, 7, "Timed rounds over all layers; the median is printed.");
ABSL_FLAG(double, max_gb, 14, "Cases that need more memory are left out.");

namespace longview::bench {
namespace {

using kernels::CacheSequence;
using kernels::CacheShape;
using kernels::CacheStep;
using kernels::CacheTable;
using kernels::Call;
using kernels::DType;
using kernels::Isa;
using kernels::Plan;
using kernels::ProjectionCache;

constexpr int kHeads = 8, kDim = 64, kWindow = 512, kSegment = 16, kRank = 1;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of the busiest thread of each region since Clear.
double CpuSeconds(const TimedPool& pool) {
  double seconds = 0;
  for (const RegionTime& region : pool.regions()) seconds += region.cpu;
  return seconds;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Case {
  int64_t context;
  int batch;
  bool full;
  DType dtype;
  Isa isa;
};

CacheShape Shape(const Case& what) {
  CacheShape shape;
  shape.layers = absl::GetFlag(FLAGS_layers);
  shape.kv_heads = kHeads;
  shape.Dk = shape.Dv = kDim;
  shape.dtype = kernels::PanelDType(what.isa);
  shape.strips = {kernels::WindowStrip(what.full ? 0 : kWindow)};
  if (!what.full) shape.strips.push_back(kernels::PageStrip(kSegment, kRank));
  return shape;
}

// Rows of random numbers, [rows, heads, dim] in a call's type.
class Rows {
 public:
  Rows(int64_t count, DType dtype, uint32_t seed) : wide_(count), dtype_(dtype) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& x : wide_) x = normal(random);
    if (dtype == DType::kBFloat16) {
      for (float x : wide_) narrow_.push_back(kernels::FloatToBFloat16(x));
    }
  }
  void* data() {
    return dtype_ == DType::kFloat32 ? static_cast<void*>(wide_.data()) : narrow_.data();
  }
  float At(int64_t i) const {
    return dtype_ == DType::kFloat32 ? wide_[i] : kernels::BFloat16ToFloat(narrow_[i]);
  }

 private:
  std::vector<float> wide_;
  std::vector<uint16_t> narrow_;
  DType dtype_;
};

// A batch of sequences about to read one more token each.
class Batch {
 public:
  explicit Batch(const Case& what)
      : case_(what),
        shape_(Shape(what)),
        budget_(what.batch * shape_.SequenceBytes(0, what.context, 1)),
        cache_(ProjectionCache::Create(shape_, {}, &budget_)),
        step_(cache_.get()),
        scores_(kHeads * (what.context + kWindow), DType::kFloat32, 3),
        queries_(int64_t{what.batch} * kHeads * kDim, what.dtype, 4),
        out_(int64_t{what.batch} * kHeads * kDim, what.dtype, 5) {
    for (int i = 0; i < what.batch; ++i) {
      sequences_.push_back(RandomSequence(cache_.get(), what.context - 1, i));
    }
    const int32_t next = 1;
    for (CacheSequence& sequence : sequences_) {
      if (!step_.Append(CacheStep::kDecode, &sequence, {&next, 1})) std::abort();
    }
    MakeTables();
  }

  Plan MakePlan(int tile_rows) const {
    kernels::PagedPattern pattern;
    pattern.heads = kHeads;
    pattern.window = case_.full ? 0 : kWindow;
    pattern.segment = kSegment;
    pattern.rank = case_.full ? 0 : kRank;
    pattern.window_table = case_.full ? -1 : 0;
    pattern.page_table = case_.full ? -1 : 1;
    pattern.tile_rows = tile_rows;
    std::vector<kernels::PagedSequence> batch(case_.batch);
    for (int i = 0; i < case_.batch; ++i) {
      batch[i].query_row0 = i;
      batch[i].tokens = 1;
      batch[i].start = static_cast<int32_t>(case_.context - 1);
      batch[i].first_block = step_.table(CacheStep::kDecode, 0).first_block[i];
    }
    Plan plan = kernels::PlanPaged(pattern, batch);
    for (kernels::Bias& bias : plan.biases) bias.kind = kernels::kAdded;
    return plan;
  }

  Call MakeCall(int layer, Rows* out) {
    sources_.clear();
    for (int strip = static_cast<int>(shape_.strips.size()) - 1; strip >= 0; --strip) {
      sources_.push_back(cache_->PagedSource(strip, layer, step_.table(CacheStep::kDecode, strip)));
    }
    Call call;
    call.q = queries_.data();
    call.out = out->data();
    call.dtype = case_.dtype;
    call.q_row_stride = call.out_row_stride = kHeads * kDim;
    call.q_head_stride = call.out_head_stride = kDim;
    call.Dk = call.Dv = kDim;
    call.H = kHeads;
    call.scale = 1.0f / std::sqrt(static_cast<float>(kDim));
    call.sources = sources_;
    call.tables = tables_;
    return call;
  }

  Rows* out() { return &out_; }
  int layers() const { return shape_.layers; }

  // Keys and values that queries see, all layers.
  double SeenBytes(const Plan& plan) const {
    return static_cast<double>(plan.useful) * 2 * kDim *
           static_cast<double>(kernels::SizeOf(shape_.dtype)) * shape_.layers;
  }

  // Reads every block that queries see, all layers, and returns the bytes.
  double ReadPlainly(const kernels::ParallelFor& pool) {
    std::vector<uint64_t> sums(pool.threads());
    std::vector<int64_t> read(pool.threads());
    for (int layer = 0; layer < shape_.layers; ++layer) {
      const Call call = MakeCall(layer, &out_);
      kernels::RunOnThreads(pool, [&](int thread) {
        uint64_t sum = 0;
        for (const kernels::Source& source : call.sources) {
          const int strip = static_cast<int>(&call.sources.back() - &source);
          const CacheTable& table = step_.table(CacheStep::kDecode, strip);
          for (size_t i = thread; i < table.blocks.size(); i += pool.threads()) {
            sum += ReadBlock(source, table.blocks[i]);
            read[thread] += shape_.BlockBytes() / shape_.layers;
          }
        }
        sums[thread] += sum;
      });
    }
    int64_t bytes = 0;
    for (int64_t of_thread : read) bytes += of_thread;
    for (uint64_t sum : sums) sink_ = sink_ + sum;
    return static_cast<double>(bytes);
  }

 private:
  uint64_t ReadBlock(const kernels::Source& source, int64_t block) const {
    const kernels::KvLayout layout = shape_.layout();
    const auto* k = static_cast<const std::byte*>(source.k) + layout.KBlock(block, 0);
    const auto* v = static_cast<const std::byte*>(source.v) + layout.VBlock(block, 0);
    return Sum(k, kHeads * layout.k_block_bytes()) + Sum(v, kHeads * layout.v_block_bytes());
  }

  static uint64_t Sum(const std::byte* from, size_t bytes) {
    const auto* words = reinterpret_cast<const uint64_t*>(from);
    uint64_t sums[8] = {};
    for (size_t i = 0; i < bytes / 8; i += 8) {
      for (int j = 0; j < 8; ++j) sums[j] += words[i + j];
    }
    for (int j = 1; j < 8; ++j) sums[0] += sums[j];
    return sums[0];
  }

  void MakeTables() {
    tables_.resize(2);
    tables_[0].entries = kWindow;
    tables_[1].entries = static_cast<int32_t>(case_.context);
    for (kernels::Table& table : tables_) {
      table.data = scores_.data();
      table.head_stride = table.entries;
    }
  }

  const Case case_;
  const CacheShape shape_;
  kernels::CacheBudget budget_;
  std::unique_ptr<ProjectionCache> cache_;
  std::vector<CacheSequence> sequences_;
  CacheStep step_;
  Rows scores_, queries_, out_;
  std::vector<kernels::Source> sources_;
  std::vector<kernels::Table> tables_;
  volatile uint64_t sink_ = 0;
};

class Scratch {
 public:
  Scratch(const Plan& plan, const Call& call, Isa isa, int threads) {
    const kernels::WorkspaceBytes bytes = kernels::Measure(plan, call, isa);
    block_.reset(
        std::aligned_alloc(kernels::kAlignment, kernels::AlignUp(bytes.total(threads) + 1)));
    workspace_ = kernels::CarveWorkspace(block_.get(), bytes);
  }
  const kernels::Workspace& workspace() const { return workspace_; }

 private:
  struct FreeDeleter {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, FreeDeleter> block_;
  kernels::Workspace workspace_;
};

// Largest difference from the reference in the last layer.
double MaxError(const Case& what, const kernels::ParallelFor& pool, Batch* batch) {
  const int64_t count = int64_t{what.batch} * kHeads * kDim;
  Rows got(count, what.dtype, 8), want(count, what.dtype, 9);
  const auto run = [&](Isa isa, Rows* out) {
    const Plan plan = batch->MakePlan(kernels::TileRows(isa));
    const Call call = batch->MakeCall(batch->layers() - 1, out);
    const Scratch scratch(plan, call, isa, pool.threads());
    kernels::RunPlan(plan, call, scratch.workspace(), pool, isa);
  };
  run(what.isa, &got);
  run(Isa::kScalar, &want);
  double worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double error = std::abs(static_cast<double>(got.At(i)) - want.At(i));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

// False where the result is wrong.
bool RunCase(const Case& what) {
  const double need =
      what.batch * static_cast<double>(Shape(what).SequenceBytes(0, what.context, 1));
  const char* cache = what.full ? "full" : "projection";
  const char* dtype = what.dtype == DType::kFloat32 ? "fp32" : "bf16";
  if (need > absl::GetFlag(FLAGS_max_gb) * 1e9) {
    std::printf("%-10s %7ld %3d  %s  left out: %.1f GB of cache\n", cache,
                static_cast<long>(what.context), what.batch, dtype, need * 1e-9);
    return true;
  }
  TimedPool pool(absl::GetFlag(FLAGS_threads));
  Batch batch(what);
  const double error = MaxError(what, pool, &batch);
  const double limit = what.dtype == DType::kFloat32 ? 2e-5 : 2e-2;
  if (!(error <= limit)) {
    std::fprintf(stderr, "%s: error %g exceeds %g\n", cache, error, limit);
    return false;
  }
  const double planned = Now();
  const Plan plan = batch.MakePlan(kernels::TileRows(what.isa));
  const double plan_seconds = Now() - planned;
  const Scratch scratch(plan, batch.MakeCall(0, batch.out()), what.isa, pool.threads());
  std::vector<double> ours, plain;
  double plain_bytes = 0;
  for (int i = 0; i < absl::GetFlag(FLAGS_repeats) + 1; ++i) {
    pool.Clear();
    for (int layer = 0; layer < batch.layers(); ++layer) {
      kernels::RunPlan(plan, batch.MakeCall(layer, batch.out()), scratch.workspace(), pool,
                       what.isa);
    }
    const double seconds = CpuSeconds(pool);
    pool.Clear();
    plain_bytes = batch.ReadPlainly(pool);
    if (i == 0) continue;
    ours.push_back(seconds);
    plain.push_back(CpuSeconds(pool));
  }
  const double rate = batch.SeenBytes(plan) / Median(ours) * 1e-9;
  const double plain_rate = plain_bytes / Median(plain) * 1e-9;
  std::printf("%-10s %7ld %3d  %s %-10s  %9.3f ms %7.2f GB/s %7.2f GB/s  %5.3f  %8.1f us %8.2g\n",
              cache, static_cast<long>(what.context), what.batch, dtype,
              std::string(kernels::IsaName(what.isa)).c_str(), Median(ours) * 1e3, rate, plain_rate,
              rate / plain_rate, plan_seconds * 1e6, error);
  std::fflush(stdout);
  return true;
}

int64_t Number(const std::string& text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 1) {
    std::fprintf(stderr, "not a positive number: %s\n", text.c_str());
    std::exit(2);
  }
  return number;
}

Isa ChooseIsa(DType dtype) {
  const std::string wanted = absl::GetFlag(FLAGS_isa);
  for (Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmxBf16}) {
    if (wanted == kernels::IsaName(isa)) return kernels::EffectiveIsa(isa, dtype);
  }
  return dtype == DType::kFloat32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
}

int Main() {
  std::printf(
      "cache       tokens seqs type isa          all layers        read  plain loop  "
      "share  planning    error\n");
  bool right = true;
  for (const std::string& context : absl::GetFlag(FLAGS_context)) {
    for (const std::string& sequences : absl::GetFlag(FLAGS_batch)) {
      for (const std::string& cache : absl::GetFlag(FLAGS_caches)) {
        for (const std::string& name : absl::GetFlag(FLAGS_dtypes)) {
          const DType dtype = name == "bf16" ? DType::kBFloat16 : DType::kFloat32;
          right = RunCase({Number(context), static_cast<int>(Number(sequences)), cache == "full",
                           dtype, ChooseIsa(dtype)}) &&
                  right;
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
