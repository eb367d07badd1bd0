// Activations by HuggingFace's names.
#pragma once

#include <string_view>

#include "models/config/json_reader.h"
#include "models/dense/rowwise.h"

namespace longview::models {

// gelu if the key is absent. An unknown name is the reader's error.
Activation ReadActivation(JsonReader& reader, std::string_view key);

}  // namespace longview::models
