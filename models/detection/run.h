// Prepared pictures on their way through a detector, one after the other: a picture fills every
// panel by itself, so sharing a pass would win nothing, and its answer depends on nobody else.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "models/dense/scratch_pool.h"
#include "models/detection/config.h"
#include "models/detection/head.h"
#include "models/detection/item.h"
#include "models/image/pipeline.h"
#include "models/model.h"
#include "models/team_turn.h"
#include "models/vision/family.h"

namespace longview::models {

// Parts that every run of one model shares. Borrowed, immutable.
struct DetectorParts {
  const VisionFamily* backbone = nullptr;
  const DetectorHead* head = nullptr;
  const DetectorConfig* config = nullptr;
  const ImagePipeline* pipeline = nullptr;  // Null: pixel values only.
};

// Used by one executor thread. Failures of LibTorch surface in Take.
class DetectionRun final : public Run {
 public:
  // Borrowed arguments outlive the run; `teams` and `times` may be null.
  DetectionRun(const DetectorParts& parts, std::span<const Item* const> items, ScratchPool& scratch,
               TeamChoice* teams, RunTimes* times = nullptr);

  bool Advance() override;
  void Drop(int i) override {
    dropped_[i] = true;
    turn_.Spoil();
  }
  absl::StatusOr<Answer> Take(int i) override;

 private:
  const DetectionItem& item() const { return *items_[current_]; }
  const DetectionPiece& piece() const { return item().pieces[piece_]; }
  bool Step();
  void BeginPiece();
  void EndBackbone();
  void BeginHead();
  void EndPiece();
  void EndItem();
  void KeepTensors();

  const DetectorParts parts_;
  ScratchPool& scratch_;
  RunTimes* const times_;
  TeamTurn turn_;
  std::vector<const DetectionItem*> items_;
  std::vector<bool> dropped_;
  std::vector<Answer> answers_;
  absl::Status status_;

  // Progress: the item, the piece of it, and what was made of both.
  size_t current_ = 0;
  size_t piece_ = 0;
  PixelValues values_;
  std::unique_ptr<VisionBatch> batch_;
  std::vector<int> stages_;       // Stages whose maps the batch gives.
  std::vector<FeatureMap> maps_;  // In that order.
  std::unique_ptr<ScratchLease> lease_;
  std::unique_ptr<HeadRun> head_;
  std::vector<FeatureMap> head_maps_;
  std::vector<TileDetection> found_;  // From all pieces so far.
};

// Bytes that one item uses at its largest piece: pixels, maps, scratch, detections so far.
double DetectionBytes(const DetectorParts& parts, const DetectionItem& item);

// The cost of the item.
EncoderWork DetectionWork(const DetectorParts& parts, const DetectionItem& item);

}  // namespace longview::models
