#include "models/detection/prepare.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/image/pipeline.h"
#include "models/status_macros.h"
#include "models/vision/prepare.h"

namespace longview::models {
namespace {

absl::Status CheckTask(const DetectorConfig& config, Task task) {
  if (task == Task::kObjectDetection || task == Task::kImageFeatures) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(config.architecture, " does no ", std::string(TaskName(task))));
}

absl::Status FillSettings(const DetectorConfig& config, const Request& request,
                          DetectionItem& item) {
  item.score_threshold = request.score_threshold.value_or(config.score_threshold);
  if (!(item.score_threshold >= 0 && item.score_threshold <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("score_threshold: ", item.score_threshold, " is not in [0, 1]"));
  }
  item.detections = request.max_detections == 0 ? config.detections : request.max_detections;
  if (request.max_detections != 0 && (item.detections < 1 || item.detections > kMostDetections)) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_detections: ", item.detections, " is not in [1, ", kMostDetections, "]"));
  }
  item.masks = request.masks;
  if (item.masks && !config.has_masks()) {
    return absl::InvalidArgumentError("masks: the model finds boxes only");
  }
  return absl::OkStatus();
}

absl::Status FillTensors(const VisionFacts& facts, const Request& request, DetectionItem& item) {
  for (const std::string& name : request.tensors) {
    const std::optional<int> stage = StageOfTensor(facts, name);
    if (!stage) {
      return absl::InvalidArgumentError(absl::StrCat("tensors: \"", name.substr(0, 64),
                                                     "\" is not an output of ",
                                                     std::string(TaskName(request.task))));
    }
    item.stages.push_back(*stage);
  }
  std::sort(item.stages.begin(), item.stages.end());
  item.stages.erase(std::unique(item.stages.begin(), item.stages.end()), item.stages.end());
  if (!item.tensors.empty() && request.tiles) {
    return absl::InvalidArgumentError("tile: maps of a picture in tiles are not answered");
  }
  return absl::OkStatus();
}

int RoundUp(int value, int to) { return (value + to - 1) / to * to; }

// Zeros, which are the mean colour, at the right and the bottom.
DetectionPiece PieceOf(const PixelInput& pixels, int divisor) {
  DetectionPiece piece;
  piece.normalised = true;
  piece.size = {pixels.height, pixels.width};
  piece.tile.size = piece.size;
  piece.padded = {RoundUp(pixels.height, divisor), RoundUp(pixels.width, divisor)};
  piece.values.size = piece.padded;
  piece.values.values.resize(size_t{3} * piece.padded.height * piece.padded.width);
  for (int row = 0; row < 3 * pixels.height; ++row) {
    const int channel = row / pixels.height, y = row % pixels.height;
    const int64_t to = (int64_t{channel} * piece.padded.height + y) * piece.padded.width;
    std::memcpy(piece.values.values.data() + to, pixels.values.data() + int64_t{row} * pixels.width,
                sizeof(float) * pixels.width);
  }
  return piece;
}

absl::Status FillFromPicture(const DetectionFrontEnd& front, const Request& request,
                             DetectionItem& item) {
  if (!front.pipeline) {
    return absl::InvalidArgumentError(
        "image: the model directory has no preprocessor_config.json; send pixel_values");
  }
  const ImageBytes bytes(reinterpret_cast<const uint8_t*>(request.image->data()),
                         request.image->size());
  ASSIGN_OR_RETURN(const ImageHeader header, ReadImageHeader(bytes, front.limits));
  item.given = SeenSize(*front.pipeline, header);
  std::vector<Tile> tiles = {{0, 0, item.given}};
  if (request.tiles) {
    ASSIGN_OR_RETURN(std::vector<Tile> plan, PlanTiles(item.given, *request.tiles));
    tiles = std::move(plan);
  }
  for (const Tile& tile : tiles) {
    RETURN_IF_ERROR(CheckPixelCount("image", *front.pipeline, tile.size, front.limits));
  }
  ASSIGN_OR_RETURN(Raster picture, DecodeImage(bytes, front.limits, front.pipeline->rotate));
  for (const Tile& tile : tiles) {
    DetectionPiece& piece = item.pieces.emplace_back();
    piece.tile = tile;
    piece.size = front.pipeline->ResizedSize(tile.size);
    piece.padded = front.pipeline->FinalSize(tile.size);
  }
  item.picture = tiles.size() == 1 ? front.pipeline->Resize(picture) : std::move(picture);
  return absl::OkStatus();
}

// Fills in a picture by its size, or pixel values where the model takes no pictures.
absl::Status FillOutline(const DetectionFrontEnd& front, const PixelInput& pixels,
                         DetectionItem& item) {
  ImagePipeline pipeline;
  pipeline.size_divisor = front.divisor;
  if (front.pipeline) pipeline = *front.pipeline;
  item.given = {pixels.height, pixels.width};
  RETURN_IF_ERROR(CheckPixelCount("width", pipeline, item.given, front.limits));
  DetectionPiece& piece = item.pieces.emplace_back();
  piece.tile.size = item.given;
  piece.size = pipeline.ResizedSize(item.given);
  piece.padded = pipeline.FinalSize(item.given);
  piece.normalised = !front.pipeline;
  return absl::OkStatus();
}

absl::Status FillPieces(const DetectionFrontEnd& front, const Request& request,
                        DetectionItem& item) {
  if (request.image) return FillFromPicture(front, request, item);
  const PixelInput& pixels = *request.pixel_values;
  if (request.tiles) return absl::InvalidArgumentError("tile: goes with image, not pixel_values");
  if (IsOutline(request)) return FillOutline(front, pixels, item);
  RETURN_IF_ERROR(CheckPixelValues(pixels));
  item.given = {pixels.height, pixels.width};
  item.pieces.push_back(PieceOf(pixels, front.divisor));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DetectionItem>> PrepareDetection(const DetectionFrontEnd& front,
                                                                const Request& request) {
  const DetectorConfig& config = *front.config;
  RETURN_IF_ERROR(CheckTask(config, request.task));
  RETURN_IF_ERROR(CheckImageRequest(request));
  auto item = std::make_unique<DetectionItem>();
  item->tensors = request.tensors;
  item->detects = request.task == Task::kObjectDetection && request.typed;
  RETURN_IF_ERROR(FillSettings(config, request, *item));
  RETURN_IF_ERROR(FillTensors(front.backbone->facts(), request, *item));
  RETURN_IF_ERROR(FillPieces(front, request, *item));
  for (const DetectionPiece& piece : item->pieces) {
    RETURN_IF_ERROR(CheckFamilySize(PixelField(request), *front.backbone, piece.padded));
  }
  ItemUsage usage;
  usage.width = item->given.width;
  usage.height = item->given.height;
  item->SetUsage(usage);
  return item;
}

}  // namespace longview::models
