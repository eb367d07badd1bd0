// An encoder as a Model: what all families share between model.h and their layers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "models/device/device.h"
#include "models/directory/model_directory.h"
#include "models/encoder/family.h"
#include "models/model.h"
#include "models/text/tokenizer.h"

namespace longview::models {

// The tokenizer that a family makes of files of its own, of a directory without one. Unset: there
// is none.
using ReadTokenizer = absl::StatusOr<std::optional<Tokenizer>> (*)(const ModelDirectory&);

// The model on `device`; null: on the CPU. `notes` are put behind the model's own and
// come before those of the type it computes in.
absl::StatusOr<std::unique_ptr<Model>> LoadEncoderAt(std::unique_ptr<Device> device,
                                                     ModelDirectory directory,
                                                     const LoadOptions& options, MakeEncoder make,
                                                     std::vector<std::string> notes = {},
                                                     ReadTokenizer read = nullptr);

// For registry.h's `describe`: checks configuration, names and shapes, reads no weights. Errors are
// also those of modules behind the encoder.
absl::StatusOr<ModelInfo> DescribeEncoder(const ModelDirectory& directory, MakeEncoder make,
                                          ReadTokenizer read = nullptr);

// The longest sequence: `positions` of a table, 0 without one, lowered by the limit of texts of
// sentence-transformers, or where there is none by the tokenizer's, and by longview.json.
int MostTokens(const ModelDirectory& directory, int positions);

// INVALID_ARGUMENT if the vocabulary lacks what the tokenizer puts around every text. Further ids
// that it lacks are a note (CompletionNotes), and an error of texts that use them.
absl::Status CheckTokenIds(const ModelDirectory& directory, int vocab);

// The configuration that kParse reads of a directory, if it fits the directory's tokenizer.
template <auto kParse>
auto ReadTextConfig(const ModelDirectory& directory) {
  auto config = kParse(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config;
  if (absl::Status status = CheckTokenIds(directory, config->vocab); !status.ok()) config = status;
  return config;
}

}  // namespace longview::models
