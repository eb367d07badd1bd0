// One document as an encoder sees it. Plain data, immutable once prepared.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/span/band_planner.h"

namespace longview::models {

struct EncoderSequence {
  std::vector<int32_t> ids;
  std::vector<int32_t> positions;  // Row of the position table per token.
  std::vector<int32_t> types;      // Token types; empty: all 0.
  std::vector<uint8_t> roles;      // kernels::TokenRole: masked, local or global.
  // Tokens whose last hidden state the head reads, ascending; the last layer may leave out the
  // others.
  std::vector<int32_t> wanted;

  // Masked tokens at the end that are no part of the document: they are there because an output has
  // a row for them.
  int padding = 0;

  int tokens() const { return static_cast<int>(ids.size()); }
};

}  // namespace longview::models
