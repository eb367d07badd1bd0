// The rotary positions of a ModernBERT configuration: one set of parameters for layers that see
// their whole document and one for those with a window, in the keys of release 4 or 5.
#pragma once

#include "models/config/json_reader.h"
#include "models/transformer/config.h"

namespace longview::models {

// Fills config.rotary and which of it each layer has. Problems are the reader's status. REQUIRES:
// sizes and layers were read.
void ReadRotary(JsonReader& reader, TransformerConfig& config);

}  // namespace longview::models
