// config.json of a generating Luna directory (Ma et al. 2021, section 3.3):
//
//   LunaForConditionalGeneration  the published translation model: an encoder, and a decoder whose
//                                 rows P begin as the encoder's last
//   LunaForCausalLM               that decoder without cross attention, its rows P parameters of
//                                 each layer; the paper's alone, no code or checkpoint is public
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/linear_attention/running_outer.h"
#include "models/config/common_config.h"
#include "models/dense/rowwise.h"
#include "models/layers/block_tail.h"
#include "models/luna/config.h"
#include "models/luna/config_keys.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

struct LunaDecoderConfig {
  int vocab = 0;
  int width = 0;         // d
  int intermediate = 0;  // F
  int layers = 0;
  int heads = 0;
  int projected = 0;    // l, rows of P; all are active in a language model.
  bool tied_kv = true;  // c_proj makes keys and values.
  NormPlace norms = NormPlace::kPost;
  bool embedding_norm = false;
  Activation activation = Activation::kRelu;
  kernels::OuterActivation phi = kernels::OuterActivation::kSoftplusLn2;
  LunaPositions positions = LunaPositions::kSinusoidal;
  int max_tokens = 0;  // max_positions
  float embed_scale = 1;
  float norm_eps = 0;
  LunaNormGain gain = LunaNormGain::kDirect;
  bool legacy_roles = false;  // pc_proj and c_proj are stored under each other's name.
  bool tied_words = true;     // The output matrix is the embedding.
  int pad = 1;
  std::vector<int32_t> ends = {2};  // eos_token_id; fairseq's where config.json has none.

  // Set for translation models.
  std::optional<LunaConfig> encoder;
  int cross_pack_heads = 0;   // H_p of the pack across.
  bool shared_words = false;  // The encoder's embedding is the decoder's.
  int start = 2;              // decoder_start_token_id
  int output_width = 0;       // decoder_output_dim: of what the output matrix reads.

  int head_dim() const { return width / heads; }
  // Query, write (pc_proj), key and value of a token side by side; tied: key and value are one.
  int parts() const { return tied_kv ? 3 : 4; }
  // The token read at index t has the position t + pad + 1.
  int position_rows() const { return max_tokens + pad + 1; }
};

// By common.architecture. `common` is what the shared reader made of the same object.
// INVALID_ARGUMENT begins with `origin` and names key, value and what is possible.
absl::StatusOr<LunaDecoderConfig> ParseLunaDecoderConfig(const nlohmann::json& json,
                                                         const CommonConfig& common,
                                                         const std::string& origin);

std::span<const std::string_view> LunaDecoderArchitectures();

}  // namespace longview::models
