// A batch of prepared images on their way through a model, and their answers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "models/dense/scratch_pool.h"
#include "models/model.h"
#include "models/team_turn.h"
#include "models/vision/family.h"
#include "models/vision/item.h"

namespace longview::models {

// Used by one executor thread. Failures of LibTorch surface in Take.
class VisionRun final : public Run {
 public:
  // Borrowed arguments outlive the run; `teams` and `times` may be null.
  VisionRun(const VisionFamily& family, std::span<const Item* const> items, ScratchPool& scratch,
            TeamChoice* teams, RunTimes* times = nullptr);

  bool Advance() override;
  void Drop(int i) override;
  absl::StatusOr<Answer> Take(int i) override;

 private:
  bool RunBlock();
  Answer MakeAnswer(int i);

  const VisionFamily& family_;
  ScratchPool& scratch_;
  RunTimes* const times_;
  TeamTurn turn_;
  std::vector<const ImageItem*> items_;
  std::vector<bool> dropped_;
  std::unique_ptr<VisionBatch> batch_;
  bool finished_ = false;
  absl::Status status_;
};

}  // namespace longview::models
