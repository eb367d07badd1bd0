// config.json of CvT*-LS: a convolutional vision transformer with long-short attention (Zhu et al.
// 2021, section 4.3 and appendix E). No code of it was published; where the paper is silent a key
// chooses, and the defaults are those of the sources it names.
//
// Three stages: a convolution with overlapping taps, LayerNorm, blocks. No positions; the class
// token joins in the last stage.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config/common_config.h"
#include "models/dense/rowwise.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "nlohmann/json_fwd.hpp"

namespace longview::models {

inline constexpr size_t kCvtStages = 3;

// The embedding convolution of a stage.
struct CvtEmbedding {
  int kernel = 3;
  int stride = 2;
  int padding() const { return kernel == 7 ? 2 : 1; }
};
inline constexpr std::array<CvtEmbedding, kCvtStages> kCvtEmbeddings = {{{7, 4}, {3, 2}, {3, 2}}};

struct CvtStage {
  int heads = 1;
  int width = 64;  // C
  int blocks = 1;
  int ranks = 0;   // Landmarks per head.
  int window = 0;  // 0: landmarks (and class token) only.
  int hidden = 256;
  bool class_token = false;
  bool out_projection = true;

  int head_dim() const { return width / heads; }
  int columns() const { return heads * ranks; }
};

// How the depthwise kernels of queries, keys and values are normalised.
enum class CvtKernelNorm { kBatchNorm, kStandardised, kNone };
// Weight standardisation of a channel's nine numbers u:
enum class CvtStandard {
  kQiao,         // (u - mean) / (std + 1e-5), std with divisor 8.
  kBiased,       // (u - mean) / sqrt(variance + 1e-5), divisor 9.
  kCentredNorm,  // (u - mean) / |u - mean|; 0 for a constant kernel.
};

struct CvtConfig {
  std::string family = "cvt_ls";
  std::string architecture;
  std::array<CvtStage, kCvtStages> stages;
  ImageSize image;
  bool class_pointwise = false;    // The class row passes through the pointwise projections.
  bool class_sees_outputs = true;  // Outputs of the map; else its keys.
  CvtKernelNorm kernel_norm = CvtKernelNorm::kBatchNorm;
  bool projection_bias = true;       // For queries, keys and values.
  bool shared_landmarks = true;      // One projection for keys and values.
  bool landmarks_from_keys = false;  // Landmark scores read keys; false: LN(x).
  bool landmark_bias = true;
  CvtStandard standard = CvtStandard::kQiao;
  bool dual_norm = true;
  bool scale_by_width = false;  // C^-1/2 in place of (C / h)^-1/2.
  bool embed_norm = true;
  bool mean_pool = false;  // LN of the mean over all rows; else of the class row.
  bool any_size = false;   // Rectangles and maps that are not whole windows.
  Activation activation = Activation::kGelu;
  float eps = 1e-5f, dual_eps = 1e-5f, batch_eps = 1e-5f;
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;
  bool backbone = false;  // Only the stage maps are wanted: no head.

  int stride(size_t stage) const;  // Pixels per token side, up to and with this stage.
};

// INVALID_ARGUMENT names the key, the value and what is allowed. `backbone`: for a detector, which
// serves any size and brings its own labels.
absl::StatusOr<CvtConfig> ParseCvtConfig(const nlohmann::json& config, const CommonConfig& common,
                                         const std::string& origin, bool backbone);

// The map sizes of an image through the stages; INVALID_ARGUMENT if one is empty.
absl::StatusOr<std::array<ImageSize, kCvtStages>> CvtMaps(ImageSize image);

// INVALID_ARGUMENT if the model does not run on images of this size.
absl::Status CheckCvtSize(const CvtConfig& config, ImageSize image);

}  // namespace longview::models
