// The class of a checkpoint whose config.json names none in `architectures`, as some of the hub's
// most used directories, and the number of its labels where nothing says it.
// Thread-safe: pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/directory/model_directory.h"
#include "models/model.h"

namespace longview::models {

// Sets `common.architecture` by `model_type` and the tensors' names where config.json has none, or
// by `task` of longview.json, which overrides config.json, or to the base class where weights of
// sentence-transformers lack the named head. Sets `common.labels` to LABEL_<i> for each row of the
// head where no file has labels. REQUIRES: configuration and weights were read.
// INVALID_ARGUMENT names the file, the key and what is possible.
absl::Status CompleteConfiguration(ModelDirectory& directory);

// Sets `common.architecture` to the class with a head for the task, whatever the files say.
absl::Status ChooseTask(Task task, ModelDirectory& directory);

// Sets `common.architecture` to the base class of the model_type; false if that has none.
bool TakeBaseClass(ClassSource source, ModelDirectory& directory);

// INVALID_ARGUMENT that names the class, and how --task chooses another.
absl::Status RefuseClass(const ModelDirectory& directory);

// Whether the class has a head, of a type whose base class is known, and the weights have none.
// REQUIRES: as CompleteConfiguration.
bool LacksNamedHead(const ModelDirectory& directory);

// `refused`, and where tensors are missing of a model that lacks its head, how --task does without.
absl::Status WithTaskHint(const absl::Status& refused, bool lacks_head);

// Whether it is left to the head's weights how many labels there are. REQUIRES: config.json was
// read.
bool HeadCountsLabels(const ModelDirectory& directory);

// In which points the above differs from config.json, and the tokenizer from the model's table.
std::vector<std::string> CompletionNotes(const ModelDirectory& directory);

}  // namespace longview::models
