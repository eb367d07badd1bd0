// The model cases of golden/transformer_ls_lm.
#pragma once

#include <string>
#include <vector>

#include "tests/models/golden/golden_case.h"

namespace longview::models {

// The golden cases of Transformer-LS's language models that are there.
inline std::vector<std::string> LsGoldenNames() {
  return GoldenCase::Present(
      "transformer_ls_lm",
      {"paper_dh16_r1_l4_w8", "paper_dh32_r2_l16_w64", "paper_dh64_r4_l16_w24", "paper_clamps",
       "paper_fp16_file", "paper_long_3300", "paper_postln_relu_bias_l4_w10", "blocks_B16_M512_w16",
       "blocks_B32_M32_w32_l16", "blocks_B48_M16_w16_r2", "blocks_B8_M64_w16", "blocks_enwik8_dict",
       "blocks_nozero_B16_M32", "blocks_postln_bias_B8_M16", "blocks_single_M24_w24_l8"});
}

}  // namespace longview::models
