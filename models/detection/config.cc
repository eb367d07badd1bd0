#include "models/detection/config.h"

#include <bit>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "models/config/json_reader.h"
#include "nlohmann/json.hpp"

namespace longview::models {
namespace {

constexpr int kMostChannels = 8192;

void ReadWeights(JsonReader& reader, std::string_view key, BoxWeights& out) {
  const nlohmann::json* list = reader.Find(key);
  if (list == nullptr) return;
  bool fits = list->is_array() && list->size() == out.size();
  for (size_t i = 0; fits && i < out.size(); ++i) {
    fits = (*list)[i].is_number() && (*list)[i].get<double>() > 0;
    if (fits) out[i] = (*list)[i].get<float>();
  }
  if (!fits) reader.Refuse(key, "4 numbers above 0");
}

float Fraction(JsonReader& reader, std::string_view key, float fallback) {
  const double value = reader.NumberOr(key, fallback);
  if (!(value >= 0 && value <= 1)) reader.Refuse(key, "a number from 0 to 1");
  return static_cast<float>(value);
}

// One list per level, or one for all.
std::vector<std::vector<float>> ReadLists(JsonReader& reader, std::string_view key, size_t levels,
                                          std::vector<std::vector<float>> fallback) {
  const nlohmann::json* lists = reader.Find(key);
  if (lists == nullptr) return fallback;
  std::vector<std::vector<float>> out;
  bool fits = lists->is_array() && (lists->size() == levels || lists->size() == 1);
  for (size_t i = 0; fits && i < lists->size(); ++i) {
    const nlohmann::json& list = (*lists)[i];
    fits = list.is_array() && !list.empty() && list.size() <= 64;
    std::vector<float>& values = out.emplace_back();
    for (size_t k = 0; fits && k < list.size(); ++k) {
      fits = list[k].is_number() && list[k].get<double>() > 0;
      if (fits) values.push_back(list[k].get<float>());
    }
  }
  if (!fits) {
    reader.Refuse(key, absl::StrCat("1 or ", levels, " lists of numbers above 0"));
    return fallback;
  }
  if (out.size() == 1) out.assign(levels, out.front());
  return out;
}

// RetinaNet: three octave steps from 32 at stride 8; Mask R-CNN: one size, 32 at stride 4.
std::vector<std::vector<float>> DefaultSizes(bool retinanet, size_t levels) {
  std::vector<std::vector<float>> sizes;
  for (size_t level = 0; level < levels; ++level) {
    const double base = 32.0 * std::pow(2.0, static_cast<double>(level));
    std::vector<float>& of_level = sizes.emplace_back();
    for (int step = 0; step < (retinanet ? 3 : 1); ++step) {
      of_level.push_back(static_cast<float>(base * std::pow(2.0, step / 3.0)));
    }
  }
  return sizes;
}

// The maps that enter the pyramid: neighbouring stages up to the last, strides doubling.
void ReadStages(JsonReader& reader, const VisionFacts& backbone, DetectorConfig& config) {
  const auto count = static_cast<int>(backbone.strides.size());
  const bool retinanet = config.kind == DetectorConfig::Kind::kRetinaNet;
  if (!reader.Has("fpn_in_features")) {
    for (int s = retinanet ? 1 : 0; s < count; ++s) config.stages.push_back(s);
  } else {
    for (const std::string& name : reader.StringList("fpn_in_features")) {
      int layer = 0;
      const bool known = name.starts_with("layer") &&
                         absl::SimpleAtoi(name.substr(std::string_view("layer").size()), &layer) &&
                         layer >= 1 && layer <= count;
      if (!known) return reader.Refuse("fpn_in_features", absl::StrCat("layer1 to layer", count));
      config.stages.push_back(layer - 1);
    }
  }
  bool doubles = !config.stages.empty() && config.stages.back() == count - 1;
  for (size_t i = 0; doubles && i < config.stages.size(); ++i) {
    config.strides.push_back(backbone.strides[config.stages[i]]);
    doubles = std::has_single_bit(static_cast<unsigned>(config.strides[i])) &&
              (i == 0 || (config.stages[i] == config.stages[i - 1] + 1 &&
                          config.strides[i] == 2 * config.strides[i - 1]));
  }
  if (!doubles) {
    reader.Refuse("fpn_in_features", "neighbouring stages up to the last, strides doubling");
  }
}

void ReadRetinaNet(JsonReader& reader, RetinaNetConfig& config) {
  config.convs = static_cast<int>(reader.IntOr("head_num_convs", config.convs, 1, 16));
  config.candidates =
      static_cast<int>(reader.IntOr("topk_candidates", config.candidates, 1, 100'000));
  ReadWeights(reader, "bbox_reg_weights", config.weights);
}

void ReadMaskRcnn(JsonReader& reader, MaskRcnnConfig& config) {
  const auto read = [&](std::string_view key, int& value, int low, int high) {
    value = static_cast<int>(reader.IntOr(key, value, low, high));
  };
  ReadWeights(reader, "rpn_bbox_reg_weights", config.proposal_weights);
  read("rpn_pre_nms_topk", config.proposals_per_level, 1, 100'000);
  read("rpn_post_nms_topk", config.proposals, 1, 100'000);
  config.proposal_overlap = Fraction(reader, "rpn_nms_threshold", config.proposal_overlap);
  read("box_pooler_resolution", config.box_bins, 1, 64);
  read("box_num_fc", config.box_layers, 1, 16);
  read("box_fc_dim", config.box_width, 1, kMostChannels);
  ReadWeights(reader, "box_bbox_reg_weights", config.box_weights);
  read("mask_pooler_resolution", config.mask_bins, 1, 64);
  read("mask_num_conv", config.mask_convs, 1, 16);
  read("mask_conv_dim", config.mask_width, 1, kMostChannels);
  config.mask_threshold = Fraction(reader, "mask_threshold", config.mask_threshold);
}

}  // namespace

absl::StatusOr<DetectorConfig> ParseDetectorConfig(const nlohmann::json& json,
                                                   const CommonConfig& common,
                                                   const ServingConfig& serving,
                                                   const VisionFacts& backbone,
                                                   const std::string& origin) {
  JsonReader reader(json, origin);
  DetectorConfig config;
  config.architecture = common.architecture;
  config.labels = common.labels;
  if (config.labels.empty()) reader.Refuse("num_labels", "at least 1");
  const bool retinanet = reader.Choice("detector", {"retinanet", "mask_rcnn"}) == "retinanet";
  config.kind = retinanet ? DetectorConfig::Kind::kRetinaNet : DetectorConfig::Kind::kMaskRcnn;
  ReadStages(reader, backbone, config);
  config.width = static_cast<int>(reader.IntOr("fpn_out_channels", 256, 1, kMostChannels));
  config.average = reader.ChoiceOr("fpn_fuse_type", "sum", {"sum", "avg"}) == "avg";
  const size_t levels = config.levels();
  config.anchor_sizes = ReadLists(reader, "anchor_sizes", levels, DefaultSizes(retinanet, levels));
  config.anchor_ratios =
      ReadLists(reader, "anchor_aspect_ratios", levels, {levels, {0.5f, 1.0f, 2.0f}});
  config.anchor_offset = Fraction(reader, "anchor_offset", 0);
  config.score_threshold = Fraction(reader, "score_threshold", config.score_threshold);
  if (serving.score_threshold)
    config.score_threshold = static_cast<float>(*serving.score_threshold);
  config.overlap = Fraction(reader, "nms_threshold", config.overlap);
  config.detections = static_cast<int>(reader.IntOr("detections_per_image", 100, 1, 10'000));
  if (retinanet) {
    ReadRetinaNet(reader, config.retinanet);
  } else {
    ReadMaskRcnn(reader, config.mask_rcnn);
  }
  for (size_t level = 1; reader.status().ok() && level < levels; ++level) {
    if (config.anchors(level) != config.anchors(0)) {
      reader.Refuse("anchor_sizes", "as many anchors on every level: the head is one for all");
    }
  }
  if (!reader.status().ok()) return reader.status();
  return config;
}

}  // namespace longview::models
