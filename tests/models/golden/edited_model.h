// A copy of a fixture's model with changed configuration or weights.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/model.h"
#include "nlohmann/json.hpp"
#include "tests/models/golden/golden_case.h"
#include "tests/support/temp_directory.h"

namespace longview::models {

struct EditedTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

class EditedModel {
 public:
  explicit EditedModel(const GoldenCase& golden);

  nlohmann::json config;
  std::map<std::string, EditedTensor> tensors;

  // Makes every side of `from` entries one of `to`, by leaving values out.
  void Cut(int64_t from, int64_t to);
  // Writes the directory; its path.
  const std::string& Write() const;
  // And loads it.
  absl::StatusOr<std::unique_ptr<Model>> Load(const std::string& dtype = "fp32") const;
  const std::string& directory() const { return directory_.path(); }

 private:
  testing::TempDirectory directory_;
};

}  // namespace longview::models
