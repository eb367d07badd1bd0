#include "models/detection/weights.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/layers/weight_loader.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

constexpr char kBackbone[] = "backbone.bottom_up.";

class Loader {
 public:
  Loader(const DetectorConfig& config, const std::vector<int>& channels,
         const Checkpoint& checkpoint, const std::string& origin,
         std::optional<WeightFormat> format)
      : config_(config), channels_(channels), load_(checkpoint, origin, format) {}

  absl::StatusOr<DetectorWeights> Load();

 private:
  std::optional<Convolution> Conv(const std::string& name, int64_t out, int64_t in,
                                  int stride = 1) {
    std::optional<DenseLayer> layer = load_.Taps(name, out, in, 3);
    if (!layer) return std::nullopt;
    return Convolution{*std::move(layer), 3, stride};
  }
  void AddConv(const std::string& name, int64_t out, int64_t in, std::vector<Convolution>& convs,
               int stride = 1) {
    std::optional<Convolution> conv = Conv(name, out, in, stride);
    if (conv) convs.push_back(*std::move(conv));
  }
  static void Add(std::optional<DenseLayer> layer, std::vector<DenseLayer>& layers) {
    if (layer) layers.push_back(*std::move(layer));
  }

  void Pyramid();
  void RetinaNet();
  void MaskRcnn();
  void ProposalOutputs();
  void MaskUp();

  const DetectorConfig& config_;
  const std::vector<int>& channels_;
  WeightLoader load_;
  DetectorWeights weights_;
};

// Level k has a stride of 2^k.
void Loader::Pyramid() {
  const int64_t width = config_.width;
  for (size_t i = 0; i < config_.stages.size(); ++i) {
    const int k = std::countr_zero(static_cast<unsigned>(config_.strides[i]));
    Add(load_.Taps(absl::StrCat("backbone.fpn_lateral", k), width, channels_[i], 1),
        weights_.pyramid.lateral);
    AddConv(absl::StrCat("backbone.fpn_output", k), width, width, weights_.pyramid.output);
  }
  if (config_.kind != DetectorConfig::Kind::kRetinaNet) return;
  AddConv("backbone.top_block.p6", width, channels_.back(), weights_.pyramid.further, 2);
  AddConv("backbone.top_block.p7", width, width, weights_.pyramid.further, 2);
}

void Loader::RetinaNet() {
  const int64_t width = config_.width, anchors = config_.anchors(0);
  RetinaNetWeights& out = weights_.retinanet;
  // Every second place of a tower is a ReLU.
  for (int i = 0; i < config_.retinanet.convs; ++i) {
    AddConv(absl::StrCat("head.cls_subnet.", 2 * i), width, width, out.class_tower);
    AddConv(absl::StrCat("head.bbox_subnet.", 2 * i), width, width, out.box_tower);
  }
  out.classes = Conv("head.cls_score", anchors * config_.classes(), width);
  out.boxes = Conv("head.bbox_pred", anchors * 4, width);
}

// Two 1 x 1 convolutions of one input, as one linear.
void Loader::ProposalOutputs() {
  const int64_t width = config_.width, anchors = config_.anchors(0);
  const std::string prefix = "proposal_generator.rpn_head.";
  std::vector<float> weight, bias;
  for (const auto& [name, out] :
       {std::pair{"objectness_logits", anchors}, {"anchor_deltas", 4 * anchors}}) {
    const std::vector<float> part =
        load_.Copy(load_.Get(absl::StrCat(prefix, name, ".weight"), {out, width, 1, 1}));
    const std::vector<float> part_bias = load_.Vector(absl::StrCat(prefix, name, ".bias"), out);
    weight.insert(weight.end(), part.begin(), part.end());
    bias.insert(bias.end(), part_bias.begin(), part_bias.end());
  }
  weights_.mask_rcnn.proposals =
      load_.Pack(prefix + "objectness_logits", weight, std::move(bias), 5 * anchors, width);
}

// A 2 x 2 transposed convolution of stride 2, [in, out, 2, 2]: every pixel becomes four.
void Loader::MaskUp() {
  const int64_t width = config_.mask_rcnn.mask_width;
  const std::string name = "roi_heads.mask_head.deconv";
  const std::vector<float> stored = load_.Copy(load_.Get(name + ".weight", {width, width, 2, 2}));
  const std::vector<float> bias = load_.Vector(name + ".bias", width);
  std::vector<float> weight(stored.size()), biases;
  for (int tap = 0; tap < 4; ++tap) biases.insert(biases.end(), bias.begin(), bias.end());
  for (int64_t in = 0; in < width && !stored.empty(); ++in) {
    for (int64_t out = 0; out < width; ++out) {
      for (int64_t tap = 0; tap < 4; ++tap) {
        weight[(tap * width + out) * width + in] = stored[(in * width + out) * 4 + tap];
      }
    }
  }
  weights_.mask_rcnn.mask_up = load_.Pack(name, weight, std::move(biases), 4 * width, width);
}

void Loader::MaskRcnn() {
  const MaskRcnnConfig& config = config_.mask_rcnn;
  const int64_t width = config_.width, classes = config_.classes();
  MaskRcnnWeights& out = weights_.mask_rcnn;
  out.proposal_conv = Conv("proposal_generator.rpn_head.conv", width, width);
  ProposalOutputs();
  Add(load_.Taps("roi_heads.box_head.fc1", config.box_width, width, config.box_bins, true),
      out.box_layers);
  for (int i = 2; i <= config.box_layers; ++i) {
    Add(load_.Dense(absl::StrCat("roi_heads.box_head.fc", i), config.box_width, config.box_width),
        out.box_layers);
  }
  out.box_outputs =
      load_.Stack("roi_heads.box_predictor.",
                  {{"cls_score", classes + 1}, {"bbox_pred", 4 * classes}}, config.box_width);
  for (int i = 1; i <= config.mask_convs; ++i) {
    AddConv(absl::StrCat("roi_heads.mask_head.mask_fcn", i), config.mask_width,
            i == 1 ? width : config.mask_width, out.mask_convs);
  }
  MaskUp();
  const std::string predictor = "roi_heads.mask_head.predictor";
  out.mask_classes =
      load_.Copy(load_.Get(predictor + ".weight", {classes, config.mask_width, 1, 1}));
  out.mask_bias = load_.Vector(predictor + ".bias", classes);
}

absl::StatusOr<DetectorWeights> Loader::Load() {
  load_.source().Ignore(std::string(kBackbone) + "*");
  // Older files keep what is computed here or read from preprocessor_config.json.
  load_.source().Ignore("*anchor_generator.cell_anchors.*");
  load_.source().Ignore("pixel_mean");
  load_.source().Ignore("pixel_std");
  Pyramid();
  if (config_.kind == DetectorConfig::Kind::kRetinaNet) {
    RetinaNet();
  } else {
    MaskRcnn();
  }
  RETURN_IF_ERROR(load_.Finish());
  weights_.parameters = load_.parameters();
  weights_.memory_bytes = load_.memory_bytes();
  return std::move(weights_);
}

}  // namespace

BackbonePlace DetectorBackbonePlace() {
  return {kBackbone,
          {"backbone.fpn_*", "backbone.top_block.*", "head.*", "proposal_generator.*",
           "roi_heads.*", "anchor_generator.*", "pixel_mean", "pixel_std"}};
}

absl::StatusOr<DetectorWeights> LoadDetectorWeights(const DetectorConfig& config,
                                                    const std::vector<int>& channels,
                                                    const Checkpoint& checkpoint,
                                                    const std::string& origin, Compute compute) {
  return Loader(config, channels, checkpoint, origin, compute).Load();
}

absl::StatusOr<double> CheckDetectorWeights(const DetectorConfig& config,
                                            const std::vector<int>& channels,
                                            const Checkpoint& checkpoint,
                                            const std::string& origin) {
  ASSIGN_OR_RETURN(DetectorWeights weights,
                   Loader(config, channels, checkpoint, origin, std::nullopt).Load());
  return weights.parameters;
}

}  // namespace longview::models
