#include "models/cvt_ls/config.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

constexpr int kMostHeadDim = 128;  // kernels::kMaxHeadDim

void ReadStages(JsonReader& reader, CvtConfig& config) {
  struct Key {
    const char* name;
    int CvtStage::*field;
    int low, high;
  };
  constexpr Key kKeys[] = {{"dims", &CvtStage::width, 1, 8192},
                           {"heads", &CvtStage::heads, 1, 1024},
                           {"depths", &CvtStage::blocks, 1, 1024},
                           {"ranks", &CvtStage::ranks, 0, 4096},
                           {"windows", &CvtStage::window, 0, 65536}};
  for (const Key& key : kKeys) {
    const std::vector<int64_t> values = reader.IntList(key.name, key.low, key.high);
    if (values.size() != kCvtStages) {
      reader.Refuse(key.name, "three numbers");
      return;
    }
    for (size_t s = 0; s < kCvtStages; ++s) {
      config.stages[s].*key.field = static_cast<int>(values[s]);
    }
  }
  const double ratio = reader.NumberOr("mlp_ratio", 4);
  if (!(ratio >= 1 && ratio <= 64)) reader.Refuse("mlp_ratio", "in [1, 64]");
  const bool always = reader.ChoiceOr("stage1_out_proj", "auto", {"auto", "always"}) == "always";
  for (CvtStage& stage : config.stages) {
    if (stage.width % stage.heads != 0) reader.Refuse("dims", "multiples of heads");
    if (stage.head_dim() > kMostHeadDim) {
      reader.Refuse("dims", absl::StrCat("at most ", kMostHeadDim, " channels a head"));
    }
    if (stage.ranks == 0 && stage.window == 0) {
      reader.Refuse("windows", "above 0 where ranks is 0");
    }
    stage.hidden = static_cast<int>(stage.width * ratio);
    stage.out_projection = always || stage.heads > 1;
  }
}

void ReadClassToken(const nlohmann::json& json, JsonReader& reader, CvtConfig& config) {
  // Null is a value here, not an absent key: no class token.
  const bool none = json.contains("cls_stage") && json["cls_stage"].is_null();
  reader.IntOr("cls_stage", 3, 3, 3);
  config.stages.back().class_token = !none;
  config.class_pointwise =
      reader.ChoiceOr("cls_qkv", "identity", {"identity", "pointwise"}) == "pointwise";
  config.class_sees_outputs = reader.ChoiceOr("cls_update", "post", {"post", "joint"}) == "post";
  config.mean_pool = reader.ChoiceOr("pool", "cls", {"cls", "mean"}) == "mean";
  if (none && !config.mean_pool) reader.Refuse("pool", "mean, as there is no class token");
}

void ReadProjections(JsonReader& reader, CvtConfig& config) {
  const std::string norm = reader.ChoiceOr("qkv_norm", "bn", {"bn", "ws", "none"});
  config.kernel_norm = norm == "bn"   ? CvtKernelNorm::kBatchNorm
                       : norm == "ws" ? CvtKernelNorm::kStandardised
                                      : CvtKernelNorm::kNone;
  const std::string standard =
      reader.ChoiceOr("ws_variant", "qiao", {"qiao", "biased", "centred_norm"});
  config.standard = standard == "qiao"     ? CvtStandard::kQiao
                    : standard == "biased" ? CvtStandard::kBiased
                                           : CvtStandard::kCentredNorm;
  config.projection_bias = reader.BoolOr("qkv_bias", true);
  config.landmark_bias = reader.BoolOr("dp_bias", true);
  config.shared_landmarks = reader.BoolOr("dp_shared_kv", true);
  config.landmarks_from_keys = reader.ChoiceOr("dp_input", "ln_out", {"ln_out", "k"}) == "k";
  config.dual_norm = reader.BoolOr("dual_ln", true);
  config.scale_by_width =
      reader.ChoiceOr("attn_scale", "head_dim", {"head_dim", "model_dim"}) == "model_dim";
  // Other values have no meaning with long-short attention.
  reader.IntOr("qkv_stride_kv", 1, 1, 1);
  if (reader.BoolOr("rel_bias", false)) reader.Refuse("rel_bias", "false");
}

float ReadEps(JsonReader& reader, const char* key) {
  const double eps = reader.NumberOr(key, 1e-5);
  if (!(eps > 0)) reader.Refuse(key, "a number above 0");
  return static_cast<float>(eps);
}

}  // namespace

int CvtConfig::stride(size_t stage) const {
  int pixels = 1;
  for (size_t s = 0; s <= stage; ++s) pixels *= kCvtEmbeddings[s].stride;
  return pixels;
}

absl::StatusOr<CvtConfig> ParseCvtConfig(const nlohmann::json& json, const CommonConfig& common,
                                         const std::string& origin, bool backbone) {
  JsonReader reader(json, origin);
  CvtConfig config;
  config.architecture = common.architecture;
  config.problem_type = common.problem_type;
  config.backbone = backbone;
  if (!backbone) config.labels = common.labels;
  constexpr int kMostPixels = 1 << 16;
  const auto side = static_cast<int>(backbone ? reader.IntOr("image_size", 1333, 1, kMostPixels)
                                              : reader.Int("image_size", 1, kMostPixels));
  config.image = {side, side};
  reader.IntOr("num_channels", 3, 3, 3);
  ReadStages(reader, config);
  ReadClassToken(json, reader, config);
  ReadProjections(reader, config);
  config.embed_norm = reader.BoolOr("embed_norm", true);
  config.any_size = reader.BoolOr("any_size", backbone);
  config.activation = reader.ChoiceOr("act", "gelu_erf", {"gelu_erf", "quick_gelu"}) == "gelu_erf"
                          ? Activation::kGelu
                          : Activation::kQuickGelu;
  config.eps = ReadEps(reader, "ln_eps");
  config.dual_eps = ReadEps(reader, "dual_ln_eps");
  config.batch_eps = ReadEps(reader, "bn_eps");
  if (!reader.status().ok()) return reader.status();
  if (absl::Status status = CheckCvtSize(config, config.image); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(origin, ": image_size: ", status.message()));
  }
  return config;
}

absl::StatusOr<std::array<ImageSize, kCvtStages>> CvtMaps(ImageSize image) {
  std::array<ImageSize, kCvtStages> maps;
  for (size_t s = 0; s < kCvtStages; ++s) {
    const CvtEmbedding conv = kCvtEmbeddings[s];
    const auto side = [&](int in) {
      const int left = in + 2 * conv.padding() - conv.kernel;
      return left < 0 ? 0 : left / conv.stride + 1;
    };
    const ImageSize map = {side(image.height), side(image.width)};
    if (map.height < 1 || map.width < 1) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", s + 1, ": a map of ", image.height,
                                                     " x ", image.width,
                                                     " is smaller than its convolution"));
    }
    maps[s] = image = map;
  }
  return maps;
}

absl::Status CheckCvtSize(const CvtConfig& config, ImageSize image) {
  ASSIGN_OR_RETURN(const auto maps, CvtMaps(image));
  for (size_t s = 0; s < kCvtStages && !config.any_size; ++s) {
    const ImageSize map = maps[s];
    const int w = config.stages[s].window;
    if (w == 0 || (map.height == map.width && map.height % w == 0)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("pixels of ", image.height, " x ", image.width, ": the map of stage ", s + 1,
                     ", ", map.height, " x ", map.width, ", is not a square of whole windows of ",
                     w, "; \"any_size\": true in config.json serves it"));
  }
  return absl::OkStatus();
}

}  // namespace longview::models
