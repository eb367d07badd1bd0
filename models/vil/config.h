// config.json of Multi-Scale Vision Longformer (Zhang et al. 2021; microsoft/vision-longformer):
// an architecture string and the options beside it.
//
//   arch  := stage "_" stage "_" stage [ "_" stage ]     stage := KEY INT { "," KEY INT }
//   keys: l number, h heads, d width, n blocks, s efficient attention, g global tokens, p patch
//         side, f chunk side (or the feature number of the attention type), a absolute positions
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "nlohmann/json.hpp"

namespace longview::models {

// How the tokens of a stage attend.
enum class VilAttention { kFull, kChunks, kLinformer, kReduction, kPerformer };

struct VilStage {
  int heads = 3;
  int width = 192;  // d
  int blocks = 1;   // Pairs of attention and MLP.
  int globals = 1;
  int patch = 2;
  int features = 7;  // Chunk side, projected length, reduction ratio or random features.
  bool absolute = true;
  VilAttention attention = VilAttention::kChunks;
  ImageSize map;  // Of the size the positions were built for.

  int head_dim() const { return width / heads; }
  bool relative_bias() const {
    return !absolute && (attention == VilAttention::kFull || attention == VilAttention::kChunks);
  }
  // Whether the weights fit one map size only.
  bool fixed_map() const {
    return absolute || attention == VilAttention::kLinformer ||
           (attention == VilAttention::kFull && relative_bias());
  }
};

struct VilConfig {
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
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;
  // Only the stage maps are wanted: neither last norm nor head, and maps smaller than the positions
  // take the first of them.
  bool backbone = false;

  int feature_width() const { return stages.back().width; }
  // Whether the class is read from the first global token; else from the mean over all tokens.
  bool reads_class_token() const { return stages.back().globals > 0 && !average_pool; }
  int stride(size_t stage) const;  // Pixels per token side, up to and with this stage.
};

// INVALID_ARGUMENT names the key, the value and what is allowed.
absl::StatusOr<VilConfig> ParseVilConfig(const nlohmann::json& config, const CommonConfig& common,
                                         const std::string& origin);

// The same for a detector's backbone: `image_size` is the longest side, rounded up to a multiple of
// the total stride; labels belong to the detector.
absl::StatusOr<VilConfig> ParseVilBackboneConfig(const nlohmann::json& config,
                                                 const CommonConfig& common,
                                                 const std::string& origin);

// The map sizes of an image through the stages; INVALID_ARGUMENT if one is empty.
absl::StatusOr<std::vector<ImageSize>> VilMaps(const VilConfig& config, ImageSize image);

}  // namespace longview::models
