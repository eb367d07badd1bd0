// Runs a detector in this process for detection_peers.py.
//
//   detection_pipe DIRECTORY DTYPE THREADS
//
// Answers "ready" after loading. Then one path of a picture a line on stdin; one JSON answer a line
// on stdout: seconds of Prepare (decoding, resizing) and of Begin to Take with its parts, what was
// found, and the workspace that was promised.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "models/detection/model.h"
#include "models/model.h"

namespace longview::models {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void Die(const absl::Status& status) {
  std::fprintf(stderr, "detection_pipe: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

nlohmann::json Detect(const Model& model, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Request request;
  request.task = Task::kObjectDetection;
  request.image.emplace(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  const auto before = Clock::now();
  const auto item = model.Prepare(request);
  if (!item.ok()) Die(item.status());
  const double prepare = Since(before);
  const Item* const items[] = {item->get()};
  RunTimes times;
  const auto start = Clock::now();
  const std::unique_ptr<Run> run = model.Begin(items, &times);
  while (run->Advance()) {
  }
  const absl::StatusOr<Answer> answer = run->Take(0);
  if (!answer.ok()) Die(answer.status());
  const double seconds = Since(start);
  return {{"prepare", prepare},
          {"seconds", seconds},
          {"backbone", times.backbone},
          {"head", times.head},
          {"linears", times.linears},
          {"attention", times.attention},
          {"post", times.choose + times.finish},
          {"detections", answer->detections.size()},
          {"workspace_bytes", (*item)->cost().workspace_bytes},
          {"predicted", (*item)->cost().seconds}};
}

}  // namespace

int Main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: detection_pipe DIRECTORY DTYPE THREADS\n");
    return 2;
  }
  SetComputeThreads(std::atoi(argv[3]));
  const auto model = LoadModel(argv[1], {.dtype = argv[2]});
  if (!model.ok()) Die(model.status());
  if (absl::Status status = (*model)->WarmUp(); !status.ok()) Die(status);
  std::cout << "ready" << std::endl;
  for (std::string path; std::getline(std::cin, path);) {
    std::cout << Detect(**model, path) << std::endl;
  }
  return 0;
}

}  // namespace longview::models

int main(int argc, char** argv) { return longview::models::Main(argc, argv); }
