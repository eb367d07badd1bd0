#include "tests/models/golden/golden_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "models/config/json_reader.h"

namespace longview::models {
namespace {

template <typename T>
T OrDie(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "golden case: %s\n", value.status().ToString().c_str());
  std::abort();
}

std::string GoldenRoot() {
  const char* root = std::getenv("LONGVIEW_GOLDEN");
  return root != nullptr ? root : LONGVIEW_GOLDEN_DIR;
}

template <typename T>
std::vector<double> As(const TensorView& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    T value;
    std::memcpy(&value, tensor.data + i * sizeof(T), sizeof(T));
    values.push_back(static_cast<double>(value));
  }
  return values;
}

std::vector<int64_t> IntegersOf(const TensorView* tensor, const std::string& name) {
  if (tensor == nullptr || tensor->dtype != DType::kI64) {
    std::fprintf(stderr, "golden case: no integers called %s\n", name.c_str());
    std::abort();
  }
  std::vector<int64_t> values(static_cast<size_t>(tensor->elements()));
  std::memcpy(values.data(), tensor->data, tensor->bytes);
  return values;
}

std::vector<double> Doubles(const TensorView& tensor) {
  if (tensor.dtype == DType::kF64) return As<double>(tensor);
  if (tensor.dtype == DType::kF32) return As<float>(tensor);
  if (tensor.dtype == DType::kI64) return As<int64_t>(tensor);
  std::fprintf(stderr, "golden case: %s has an unexpected type\n", tensor.name.c_str());
  std::abort();
}

}  // namespace

GoldenCase::GoldenCase(const std::string& name, const std::string& family)
    : root_(GoldenRoot() + "/" + family + "/" + name),
      description_(OrDie(ReadJsonFile(root_ + "/case.json"))),
      inputs_(OrDie(Checkpoint::Open(root_ + "/inputs.safetensors"))),
      expected_(OrDie(Checkpoint::Open(root_ + "/expected.safetensors"))) {}

std::string GoldenCase::directory(const std::string& model) const { return root_ + "/" + model; }

std::unique_ptr<Model> GoldenCase::Load(const std::string& dtype, const std::string& model) const {
  return OrDie(LoadModel(directory(model), {.dtype = dtype, .device = "cpu"}));
}

double GoldenCase::tolerance(const std::string& key) const {
  return description_["tolerance"][key];
}

nlohmann::json GoldenCase::Texts() const {
  return OrDie(ParseJson(OrDie(ReadFile(root_ + "/texts.json", 1 << 26)), "texts.json"));
}

std::vector<int64_t> GoldenCase::Integers(const std::string& name) const {
  return IntegersOf(inputs_->Find(name), name);
}

std::vector<int64_t> GoldenCase::ExpectedIntegers(const std::string& name) const {
  return IntegersOf(expected_->Find(name), name);
}

std::vector<double> GoldenCase::Expected(const std::string& name) const {
  return ExpectedExactly(Expects(name + ".f64") ? name + ".f64" : name);
}

std::vector<double> GoldenCase::ExpectedExactly(const std::string& name) const {
  const TensorView* tensor = expected_->Find(name);
  if (tensor == nullptr) {
    std::fprintf(stderr, "golden case: nothing expected for %s\n", name.c_str());
    std::abort();
  }
  return Doubles(*tensor);
}

std::vector<std::string> GoldenCase::ExpectedNames() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : expected_->tensors()) names.push_back(name);
  return names;
}

double GoldenCase::Difference(std::span<const float> got, const std::vector<double>& want,
                              int item) const {
  const std::string positions = "positions." + std::to_string(item);
  if (got.size() == want.size() || !Expects(positions)) return LargestDifference(got, want);
  const std::vector<int64_t> rows = ExpectedIntegers(positions);
  const size_t width = want.size() / rows.size();
  std::vector<float> kept;
  for (const int64_t row : rows) {
    const size_t first = static_cast<size_t>(row) * width;
    if (first + width > got.size()) return std::numeric_limits<double>::infinity();
    kept.insert(kept.end(), got.begin() + first, got.begin() + first + width);
  }
  return LargestDifference(kept, want);
}

std::vector<std::string> GoldenCase::Names(const std::string& family) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(GoldenRoot() + "/" + family, error)) {
    if (std::filesystem::exists(entry.path() / "case.json"))
      names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> GoldenCase::Present(const std::string& family,
                                             const std::vector<std::string>& names) {
  const std::vector<std::string> all = Names(family);
  std::vector<std::string> present;
  for (const std::string& name : names) {
    if (std::find(all.begin(), all.end(), name) != all.end()) present.push_back(name);
  }
  return present;
}

int GoldenCase::items(const std::string& ids) const {
  int count = 0;
  while (HasInput(ids + "." + std::to_string(count))) ++count;
  return count;
}

std::string GoldenCase::Bytes(const std::string& name) const {
  const TensorView* tensor = inputs_->Find(name);
  if (tensor == nullptr || tensor->dtype != DType::kU8) {
    std::fprintf(stderr, "golden case: no bytes called %s\n", name.c_str());
    std::abort();
  }
  return std::string(reinterpret_cast<const char*>(tensor->data), tensor->bytes);
}

TokenInput GoldenCase::Tokens(int item, const std::string& ids) const {
  const std::string suffix = "." + std::to_string(item);
  TokenInput tokens;
  for (const int64_t id : Integers(ids + suffix)) {
    tokens.ids.push_back(static_cast<int32_t>(id));
  }
  if (HasInput("attention_mask" + suffix)) {
    for (const int64_t bit : Integers("attention_mask" + suffix)) {
      tokens.attention_mask.push_back(static_cast<uint8_t>(bit));
    }
  }
  if (HasInput("token_type_ids" + suffix)) {
    for (const int64_t type : Integers("token_type_ids" + suffix)) {
      tokens.token_type_ids.push_back(static_cast<int32_t>(type));
    }
  }
  if (HasInput("global_attention_mask" + suffix)) {
    tokens.global_mask.emplace();
    for (const int64_t bit : Integers("global_attention_mask" + suffix)) {
      tokens.global_mask->push_back(static_cast<uint8_t>(bit));
    }
  }
  return tokens;
}

std::vector<double> RowOf(const std::vector<double>& values, int row, int rows) {
  const size_t width = values.size() / static_cast<size_t>(rows);
  const auto begin = values.begin() + static_cast<ptrdiff_t>(row * width);
  return {begin, begin + static_cast<ptrdiff_t>(width)};
}

Request TokenRequest(Task task, TokenInput tokens, std::vector<std::string> tensors) {
  Request request;
  request.task = task;
  request.tokens = std::move(tokens);
  request.tensors = std::move(tensors);
  request.typed = false;
  return request;
}

}  // namespace longview::models
