// Writes random weights for a configuration: whatever tensors the loader asks for.
//
//   random_model [--zeros] DIRECTORY...      each with a config.json
//
// The loader is asked what is missing until it finds everything, on files without stored bytes; so
// this holds for every family, and no list of tensors is kept here. --zeros leaves it at that: such
// a model has the parameters and the cost of the configuration and answers nothing of use.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "models/inspect.h"
#include "tests/bench/random_checkpoint.h"

namespace longview::bench {
namespace {

constexpr int kMostTensors = 20'000;

std::vector<int64_t> ShapeIn(const std::string& text) {
  std::vector<int64_t> shape;
  for (const auto& extent : nlohmann::json::parse(text)) shape.push_back(extent);
  return shape;
}

// Weights and variances of norms are about 1, everything else about 0.
RandomTensor Spread(const std::string& name, const std::vector<int64_t>& shape) {
  const bool scales = shape.size() == 1 && !name.ends_with("bias") && !name.ends_with("mean");
  if (scales) return {name, shape, 1, 0.1f};
  return {name, shape, 0, shape.size() < 2 ? 0.02f : 0.035f};
}

// Takes the tensor that a refusal of the loader names into `tensors`. False if it names none.
bool Learn(const std::string& refusal, std::vector<RandomTensor>& tensors) {
  static const std::regex kMissing(R"re(tensor "([^"]+)" (\[[^\]]*\]) is missing)re");
  static const std::regex kTied(R"re(none of the tied tensors ([^, ]+).* (\[[^\]]*\]) is there)re");
  static const std::regex kPrefix(R"re(none of these tensors is there: ([^, ]+))re");
  static const std::regex kShape(R"re(tensor "([^"]+)": expected shape (\[[^\]]*\]))re");
  std::smatch found;
  if (std::regex_search(refusal, found, kMissing) || std::regex_search(refusal, found, kTied)) {
    tensors.push_back(Spread(found[1], ShapeIn(found[2])));
    return true;
  }
  if (std::regex_search(refusal, found, kPrefix)) {
    tensors.push_back({found[1], {1}, 0, 0});  // Its shape is the next refusal.
    return true;
  }
  if (!std::regex_search(refusal, found, kShape)) return false;
  for (RandomTensor& tensor : tensors) {
    if (tensor.name != found[1]) continue;
    tensor = Spread(tensor.name, ShapeIn(found[2]));
    return true;
  }
  return false;
}

void Make(const std::string& directory, bool zeros) {
  std::ifstream file(directory + "/config.json");
  const nlohmann::json config = nlohmann::json::parse(file, nullptr, false);
  if (!config.is_object()) {
    std::fprintf(stderr, "%s: no config.json with an object\n", directory.c_str());
    std::exit(1);
  }
  std::vector<RandomTensor> tensors;
  for (;;) {
    WriteZeroModel(directory, tensors);
    const models::Inspection found = models::InspectDirectory(directory);
    if (found.servable) break;
    if (tensors.size() > kMostTensors || !Learn(found.error, tensors)) {
      std::fprintf(stderr, "%s\n", found.error.c_str());
      std::exit(1);
    }
  }
  if (!zeros) WriteRandomModel(directory, config, tensors);
  std::printf("%s: %zu tensors\n", directory.c_str(), tensors.size());
}

}  // namespace
}  // namespace longview::bench

int main(int count, char** arguments) {
  bool zeros = false;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(arguments[i]) == "--zeros") {
      zeros = true;
    } else {
      longview::bench::Make(arguments[i], zeros);
    }
  }
  return 0;
}
