// A Vision Longformer's forward pass by image size: what a pixel costs, where the time goes, and
// how much memory lives beside the weights.
//
//   vision_bench --model=small --megapixels=0.25,1,4,16 --dtypes=fp32 --threads=2
//
// Square images of random pixels, batch 1, a model with random weights whose stages all attend by
// chunks (written to --scratch, kept there); --directory takes another model. "ns/px" is the
// time by pixel, "against first" its ratio to the first size's: 1 is linear. "maps" is the peak of
// the scratch in feature maps of the largest stage, [tokens, channels] of fp32; "peak MB" the
// peak of the resident set during a run beyond what was resident before the first.
#include <absl/flags/flag.h>
#include <absl/flags/parse.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/vision/model.h"
#include "tests/bench/random_checkpoint.h"
#include "tests/bench/random_vil.h"

ABSL_FLAG(std::string, model, "small", "tiny or small, with random weights.");
ABSL_FLAG(std::string, directory, "", "A model directory in their place.");
ABSL_FLAG(std::string, scratch, "", "Where those are written; default: temporary files' folder.");
ABSL_FLAG(std::vector<std::string>, megapixels,
          (std::vector<std::string>{"0.25", "0.5", "1", "2", "4", "8", "16"}), "Image sizes.");
ABSL_FLAG(std::vector<std::string>, dtypes, (std::vector<std::string>{"fp32"}), "Types.");
ABSL_FLAG(int, threads, 2, "Compute threads.");
ABSL_FLAG(int, repeats, 3, "Timed runs of each case; the best is printed.");

namespace longview::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
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

struct Measured {
  double seconds = 1e30;
  models::RunTimes times;
  double predicted_seconds = 0;
  double scratch_megabytes = 0;
  double peak_megabytes = 0;
};

models::Request RandomImage(int side) {
  models::Request request;
  request.task = models::Task::kImageClassification;
  request.tensors = {"logits"};
  models::PixelInput& pixels = request.pixel_values.emplace();
  pixels.height = pixels.width = side;
  pixels.values.resize(size_t{3} * side * side);
  uint32_t state = 1;
  for (float& value : pixels.values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
  }
  return request;
}

Measured Measure(const models::Model& model, int side) {
  auto item = model.Prepare(RandomImage(side));
  if (!item.ok()) Fail(item.status());
  const models::Item* const items[] = {item->get()};
  Measured best;
  best.predicted_seconds = (*item)->cost().seconds;
  best.scratch_megabytes = (*item)->cost().workspace_bytes / 1e6;
  std::vector<std::byte> first;
  for (int i = 0; i <= absl::GetFlag(FLAGS_repeats); ++i) {
    models::RunTimes times;
    const double before = StatusMegabytes("VmRSS:");
    ResetPeak();
    const auto start = Clock::now();
    const auto run = model.Begin(items, &times);
    while (run->Advance()) {
    }
    auto answer = run->Take(0);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!answer.ok()) Fail(answer.status());
    best.peak_megabytes = std::max(best.peak_megabytes, StatusMegabytes("VmHWM:") - before);
    const auto& logits = answer->Find("logits")->data;
    if (first.empty()) first = logits;
    if (logits != first) Fail(absl::InternalError("two runs gave different bits"));
    if (i == 0 || seconds >= best.seconds) continue;
    best.seconds = seconds;
    best.times = times;
  }
  return best;
}

// Floats of the largest stage's output.
double LargestMap(const models::Model& model, int side) {
  models::Request request = RandomImage(side);
  request.task = models::Task::kImageFeatures;
  request.tensors.clear();
  for (const models::TensorSpec& output : model.info().outputs) {
    if (output.name.starts_with("features.")) request.tensors.push_back(output.name);
  }
  auto item = model.Prepare(request);
  if (!item.ok()) Fail(item.status());
  const models::Item* const items[] = {item->get()};
  const auto run = model.Begin(items);
  while (run->Advance()) {
  }
  const auto answer = run->Take(0);
  if (!answer.ok()) Fail(answer.status());
  size_t largest = 0;
  for (const models::HostTensor& map : answer->tensors) {
    largest = std::max(largest, map.floats().size());
  }
  return static_cast<double>(largest);
}

void Bench(const std::string& directory, const std::string& dtype) {
  auto model = models::LoadModel(directory, {.dtype = dtype});
  if (!model.ok()) Fail(model.status());
  if (auto status = (*model)->WarmUp(); !status.ok()) Fail(status);
  std::printf("%s: %.1f million parameters\n", (*model)->info().dtype.c_str(),
              (*model)->info().parameters / 1e6);
  std::printf("%6s %6s %10s %8s %14s %9s %9s %9s %10s %8s %6s %8s\n", "Mpx", "side", "ms", "ns/px",
              "against first", "linears", "attention", "rest", "predicted", "scratch", "maps",
              "peak MB");
  double first = 0;
  for (const std::string& text : absl::GetFlag(FLAGS_megapixels)) {
    constexpr int kStride = 32;
    const double pixels = std::atof(text.c_str()) * 1024 * 1024;
    const int side = static_cast<int>(std::lround(std::sqrt(pixels) / kStride)) * kStride;
    const Measured m = Measure(**model, side);
    const double by_pixel = m.seconds * 1e9 / (static_cast<double>(side) * side);
    if (first == 0) first = by_pixel;
    std::printf("%6s %6d %10.1f %8.1f %14.2f %9.1f %9.1f %9.1f %10.1f %8.1f %6.1f %8.1f\n",
                text.c_str(), side, m.seconds * 1e3, by_pixel, by_pixel / first,
                m.times.linears * 1e3, m.times.attention * 1e3, m.times.rest * 1e3,
                m.predicted_seconds * 1e3, m.scratch_megabytes,
                m.scratch_megabytes * 1e6 / 4 / LargestMap(**model, side), m.peak_megabytes);
  }
}

void Main() {
  models::SetComputeThreads(absl::GetFlag(FLAGS_threads));
  std::string directory = absl::GetFlag(FLAGS_directory);
  if (directory.empty()) {
    const std::string name = absl::GetFlag(FLAGS_model);
    directory =
        KeptModel(absl::GetFlag(FLAGS_scratch), "vil-" + name, [&](const std::string& path) {
          WriteRandomVil(path, name == "tiny" ? kVilTiny : kVilSmall);
        });
  }
  std::printf("%s\n", models::DescribeBackend().c_str());
  for (const std::string& dtype : absl::GetFlag(FLAGS_dtypes)) Bench(directory, dtype);
}

}  // namespace
}  // namespace longview::bench

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  longview::bench::Main();
}
