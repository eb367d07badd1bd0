// An autoregressive Composite Slice decoder made from a directory. Slices behind the last position
// get that one's.
#pragma once

#include "models/cst/lm_decoder.h"
#include "tests/models/generation/decoder_case.h"

namespace longview::models {

using CstCase = DecoderCase<CstDecoder, ParseCstConfig>;

}  // namespace longview::models
