// Runs a model in this process for a benchmark driver in Python.
//
//   model_pipe DIRECTORY DTYPE THREADS [DEVICE]
//
// Answers "ready" after loading. Then one JSON request a line on stdin,
//   {"documents": [[ids...], ...]}    or    {"pixels": FILE, "shape": [n, 3, h, w]}
// with raw floats in the file; all documents or images in one batch; one JSON answer a line on
// stdout: seconds of Begin to Take, of documents on the CPU also those of the linears and of
// attention, logits of each, and the peak of resident memory above what was resident before.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "models/encoder/model.h"
#include "models/model.h"

namespace longview::models {
namespace {

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "model_pipe: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// A field of /proc/self/status in bytes; VmHWM is the peak since ResetPeak.
double StatusBytes(std::string_view field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field)) continue;
    return std::stod(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

void ResetPeak() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::vector<Request> RequestsOf(const nlohmann::json& line) {
  std::vector<Request> requests;
  if (line.contains("documents")) {
    for (const auto& ids : line["documents"]) {
      requests.emplace_back().tokens.emplace().ids = ids.get<std::vector<int32_t>>();
    }
    return requests;
  }
  const auto shape = line["shape"].get<std::vector<int>>();
  std::ifstream file(line["pixels"].get<std::string>(), std::ios::binary);
  for (int i = 0; i < shape[0]; ++i) {
    PixelInput& pixels = requests.emplace_back().pixel_values.emplace();
    pixels.height = shape[2];
    pixels.width = shape[3];
    pixels.values.resize(size_t{3} * pixels.height * pixels.width);
    file.read(reinterpret_cast<char*>(pixels.values.data()),
              static_cast<std::streamsize>(pixels.values.size() * sizeof(float)));
  }
  return requests;
}

nlohmann::json RunBatch(const Model& model, const nlohmann::json& line) {
  std::vector<std::unique_ptr<Item>> items;
  std::vector<const Item*> batch;
  for (Request& request : RequestsOf(line)) {
    request.task = model.info().task;
    request.tensors = {"logits"};
    request.typed = false;
    auto item = model.Prepare(request);
    if (!item.ok()) Die(item.status());
    items.push_back(*std::move(item));
    batch.push_back(items.back().get());
  }
  const double before = StatusBytes("VmRSS:");
  ResetPeak();
  const auto start = std::chrono::steady_clock::now();
  RunTimes times;
  // A device that is timed part by part is waited for after each.
  const bool parts = line.contains("documents") && model.info().device == "cpu";
  const std::unique_ptr<Run> run = model.Begin(batch, parts ? &times : nullptr);
  while (run->Advance()) {
  }
  nlohmann::json logits = nlohmann::json::array();
  for (size_t i = 0; i < batch.size(); ++i) {
    const absl::StatusOr<Answer> answer = run->Take(static_cast<int>(i));
    if (!answer.ok()) Die(answer.status());
    const auto values = answer->tensors[0].floats();
    logits.push_back(std::vector<float>(values.begin(), values.end()));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return {{"seconds", seconds.count()},
          {"linears", times.linears},
          {"attention", times.attention},
          {"logits", logits},
          {"peak_bytes", StatusBytes("VmHWM:") - before}};
}

}  // namespace
}  // namespace longview::models

int main(int argc, char** argv) {
  using namespace longview::models;
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr, "usage: model_pipe DIRECTORY DTYPE THREADS [DEVICE]\n");
    return 2;
  }
  SetComputeThreads(std::atoi(argv[3]));
  auto model = LoadModel(argv[1], {.dtype = argv[2], .device = argc == 5 ? argv[4] : "cpu"});
  if (!model.ok()) Die(model.status());
  if (absl::Status warm = (*model)->WarmUp(); !warm.ok()) Die(warm);
  std::cout << nlohmann::json{{"ready", DescribeBackend()},
                              {"dtype", (*model)->info().dtype},
                              {"device", (*model)->info().device},
                              {"memory_bytes", (*model)->info().memory_bytes}}
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << RunBatch(**model, nlohmann::json::parse(line)) << std::endl;
  }
}
