// config.json of Multi-Scale Vision Longformer (Zhang et al. 2021; microsoft/vision-longformer) and
// of ViL-LS, the same stages with long-short attention in place of chunks (Zhu et al. 2021;
// NVIDIA/transformer-ls, imagenet/): an architecture string and the options beside it.
//
//   arch  := stage "_" stage "_" stage [ "_" stage ]     stage := KEY INT { "," KEY INT }
//   keys: l number, h heads, d width, n blocks, s efficient attention, g global tokens, p patch
//         side, f chunk or window side (or the feature number of the attention type), a absolute
//         positions, r landmarks per head (ViL-LS)
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

// How the tokens of a stage attend.
enum class VilAttention { kFull, kChunks, kLinformer, kReduction, kPerformer, kLongShort };

struct VilStage {
  int heads = 3;
  int width = 192;  // d
  int blocks = 1;   // Pairs of attention and MLP.
  int globals = 1;
  int patch = 2;
  int features = 7;  // Chunk or window side, projected length, reduction ratio, random features.
  int ranks = 0;     // Landmarks per head.
  int hidden = 768;  // Width inside the MLP.
  bool absolute = true;
  VilAttention attention = VilAttention::kChunks;
  ImageSize map;  // Size that the positions were built for.

  int head_dim() const { return width / heads; }
  bool relative_bias() const {
    return !absolute && (attention == VilAttention::kFull || attention == VilAttention::kChunks ||
                         attention == VilAttention::kLongShort);
  }
  // Whether weights belong to the places of one map size.
  bool fixed_map() const {
    return absolute || attention == VilAttention::kLinformer ||
           (attention == VilAttention::kFull && relative_bias());
  }
  // Side of the squares that tokens lie in one after the other; 0: row by row.
  int token_square() const {
    if (attention == VilAttention::kLongShort) return features > 0 ? features : 1;
    return attention == VilAttention::kChunks ? features : 0;
  }
};

struct VilConfig {
  std::string family;  // "vil" or "vil_ls".
  std::string architecture;
  std::vector<VilStage> stages;  // 3 or 4
  ImageSize image;
  int channels = 3;
  bool norm_embed = true;
  bool average_pool = false;
  bool share_w = true;   // Global tokens use the projections of local ones.
  bool share_kv = true;  // Linformer: one projection for keys and values.
  bool only_global = false;
  int exactness = 0;  // sw_exact: 0 whole chunks, 1 exact window, -1 cyclic.
  bool own_chunk_only = false;
  float eps = 1e-6f;
  float dual_eps = 1e-5f;  // For the norms inside long-short attention.
  // Serve maps that the weights were not built for: positions are interpolated as the original
  // loaders do it, windows and chunks clipped at the border.
  bool any_size = false;
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;
  // Only the stage maps are wanted: neither last norm nor head. Maps smaller than the positions
  // take the first of them, unless any_size says otherwise.
  bool backbone = false;

  int feature_width() const { return stages.back().width; }
  // Whether the class is read from the first global token; else from the mean over all tokens.
  bool reads_class_token() const { return stages.back().globals > 0 && !average_pool; }
  int stride(size_t stage) const;  // Pixels per token side, up to and with this stage.
  // Whether stage `stage` runs on maps of this size.
  bool Fits(size_t stage, ImageSize map) const;
};

// INVALID_ARGUMENT names the key, the value and what is allowed. `backbone`: for a detector, whose
// `image_size` is the longest side, rounded up to a multiple of the total stride; labels belong to
// the detector.
absl::StatusOr<VilConfig> ParseVilConfig(const nlohmann::json& config, const CommonConfig& common,
                                         const std::string& origin, bool backbone);
absl::StatusOr<VilConfig> ParseVilLsConfig(const nlohmann::json& config, const CommonConfig& common,
                                           const std::string& origin, bool backbone);

// The map sizes of an image through the stages; INVALID_ARGUMENT if one is empty.
absl::StatusOr<std::vector<ImageSize>> VilMaps(const VilConfig& config, ImageSize image);

}  // namespace longview::models
