// A fixture of tests/golden/<family>: its model, inputs and expected outputs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint/checkpoint.h"
#include "models/model.h"
#include "nlohmann/json.hpp"
#include "tests/models/run_together.h"

namespace longview::models {

// Aborts the test binary with a message if a file of the case is missing or broken.
class GoldenCase {
 public:
  explicit GoldenCase(const std::string& name, const std::string& family = "longformer");

  // Every case of a family that is there, sorted.
  static std::vector<std::string> Names(const std::string& family);
  // The cases among `names` that are there: tests/golden holds a selection.
  static std::vector<std::string> Present(const std::string& family,
                                          const std::vector<std::string>& names);

  const nlohmann::json& description() const { return description_; }
  std::string directory(const std::string& model = "model") const;
  std::unique_ptr<Model> Load(const std::string& dtype, const std::string& model = "model") const;
  double tolerance(const std::string& key) const;
  nlohmann::json Texts() const;  // texts.json

  bool HasInput(const std::string& name) const { return inputs_->Find(name) != nullptr; }
  std::vector<int64_t> Integers(const std::string& name) const;
  std::vector<int64_t> ExpectedIntegers(const std::string& name) const;
  // The double-precision run where the case has one, else the fp32 one.
  std::vector<double> Expected(const std::string& name) const;
  // The tensor of exactly this name.
  std::vector<double> ExpectedExactly(const std::string& name) const;
  std::vector<std::string> ExpectedNames() const;
  bool Expects(const std::string& name) const { return expected_->Find(name) != nullptr; }
  // LargestDifference of an item's rows, of those at positions.<item> where `want` has no others.
  double Difference(std::span<const float> got, const std::vector<double>& want, int item) const;

  // <ids>.N with its masks; items counts N.
  TokenInput Tokens(int item, const std::string& ids = "input_ids") const;
  int items(const std::string& ids = "input_ids") const;
  // text_bytes.N or another input of bytes.
  std::string Bytes(const std::string& name) const;

 private:
  std::string root_;
  nlohmann::json description_;
  std::optional<Checkpoint> inputs_, expected_;
};

// Row `row` of a matrix of `rows` rows.
std::vector<double> RowOf(const std::vector<double>& values, int row, int rows);

Request TokenRequest(Task task, TokenInput tokens, std::vector<std::string> tensors);

}  // namespace longview::models
