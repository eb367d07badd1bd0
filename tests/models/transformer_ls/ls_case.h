// A Transformer-LS decoder made from a directory.
#pragma once

#include "models/transformer_ls/decoder.h"
#include "tests/models/generation/decoder_case.h"

namespace longview::models {

using LsCase = DecoderCase<LsDecoder, ParseLsLmConfig>;

}  // namespace longview::models
