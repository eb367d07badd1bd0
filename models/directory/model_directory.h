// A model directory, opened: every file that loading and inspecting need, checked for itself.
// Consistency (tensor names, vocabulary against embedding rows) is the family's business.
// Thread-safe once opened.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "models/checkpoint/checkpoint.h"
#include "models/config/common_config.h"
#include "models/config/sentence_config.h"
#include "models/config/serving_config.h"
#include "models/text/lra_tokenizer.h"
#include "models/text/tokenizer.h"
#include "nlohmann/json.hpp"

namespace longview::models {

// Why a model is read as the class that it is.
enum class ClassSource {
  kConfig,     // config.json names it.
  kTensors,    // The tensors' names, where config.json names none.
  kTask,       // `task` of longview.json or --task.
  kNoHead,     // The base class, where weights of sentence-transformers lack the named one's head.
  kNotServed,  // The base class of the model_type, where the named one is not served.
};

struct ModelDirectory {
  std::string root;         // The given path, with modules.json and longview.json.
  std::string path;         // The folder of config.json, weights and tokenizer, mostly the root.
  std::string config_path;  // For messages about `config`.
  nlohmann::json config;    // config.json, whole.
  CommonConfig common;      // Labels as longview.json wants them.
  ClassSource class_source = ClassSource::kConfig;  // Why common.architecture.
  ServingConfig serving;
  SentenceConfig sentence;
  Checkpoint checkpoint;
  // At most one; neither: token ids only.
  std::optional<Tokenizer> tokenizer;
  std::optional<LraBytes> bytes;
};

// Errors name the file. NOT_FOUND without directory, config.json or weights;
// FAILED_PRECONDITION with the command that converts if the weights are pickled;
// INVALID_ARGUMENT for files that are broken or ask for something not served.
absl::StatusOr<ModelDirectory> OpenModelDirectory(const std::string& path);

// The single steps, for a report that goes on after the first problem. REQUIRES: `path` is the
// directory as it was given, which ReadConfiguration makes the root, and this succeeded before the
// others.
absl::Status ReadConfiguration(ModelDirectory& directory);
absl::Status OpenWeights(ModelDirectory& directory);
absl::Status OpenTokenizer(ModelDirectory& directory);

}  // namespace longview::models
