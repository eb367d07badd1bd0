// config.json of an LED directory as HuggingFace writes it (LEDConfig): Beltagy et al. 2020,
// section
// 7. Absent keys take LEDConfig's defaults, aliases are read, values that mean something else
// elsewhere are refused by name.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "models/decoder_stack/stack.h"
#include "models/directory/model_directory.h"
#include "models/longformer/config.h"

namespace longview::models {

struct LedConfig {
  LongformerConfig encoder;  // `positions` of its table, windows, sizes; no head.
  StackConfig decoder;
  int max_output = 0;  // Rows of the decoder's position table: tokens it can read.
  bool tied = true;    // tie_word_embeddings
  int32_t decoder_start = 2;
  std::vector<int32_t> eos;
  int32_t pad = 1;
};

// Reads generation_config.json too, for the start token. INVALID_ARGUMENT names file, key, value
// and what is possible.
absl::StatusOr<LedConfig> ParseLedConfig(const ModelDirectory& directory);

}  // namespace longview::models
