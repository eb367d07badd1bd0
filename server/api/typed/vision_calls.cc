#include "server/api/typed/vision_calls.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/api/calls/context.h"
#include "server/api/infer/mask_rle.h"

namespace longview::server {
namespace {

constexpr std::string_view kFeatures = "features.";

absl::StatusOr<models::Request> ReadImage(const std::string& image, models::Task task) {
  if (image.empty()) return BadField("image", "is needed and was not given");
  models::Request out;
  out.task = task;
  out.image = image;
  return out;
}

// Names of the model's stage maps.
std::vector<std::string> FeatureMaps(const models::ModelInfo& info) {
  std::vector<std::string> names;
  for (const models::TensorSpec& spec : info.outputs) {
    if (spec.name.starts_with(kFeatures)) names.push_back(spec.name);
  }
  return names;
}

}  // namespace

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::ClassifyImageRequest& request,
                                               const models::ModelInfo&) {
  if (request.top_k() < 0) return BadField("top_k", absl::StrCat(request.top_k(), " is negative"));
  auto out = ReadImage(request.image(), models::Task::kImageClassification);
  if (!out.ok()) return out;
  out->top_k = request.top_k();
  if (request.return_logits()) out->tensors.push_back("logits");
  return out;
}

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::ExtractFeaturesRequest& request,
                                               const models::ModelInfo& info) {
  auto out = ReadImage(request.image(), models::Task::kImageFeatures);
  if (!out.ok()) return out;
  out->typed = false;
  const std::vector<std::string> maps = FeatureMaps(info);
  for (const int stride : request.strides()) {
    const std::string name = absl::StrCat(std::string(kFeatures), stride);
    if (std::find(maps.begin(), maps.end(), name) == maps.end()) {
      return BadField("strides", absl::StrCat(stride, " is none of the model's; its maps are ",
                                              absl::StrJoin(maps, ", ")));
    }
    if (std::find(out->tensors.begin(), out->tensors.end(), name) != out->tensors.end()) {
      return BadField("strides", absl::StrCat(stride, " is named twice"));
    }
    out->tensors.push_back(name);
  }
  if (out->tensors.empty()) out->tensors = maps;
  return out;
}

absl::StatusOr<models::Request> ToModelRequest(const longview::v1::DetectObjectsRequest& request,
                                               const models::ModelInfo&) {
  auto out = ReadImage(request.image(), models::Task::kObjectDetection);
  if (!out.ok()) return out;
  if (request.has_score_threshold()) out->score_threshold = request.score_threshold();
  if (request.has_max_detections()) {
    if (request.max_detections() < 1) {
      return BadField("max_detections", absl::StrCat(request.max_detections(), " is below 1"));
    }
    out->max_detections = request.max_detections();
  }
  out->masks = request.masks();
  if (request.has_tile()) {
    out->tiles = models::TileGrid{request.tile().size(), request.tile().overlap()};
  }
  return out;
}

absl::Status FillResponse(const AnswerOptions&, Completed done,
                          longview::v1::DetectObjectsResponse& out) {
  for (const models::Detection& found : done.answer.detections) {
    auto* detection = out.add_detections();
    detection->set_label_id(found.id);
    detection->set_label(found.name);
    detection->set_score(found.score);
    detection->set_x0(found.x0);
    detection->set_y0(found.y0);
    detection->set_x1(found.x1);
    detection->set_y1(found.y1);
    if (found.mask_runs.empty()) continue;
    detection->set_mask_rle(
        CocoRle(found.mask_runs, done.answer.usage.height, done.answer.usage.width));
  }
  FillShared(done, out);
  return absl::OkStatus();
}

absl::Status FillResponse(const AnswerOptions&, Completed done,
                          longview::v1::ExtractFeaturesResponse& out) {
  for (const models::HostTensor& tensor : done.answer.tensors) {
    auto* map = out.add_features();
    int stride = 0;
    if (!absl::SimpleAtoi(tensor.name.substr(kFeatures.size()), &stride) ||
        tensor.shape.size() != 3) {
      return absl::InternalError("the model gave a map of another form");
    }
    map->set_stride(stride);
    map->set_channels(static_cast<int>(tensor.shape[0]));
    map->set_height(static_cast<int>(tensor.shape[1]));
    map->set_width(static_cast<int>(tensor.shape[2]));
    const auto values = tensor.floats();
    map->mutable_values()->Add(values.begin(), values.end());
  }
  FillShared(done, out);
  return absl::OkStatus();
}

}  // namespace longview::server
