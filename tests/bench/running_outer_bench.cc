// Luna's causal sums alone: how near the machine's multiply-add rate RunningOuter comes, reading a
// prompt and decoding one token of several sequences.
//
//   running_outer_bench --rows=16,64,256 --dim=64 --heads=8
//
// Beside it a plain loop over the same recurrence, compiled with -O3, in the same run; results are
// compared before a figure is printed. One thread, its own CPU clock; multiply-adds count both
// sums, their two reads and the weights of the write.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>
#include <absl/strings/numbers.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/base/peak_rate.h"
#include "kernels/linear_attention/running_outer.h"
#include "tests/bench/timed_pool.h"

ABSL_FLAG(std::vector<std::string>, rows, (std::vector<std::string>{"16", "64", "256"}),
          "Rows of P.");
ABSL_FLAG(int, heads, 8, "Heads.");
ABSL_FLAG(int, dim, 64, "Channels of a head.");
ABSL_FLAG(int, prompt, 512, "Tokens of the prompt.");
ABSL_FLAG(int, sequences, 8, "Sequences that decode together.");
ABSL_FLAG(int, repeats, 9, "Timed runs; the median is printed.");

namespace longview::bench {
namespace {

using kernels::Isa;
using kernels::OuterCall;
using kernels::OuterSequence;

struct Shape {
  int rows, heads, dim;
  int64_t width() const { return int64_t{heads} * dim; }
  int64_t state() const { return kernels::OuterStateFloats(heads, dim, rows); }
  double work() const { return 5.0 * rows * static_cast<double>(width()); }  // Per token.
};

std::vector<float> Random(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

struct Inputs {
  Inputs(const Shape& shape, int64_t tokens)
      : values(Random(4 * tokens * shape.width(), 1)),
        projected(Random(shape.rows * shape.width(), 2)),
        packed(
            static_cast<size_t>(kernels::OuterPackedFloats(shape.heads, shape.dim, shape.rows))) {
    kernels::PackOuterRows(projected.data(), shape.heads, shape.dim, shape.rows, packed.data());
  }
  OuterCall Call(const Shape& shape, float* out) const {
    OuterCall call;
    call.q = values.data();
    call.k = call.q + shape.width();
    call.v = call.k + shape.width();
    call.g = call.v + shape.width();
    call.row_stride = 4 * shape.width();
    call.out = out;
    call.out_stride = shape.width();
    call.heads = shape.heads;
    call.width = shape.dim;
    call.scale = 1 / std::sqrt(static_cast<float>(shape.dim));
    return call;
  }
  const std::vector<float> values, projected;
  std::vector<float> packed;
};

// One head of one token: sums [rows][dim] of keys and of values.
void PlainToken(const Shape& shape, const float* token, const float* p, int64_t t, float* keys,
                float* values, float* out) {
  const int64_t width = shape.width();
  const float *q = token, *k = token + width, *v = k + width, *g = v + width;
  const float scale = 1 / std::sqrt(static_cast<float>(shape.dim));
  float scores[512], top = -INFINITY, total = 0;
  for (int r = 0; r < shape.rows; ++r) {
    float write = 0, read = 0;
    for (int d = 0; d < shape.dim; ++d) write += g[d] * p[r * width + d];
    write = std::log2(1 + std::exp2(scale * write));
    for (int d = 0; d < shape.dim; ++d) {
      keys[r * shape.dim + d] += write * k[d];
      read += keys[r * shape.dim + d] * q[d];
      values[r * shape.dim + d] += write * v[d];
    }
    scores[r] = scale * read / static_cast<float>(t);
    top = std::max(top, scores[r]);
  }
  for (int r = 0; r < shape.rows; ++r) total += scores[r] = std::exp(scores[r] - top);
  for (int d = 0; d < shape.dim; ++d) out[d] = 0;
  for (int r = 0; r < shape.rows; ++r) {
    const float share = scores[r] / (total * static_cast<float>(t));
    for (int d = 0; d < shape.dim; ++d) out[d] += share * values[r * shape.dim + d];
  }
}

void PlainPrompt(const Shape& shape, const Inputs& inputs, int64_t tokens, float* state,
                 float* out) {
  const int64_t sums = int64_t{shape.rows} * shape.dim;
  for (int head = 0; head < shape.heads; ++head) {
    float* keys = state + 2 * sums * head;
    for (int64_t t = 0; t < tokens; ++t) {
      PlainToken(shape, inputs.values.data() + 4 * t * shape.width() + head * shape.dim,
                 inputs.projected.data() + head * shape.dim, t + 1, keys, keys + sums,
                 out + t * shape.width() + head * shape.dim);
    }
  }
}

double MedianSeconds(const std::function<void()>& run) {
  std::vector<double> seconds;
  for (int i = 0; i < absl::GetFlag(FLAGS_repeats); ++i) {
    const double start = ThreadSeconds();
    run();
    seconds.push_back(ThreadSeconds() - start);
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2];
}

void Append(const OuterCall& call, std::vector<std::byte>& memory) {
  const kernels::WorkspaceBytes bytes = kernels::MeasureOuter(call);
  memory.resize(bytes.total(1) + kernels::kAlignment);
  void* block = memory.data();
  size_t room = memory.size();
  std::align(kernels::kAlignment, bytes.total(1), block, room);
  kernels::AppendOuter(call, kernels::CarveWorkspace(block, bytes), kernels::SerialFor(),
                       kernels::BestFloatIsa());
}

void Print(const char* what, const Shape& shape, int64_t tokens, double seconds, double plain,
           double peak) {
  const double rate = shape.work() * static_cast<double>(tokens) / seconds;
  std::printf("  %-28s %8.2f us/token %7.1f G multiply-adds/s, %3.0f %% of the peak", what,
              1e6 * seconds / static_cast<double>(tokens), 1e-9 * rate, 100 * rate / peak);
  if (plain > 0) std::printf(", %.1fx a plain loop", plain / seconds);
  std::printf("\n");
}

void Run(const Shape& shape, double peak) {
  const int64_t prompt = absl::GetFlag(FLAGS_prompt), decoding = absl::GetFlag(FLAGS_sequences);
  const Inputs inputs(shape, std::max(prompt, decoding));
  std::vector<float> out(static_cast<size_t>(std::max(prompt, decoding) * shape.width()));
  std::vector<float> want = out, state(static_cast<size_t>(shape.state())), plain = state;
  std::vector<std::byte> memory;
  const auto read = [&] {
    std::fill(state.begin(), state.end(), 0.0f);
    const OuterSequence one = {0, prompt, 0, shape.rows, inputs.packed.data(), state.data()};
    OuterCall call = inputs.Call(shape, out.data());
    call.sequences = {&one, 1};
    Append(call, memory);
  };
  const auto loop = [&] {
    plain.assign(static_cast<size_t>(2 * shape.rows * shape.width()), 0.0f);
    PlainPrompt(shape, inputs, prompt, plain.data(), want.data());
  };
  read();
  loop();
  for (size_t i = 0; i < static_cast<size_t>(prompt * shape.width()); ++i) {
    if (!(std::abs(out[i] - want[i]) <= 1e-3f * (1 + std::abs(want[i])))) {
      std::fprintf(stderr, "element %zu is %g, the plain loop has %g\n", i, out[i], want[i]);
      std::exit(1);
    }
  }
  std::printf("%d heads of %d, %d rows of P, a state of %.0f KB\n", shape.heads, shape.dim,
              shape.rows, 4e-3 * static_cast<double>(shape.state()));
  Print("prompt", shape, prompt, MedianSeconds(read), MedianSeconds(loop), peak);

  std::vector<float> states(static_cast<size_t>(decoding * shape.state()));
  std::vector<OuterSequence> sequences;
  for (int64_t s = 0; s < decoding; ++s) {
    sequences.push_back(
        {s, 1, prompt, shape.rows, inputs.packed.data(), states.data() + s * shape.state()});
  }
  Print("decoding, together", shape, decoding, MedianSeconds([&] {
          OuterCall call = inputs.Call(shape, out.data());
          call.sequences = sequences;
          Append(call, memory);
        }),
        0, peak);
}

}  // namespace
}  // namespace longview::bench

int main(int argc, char** argv) {
  using namespace longview;
  absl::ParseCommandLine(argc, argv);
  const double peak = 0.5e9 * kernels::PeakGflops(kernels::BestFloatIsa());
  for (const std::string& text : absl::GetFlag(FLAGS_rows)) {
    int rows = 0;
    if (!absl::SimpleAtoi(text, &rows) || rows < 1 || rows > 512) {
      std::fprintf(stderr, "--rows: \"%s\" is not in [1, 512]\n", text.c_str());
      return 1;
    }
    bench::Run({rows, absl::GetFlag(FLAGS_heads), absl::GetFlag(FLAGS_dim)}, peak);
  }
}
