// Fixtures of image classifiers: a model, pictures or pixel values, and what the original code
// makes of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "nlohmann/json.hpp"
#include "tests/models/run_together.h"

namespace longview::models {

class ImageCase {
 public:
  // tests/golden/<family>/<name>
  ImageCase(const std::string& family, const std::string& name);

  // The model's directory, or another one of the fixture, with keys of config.json replaced.
  absl::StatusOr<std::unique_ptr<Model>> LoadEdited(const nlohmann::json& changes,
                                                    const std::string& directory = "model") const;
  // Null, with a failure, if the model does not load.
  std::unique_ptr<Model> Load(const std::string& dtype) const;
  std::unique_ptr<Model> LoadWith(const nlohmann::json& changes,
                                  const std::string& directory = "model") const;

  // One per image, classification with logits and embedding.
  std::vector<Request> Requests() const;
  // Per request, how far answers may be away: `tolerance`, or what another JPEG decoder makes.
  double Allowed(size_t item) const;
  // Stages of which the fixture holds outputs.
  int Stages() const;
  // Row-major, tokens by channels; of item 0 where the fixture holds that one only.
  std::vector<double> Hidden(int stage, size_t item) const;

  std::string folder;
  Checkpoint inputs, expected;
  nlohmann::json description;
};

// Names of a family's fixtures.
std::vector<std::string> ImageCases(const std::string& family);

// Values of any type, as doubles; empty if there is no such tensor.
std::vector<double> ValuesOf(const Checkpoint& file, const std::string& name);

// Largest difference of a tensor of the answer from entry `item` of a stacked expectation.
double Distance(const Answer& answer, const std::string& name, const std::vector<double>& want,
                size_t item);

// The promises that hold for every fixture of every family.
void ExpectFixtureWithinTolerance(const ImageCase& golden);
void ExpectWithinTolerance(const ImageCase& golden, const Model& model);
// Embeddings of the fixture's requests by `model`, which is not the fixture's own.
void ExpectFeatures(const ImageCase& golden, const Model& model);
// A case of images or of detections, in both types.
template <class Case>
void ExpectSameBitsAloneAndTogether(const Case& golden) {
  for (const std::string dtype : {"fp32", "bf16"}) {
    SCOPED_TRACE(dtype);
    const std::unique_ptr<Model> model = golden.Load(dtype);
    ASSERT_NE(model, nullptr);
    ExpectSameBitsAloneAndTogether(*model, golden.Requests());
  }
}
// A fixture's request with black pixels of another size, and that it is refused by a message that
// names the size and has `part`.
Request Resized(Request request, ImageSize size);
void ExpectSizeRefused(const Model& model, Request request, ImageSize size,
                       const std::string& part);
// features.<stride> of every stage whose stride no later stage shares.
void ExpectStageMaps(const ImageCase& golden);
void ExpectStageMaps(const ImageCase& golden, const Model& model);

}  // namespace longview::models
