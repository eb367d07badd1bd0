#include "models/vil/config.h"

#include <climits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "models/config/json_reader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

// One stage: its number by key letter. A repeated key: the last one counts; letters that no reader
// asks for are kept and ignored, as in the original.
using ArchStage = std::map<char, int>;

// The value of `key`, or `fallback`. REQUIRES nothing of the range.
int ArchValue(const ArchStage& stage, char key, int fallback) {
  const auto found = stage.find(key);
  return found == stage.end() ? fallback : found->second;
}

absl::Status Wrong(const std::string& part, const std::string& problem) {
  return absl::InvalidArgumentError(absl::StrCat("arch: \"", part, "\" ", problem));
}

absl::StatusOr<ArchStage> ParseStage(const std::string& text) {
  ArchStage stage;
  for (const std::string& attribute : std::vector<std::string>(absl::StrSplit(text, ','))) {
    int value = 0;
    if (attribute.size() < 2 || attribute.find(' ') != std::string::npos ||
        !absl::SimpleAtoi(attribute.substr(1), &value)) {
      return Wrong(attribute, "is not a letter and a number");
    }
    stage[attribute[0]] = value;
  }
  return stage;
}

// Three or four stages, "l" equal to their place where it is given. INVALID_ARGUMENT names the
// part that is wrong.
absl::StatusOr<std::vector<ArchStage>> ParseArchString(std::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), '_');
  if (parts.size() < 3 || parts.size() > 4) {
    return Wrong(std::string(text), absl::StrCat("has ", parts.size(), " stages, not 3 or 4"));
  }
  std::vector<ArchStage> stages;
  for (const std::string& part : parts) {
    ASSIGN_OR_RETURN(ArchStage stage, ParseStage(part));
    const int number = static_cast<int>(stages.size()) + 1;
    if (ArchValue(stage, 'l', 1) != number) {
      return Wrong(part, absl::StrCat("must have l", number, " as stage ", number));
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

constexpr int kMostHeadDim = 128;  // kernels::kMaxHeadDim

absl::Status Refuse(size_t stage, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("arch: stage ", stage + 1, ": ", what));
}

absl::Status CheckRange(size_t stage, char key, int value, int low, int high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return Refuse(stage,
                absl::StrCat(std::string(1, key), value, " is not in [", low, ", ", high, "]"));
}

// Checks the limits of the published long-short attention.
absl::Status CheckLongShort(size_t index, const VilStage& stage) {
  if (stage.globals > 1) {
    return Refuse(index, absl::StrCat("g", stage.globals, ": long-short attention takes 0 or 1"));
  }
  if (stage.features > 0 || (stage.absolute && stage.ranks > 0)) return absl::OkStatus();
  return Refuse(index, "f0 (no window) needs landmarks (r) and absolute positions (a1)");
}

absl::StatusOr<VilStage> ReadStage(const ArchStage& arch, size_t index, VilAttention attention) {
  struct Range {
    char key;
    int VilStage::*field;
    int low, high;
  };
  const bool long_short = attention == VilAttention::kLongShort;
  const bool reads_features = attention != VilAttention::kFull && !long_short;
  const Range kRanges[] = {
      {'h', &VilStage::heads, 1, 1024},
      {'d', &VilStage::width, 1, 8192},
      {'n', &VilStage::blocks, 1, 1024},
      {'g', &VilStage::globals, 0, 4096},
      {'p', &VilStage::patch, 1, 64},
      {'f', &VilStage::features, reads_features ? 1 : 0, 65536},
      {'r', &VilStage::ranks, long_short ? 0 : INT_MIN, long_short ? 4096 : INT_MAX}};
  VilStage stage;
  for (const Range& range : kRanges) {
    stage.*range.field = ArchValue(arch, range.key, stage.*range.field);
    if (absl::Status status =
            CheckRange(index, range.key, stage.*range.field, range.low, range.high);
        !status.ok()) {
      return status;
    }
  }
  stage.absolute = ArchValue(arch, 'a', 1) != 0;
  stage.attention = attention;
  if (long_short) {
    RETURN_IF_ERROR(CheckLongShort(index, stage));
  }
  if (stage.width % stage.heads != 0) {
    return Refuse(index, absl::StrCat("d", stage.width, " is not a multiple of h", stage.heads));
  }
  if (stage.head_dim() > kMostHeadDim) {
    return Refuse(index, absl::StrCat("heads of ", stage.head_dim(), " channels, the limit is ",
                                      kMostHeadDim));
  }
  if (stage.absolute && stage.width % 2 != 0) {
    return Refuse(index, absl::StrCat("d", stage.width, " must be even with absolute positions"));
  }
  return stage;
}

VilAttention ParseAttention(const std::string& type) {
  if (type == "full") return VilAttention::kFull;
  if (type == "linformer") return VilAttention::kLinformer;
  if (type == "srformer") return VilAttention::kReduction;
  return type == "performer" ? VilAttention::kPerformer : VilAttention::kChunks;
}

// The first stage with s0 turns itself and all that follow to full attention.
absl::Status ReadStages(const std::vector<ArchStage>& arch, VilAttention efficient,
                        VilConfig& config) {
  for (size_t i = 0; i < arch.size(); ++i) {
    if (ArchValue(arch[i], 's', 1) == 0) efficient = VilAttention::kFull;
    ASSIGN_OR_RETURN(VilStage stage, ReadStage(arch[i], i, efficient));
    if (config.only_global && stage.attention == VilAttention::kChunks && stage.globals == 0) {
      return Refuse(i, "only_global needs global tokens");
    }
    config.stages.push_back(stage);
  }
  return absl::OkStatus();
}

// A detector's is the longest side of its training images.
void ReadImageSize(JsonReader& reader, bool detector, VilConfig& config) {
  constexpr int kMostPixels = 1 << 16;
  const nlohmann::json* size = reader.Find("image_size");
  if (size != nullptr && size->is_array()) {
    const std::vector<int64_t> sides = reader.IntList("image_size", 1, kMostPixels);
    if (sides.size() != 2) {
      reader.Refuse("image_size", "a number or [height, width]");
      return;
    }
    config.image = {static_cast<int>(sides[0]), static_cast<int>(sides[1])};
    return;
  }
  const int64_t side = detector ? reader.IntOr("image_size", 1333, 1, kMostPixels)
                                : reader.Int("image_size", 1, kMostPixels);
  config.image = {static_cast<int>(side), static_cast<int>(side)};
}

void RoundUpImage(VilConfig& config) {
  const int stride = config.stride(config.stages.size() - 1);
  for (int* side : {&config.image.height, &config.image.width}) {
    *side = (*side + stride - 1) / stride * stride;
  }
}

// Keys of both families. Returns the architecture string.
std::string ReadShared(JsonReader& reader, const CommonConfig& common, VilConfig& config) {
  config.architecture = common.architecture;
  if (!config.backbone) config.labels = common.labels;
  config.problem_type = common.problem_type;
  const std::string arch = reader.String("arch");
  ReadImageSize(reader, config.backbone, config);
  config.channels = static_cast<int>(reader.IntOr("num_channels", 3, 3, 3));
  config.norm_embed = reader.BoolOr("norm_embed", true);
  config.average_pool = reader.BoolOr("avg_pool", false);
  // A detector's images have any size, and there is no published ViL-LS that reads positions else.
  config.any_size = reader.BoolOr("any_size", config.backbone && config.family == "vil_ls");
  config.eps = static_cast<float>(reader.NumberOr("ln_eps", 1e-6));
  if (!(config.eps > 0)) reader.Refuse("ln_eps", "a number above 0");
  return arch;
}

// The stages of `arch`, with the maps of config.image.
absl::Status FillStages(const std::string& arch, VilAttention efficient, double mlp_ratio,
                        VilConfig& config) {
  ASSIGN_OR_RETURN(const std::vector<ArchStage> stages, ParseArchString(arch));
  RETURN_IF_ERROR(ReadStages(stages, efficient, config));
  if (config.backbone) RoundUpImage(config);
  ASSIGN_OR_RETURN(const std::vector<ImageSize> maps, VilMaps(config, config.image));
  for (size_t i = 0; i < maps.size(); ++i) {
    config.stages[i].map = maps[i];
    config.stages[i].hidden = static_cast<int>(config.stages[i].width * mlp_ratio);
  }
  return absl::OkStatus();
}

// Without any_size the published code runs whole windows of square maps only.
absl::Status CheckWindows(const VilConfig& config) {
  for (size_t i = 0; i < config.stages.size() && !config.any_size; ++i) {
    const VilStage& stage = config.stages[i];
    if (stage.attention != VilAttention::kLongShort || stage.features == 0) continue;
    if (stage.map.height == stage.map.width && stage.map.height % stage.features == 0) continue;
    return Refuse(i, absl::StrCat("a map of ", stage.map.height, " x ", stage.map.width,
                                  " is not a square of whole windows f", stage.features,
                                  "; \"any_size\": true serves it"));
  }
  return absl::OkStatus();
}

absl::Status WithOrigin(const std::string& origin, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(origin, ": ", status.message()));
}

}  // namespace

int VilConfig::stride(size_t stage) const {
  int pixels = 1;
  for (size_t i = 0; i <= stage; ++i) pixels *= stages[i].patch;
  return pixels;
}

bool VilConfig::Fits(size_t index, ImageSize map) const {
  const VilStage& stage = stages[index];
  if (map == stage.map) return true;
  if (any_size) return stage.attention != VilAttention::kLinformer;
  if (family != "vil") return false;
  if (!stage.fixed_map()) return true;
  // Absolute positions take the place of relative ones; Linformer's projections have a size too.
  const bool positions_only = stage.absolute && stage.attention != VilAttention::kLinformer;
  return backbone && positions_only && map.height <= stage.map.height &&
         map.width <= stage.map.width;
}

absl::StatusOr<std::vector<ImageSize>> VilMaps(const VilConfig& config, ImageSize image) {
  std::vector<ImageSize> maps;
  for (size_t i = 0; i < config.stages.size(); ++i) {
    const int patch = config.stages[i].patch;
    const ImageSize map = {image.height / patch, image.width / patch};
    if (map.height < 1 || map.width < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", i + 1, ": a map of ", image.height, " x ", image.width,
                       " is smaller than its patches of ", patch, " x ", patch));
    }
    maps.push_back(image = map);
  }
  return maps;
}

absl::StatusOr<VilConfig> ParseVilConfig(const nlohmann::json& json, const CommonConfig& common,
                                         const std::string& origin, bool backbone) {
  JsonReader reader(json, origin);
  VilConfig config;
  config.backbone = backbone;
  config.family = "vil";
  const std::string arch = ReadShared(reader, common, config);
  const std::string type = reader.ChoiceOr(
      "attn_type", "longformerhand",
      {"full", "longformerhand", "longformerauto", "linformer", "srformer", "performer"});
  config.share_w = reader.BoolOr("share_w", true);
  config.share_kv = reader.BoolOr("share_kv", true);
  config.only_global = reader.BoolOr("only_global", false);
  config.exactness = static_cast<int>(reader.IntOr("sw_exact", 0, -1, 1));
  config.own_chunk_only = reader.IntOr("mode", 0, -1, 1 << 20) < 0;
  if (config.own_chunk_only && config.exactness == 1) {
    reader.Refuse("mode", "0 or more with sw_exact 1");
  }
  if (!reader.status().ok()) return reader.status();
  constexpr double kMlpRatio = 4;
  absl::Status status = FillStages(arch, ParseAttention(type), kMlpRatio, config);
  if (!status.ok()) return WithOrigin(origin, status);
  return config;
}

absl::StatusOr<VilConfig> ParseVilLsConfig(const nlohmann::json& json, const CommonConfig& common,
                                           const std::string& origin, bool backbone) {
  JsonReader reader(json, origin);
  VilConfig config;
  config.backbone = backbone;
  config.family = "vil_ls";
  const std::string arch = ReadShared(reader, common, config);
  config.dual_eps = static_cast<float>(reader.NumberOr("dual_ln_eps", 1e-5));
  if (!(config.dual_eps > 0)) reader.Refuse("dual_ln_eps", "a number above 0");
  const double mlp_ratio = reader.NumberOr("mlp_ratio", 4);
  if (!(mlp_ratio >= 1 && mlp_ratio <= 64)) reader.Refuse("mlp_ratio", "in [1, 64]");
  if (!reader.status().ok()) return reader.status();
  absl::Status status = FillStages(arch, VilAttention::kLongShort, mlp_ratio, config);
  if (status.ok()) status = CheckWindows(config);
  if (!status.ok()) return WithOrigin(origin, status);
  return config;
}

}  // namespace longview::models
