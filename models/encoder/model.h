// An encoder as a Model: what all families share between model.h and their layers.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/dense/compute_choice.h"
#include "models/encoder/facts.h"
#include "models/encoder/family.h"
#include "models/model.h"
#include "models/model_directory.h"

namespace longview::models {

// Loads a family's configuration and weights. The directory outlives what is returned.
using BuildEncoder = absl::FunctionRef<absl::StatusOr<std::unique_ptr<EncoderFamily>>(
    const ModelDirectory& directory, Compute compute)>;

// Chooses the compute type, builds the family, makes it a model.
absl::StatusOr<std::unique_ptr<Model>> LoadEncoder(ModelDirectory directory,
                                                   const LoadOptions& options, BuildEncoder build);

// The same of a family whose layers run on `device`, which chose `choice`.
absl::StatusOr<std::unique_ptr<Model>> LoadEncoderOn(const std::string& device,
                                                     ModelDirectory directory, ComputeChoice choice,
                                                     BuildEncoder build);

// The model without weights, for registry.h's `describe`. `own_tokenizer`: the family reads text
// without tokenizer files in the directory. Errors are those of modules behind the encoder.
absl::StatusOr<ModelInfo> DescribeEncoder(const ModelDirectory& directory,
                                          const EncoderFacts& facts, double parameters,
                                          bool own_tokenizer = false);

// The longest sequence: `positions` of a table, 0 without one, lowered by the tokenizer's limit and
// longview.json.
int MostTokens(const ModelDirectory& directory, int positions);

// INVALID_ARGUMENT if the tokenizer has ids that the vocabulary lacks.
absl::Status CheckTokenIds(const ModelDirectory& directory, int vocab);

// The configuration that kParse reads of a directory, if it fits the directory's tokenizer.
template <auto kParse>
auto ReadTextConfig(const ModelDirectory& directory) {
  auto config = kParse(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config;
  if (absl::Status status = CheckTokenIds(directory, config->vocab); !status.ok()) config = status;
  return config;
}

// A run that also counts seconds by part of the work, for benchmarks. REQUIRES: `model` came from
// LoadEncoder.
std::unique_ptr<Run> BeginTimed(const Model& model, std::span<const Item* const> items,
                                EncoderTimes* times);

}  // namespace longview::models
