#include "models/detection/run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/detection/anchors.h"
#include "models/detection/mask_runs.h"
#include "models/torch_guard.h"
#include "models/vision/prepare.h"

namespace longview::models {
namespace {

// Stages that the head or the answer wants, ascending.
std::vector<int> WantedStages(const DetectorConfig& config, const DetectionItem& item) {
  std::vector<int> stages = item.stages;
  if (item.detects) stages.insert(stages.end(), config.stages.begin(), config.stages.end());
  std::sort(stages.begin(), stages.end());
  stages.erase(std::unique(stages.begin(), stages.end()), stages.end());
  return stages;
}

// The box in pixels of the given picture; what lies outside of its tile is cut off.
kernels::Box InPicture(const kernels::Box& box, const DetectionPiece& piece) {
  const float width = static_cast<float>(piece.tile.size.width);
  const float height = static_cast<float>(piece.tile.size.height);
  const float across = width / static_cast<float>(piece.size.width);
  const float down = height / static_cast<float>(piece.size.height);
  const kernels::Box inside =
      Clipped({box.x0 * across, box.y0 * down, box.x1 * across, box.y1 * down}, width, height);
  const auto x = static_cast<float>(piece.tile.x), y = static_cast<float>(piece.tile.y);
  return {inside.x0 + x, inside.y0 + y, inside.x1 + x, inside.y1 + y};
}

// Detections that are kept until all pieces have theirs.
size_t MostFound(const DetectionItem& item) {
  return std::max(kMostTileDetections, static_cast<size_t>(item.detections));
}

HostTensor TensorOf(const std::string& name, const FeatureMap& map) {
  HostTensor tensor;
  tensor.name = name;
  tensor.shape = {map.channels, map.size.height, map.size.width};
  tensor.data.resize(map.values.size() * sizeof(float));
  std::memcpy(tensor.data.data(), map.values.data(), tensor.data.size());
  return tensor;
}

}  // namespace

DetectionRun::DetectionRun(const DetectorParts& parts, std::span<const Item* const> items,
                           ScratchPool& scratch, TeamChoice* teams, RunTimes* times)
    : parts_(parts),
      scratch_(scratch),
      times_(times),
      turn_(teams),
      dropped_(items.size()),
      answers_(items.size()) {
  turn_.Begin(items);
  for (const Item* item : items) {
    items_.push_back(static_cast<const DetectionItem*>(item));
    const DetectionItem& added = *items_.back();
    if (!added.picture.rgb.empty() || !added.pieces[0].values.values.empty()) continue;
    status_ = absl::InternalError("an item without pixels has a cost only");
  }
}

bool DetectionRun::Advance() {
  if (!status_.ok()) return false;
  bool more = false;
  {
    const TeamTurn::Part part(turn_);
    status_ = GuardTorch(parts_.backbone->facts().family, [&] { more = Step(); });
  }
  if (status_.ok() && !more) turn_.End();
  return status_.ok() && more;
}

// One block of the backbone, or one piece of work of the head.
bool DetectionRun::Step() {
  while (current_ < items_.size() && dropped_[current_]) {
    batch_.reset();
    head_.reset();
    lease_.reset();
    maps_.clear();
    found_.clear();
    piece_ = 0;
    ++current_;
  }
  if (current_ == items_.size()) return false;
  if (head_) {
    Stopwatch watch(times_ ? &times_->head : nullptr);
    const bool more = head_->Advance();
    watch.Stop();
    if (!more) EndPiece();
    return true;
  }
  if (!batch_) BeginPiece();
  Stopwatch watch(times_ ? &times_->backbone : nullptr);
  const bool more = batch_->Advance();
  if (!more) EndBackbone();
  watch.Stop();
  if (more) return true;
  if (item().detects) {
    BeginHead();
  } else {
    EndPiece();
  }
  return true;
}

void DetectionRun::BeginPiece() {
  const Stopwatch watch(times_ ? &times_->prepare : nullptr);
  stages_ = WantedStages(*parts_.config, item());
  const PixelValues* pixels = &piece().values;
  if (!piece().normalised) {
    const Raster& picture = item().picture;
    values_ = parts_.pipeline->Normalize(
        item().pieces.size() == 1 ? picture
                                  : parts_.pipeline->Resize(PartOf(picture, piece().tile)));
    pixels = &values_;
  }
  const VisionInput input = {pixels, stages_};
  batch_ = parts_.backbone->Begin({&input, 1}, scratch_, times_);
}

void DetectionRun::EndBackbone() {
  maps_ = batch_->TakeMaps(0);
  batch_.reset();
  values_ = {};
  KeepTensors();
}

void DetectionRun::KeepTensors() {
  for (const std::string& name : item().tensors) {
    const int stage = *StageOfTensor(parts_.backbone->facts(), name);
    const auto at = std::find(stages_.begin(), stages_.end(), stage) - stages_.begin();
    answers_[current_].tensors.push_back(TensorOf(name, maps_[at]));
  }
}

void DetectionRun::BeginHead() {
  head_maps_.clear();
  for (const int stage : parts_.config->stages) {
    const auto at = std::find(stages_.begin(), stages_.end(), stage) - stages_.begin();
    head_maps_.push_back(std::move(maps_[at]));
  }
  maps_.clear();
  DetectorInput input;
  input.maps = head_maps_;
  input.size = piece().size;
  input.padded = piece().padded;
  input.score_threshold = item().score_threshold;
  input.detections = item().detections;
  input.masks = item().masks;
  lease_ = std::make_unique<ScratchLease>(
      scratch_, parts_.head->ScratchBytes(input.padded, input.detections, input.masks));
  head_ = parts_.head->Begin(input, lease_->data(), times_);
}

void DetectionRun::EndPiece() {
  const Stopwatch watch(times_ ? &times_->finish : nullptr);
  if (head_) {
    for (FoundBox& found : head_->Take()) {
      const Tile& tile = piece().tile;
      found.box = InPicture(found.box, piece());
      if (!HasArea(found.box)) continue;
      const bool cut = IsCut(found.box, tile, item().given);
      found_.push_back({std::move(found), cut});
    }
    LeaveBest(MostFound(item()), found_);
  }
  head_.reset();
  lease_.reset();
  maps_.clear();
  head_maps_.clear();
  if (++piece_ < item().pieces.size()) return;
  EndItem();
  piece_ = 0;
  ++current_;
}

void DetectionRun::EndItem() {
  std::vector<FoundBox> boxes;
  if (item().pieces.size() > 1) {
    boxes = JoinTiles(std::move(found_), parts_.config->overlap, item().detections);
  } else {
    for (TileDetection& detection : found_) boxes.push_back(std::move(detection.found));
  }
  found_.clear();
  const MaskRcnnConfig& masks = parts_.config->mask_rcnn;
  for (const FoundBox& box : boxes) {
    Detection& out = answers_[current_].detections.emplace_back();
    out.id = box.label;
    out.name = parts_.config->labels[box.label];
    out.score = box.score;
    out.x0 = box.box.x0;
    out.y0 = box.box.y0;
    out.x1 = box.box.x1;
    out.y1 = box.box.y1;
    if (box.mask.empty()) continue;
    out.mask_runs =
        MaskRuns(box.mask, 2 * masks.mask_bins, box.box, item().given, masks.mask_threshold);
  }
  answers_[current_].usage = item().usage();
}

absl::StatusOr<Answer> DetectionRun::Take(int i) {
  if (!status_.ok()) return status_;
  if (dropped_[i] || static_cast<size_t>(i) >= current_) {
    return absl::CancelledError("the item was dropped");
  }
  return std::move(answers_[i]);
}

namespace {

// Bytes of detections until the picture is done: those of all pieces, and those of the last one.
double FoundBytes(const DetectorParts& parts, const DetectionItem& item) {
  if (!item.detects) return 0;
  const size_t side = item.masks ? 2 * static_cast<size_t>(parts.config->mask_rcnn.mask_bins) : 0;
  const auto of_piece = static_cast<size_t>(item.detections);
  size_t count = of_piece;
  if (item.pieces.size() > 1) count += std::min(MostFound(item), item.pieces.size() * of_piece);
  return static_cast<double>(count * (sizeof(TileDetection) + side * side * sizeof(float)));
}

}  // namespace

double DetectionBytes(const DetectorParts& parts, const DetectionItem& item) {
  const std::vector<int> stages = WantedStages(*parts.config, item);
  double most = 0;
  for (const DetectionPiece& piece : item.pieces) {
    const ImageSize size = piece.padded;
    const double area = static_cast<double>(size.height) * size.width;
    double maps = 0;
    for (const int stage : stages) {
      const double stride = parts.backbone->facts().strides[stage];
      maps += sizeof(float) * area / (stride * stride) * parts.backbone->facts().channels[stage];
    }
    const double pixels = piece.normalised ? 0 : 3 * sizeof(float) * area;
    const auto backbone = static_cast<double>(parts.backbone->WorkspaceBytes(size));
    const auto head = static_cast<double>(
        item.detects ? parts.head->ScratchBytes(size, item.detections, item.masks) : 0);
    most = std::max(most, maps + std::max(pixels + backbone, head));
  }
  return most + FoundBytes(parts, item);
}

EncoderWork DetectionWork(const DetectorParts& parts, const DetectionItem& item) {
  EncoderWork work;
  for (const DetectionPiece& piece : item.pieces) {
    work += parts.backbone->WorkOf(piece.padded);
    if (item.detects) work += parts.head->WorkOf(piece.padded, item.detections, item.masks);
  }
  return work;
}

}  // namespace longview::models
