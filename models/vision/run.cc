#include "models/vision/run.h"

#include <cstring>
#include <utility>

#include "models/status_macros.h"
#include "models/text/scores.h"
#include "models/torch_guard.h"
#include "models/vision/prepare.h"

namespace longview::models {
namespace {

HostTensor Floats(const std::string& name, std::vector<int64_t> shape,
                  std::span<const float> values) {
  HostTensor tensor;
  tensor.name = name;
  tensor.shape = std::move(shape);
  tensor.data.resize(values.size_bytes());
  std::memcpy(tensor.data.data(), values.data(), values.size_bytes());
  return tensor;
}

}  // namespace

VisionRun::VisionRun(const VisionFamily& family, std::span<const Item* const> items,
                     ScratchPool& scratch, TeamChoice* teams, RunTimes* times)
    : family_(family), scratch_(scratch), times_(times), turn_(teams), dropped_(items.size()) {
  turn_.Begin(items);
  for (const Item* item : items) {
    items_.push_back(static_cast<const ImageItem*>(item));
    if (!items_.back()->pixels.values.empty()) continue;
    status_ = absl::InternalError("an item without pixels has a cost only");
  }
}

bool VisionRun::Advance() {
  if (!status_.ok() || finished_) return false;
  bool more = false;
  {
    const TeamTurn::Part part(turn_);
    status_ = GuardTorch(family_.facts().family, [&] { more = RunBlock(); });
  }
  finished_ = status_.ok() && !more;
  if (finished_) turn_.End();
  return status_.ok() && more;
}

bool VisionRun::RunBlock() {
  if (!batch_) {
    std::vector<VisionInput> inputs;
    for (const ImageItem* item : items_) inputs.push_back({&item->pixels, item->stages});
    batch_ = family_.Begin(inputs, scratch_, times_);
    for (size_t i = 0; i < items_.size(); ++i) {
      if (dropped_[i]) batch_->Drop(static_cast<int>(i));
    }
  }
  return batch_->Advance();
}

void VisionRun::Drop(int i) {
  dropped_[i] = true;
  turn_.Spoil();
  if (batch_) batch_->Drop(i);
}

Answer VisionRun::MakeAnswer(int i) {
  const ImageItem& item = *items_[i];
  const VisionFacts& facts = family_.facts();
  Answer answer;
  answer.usage = item.usage();
  const bool classifies = item.task == Task::kImageClassification;
  std::vector<float> logits;
  if (classifies && (item.typed || item.Wants("logits"))) logits = batch_->Logits(i);
  const std::vector<FeatureMap> maps = batch_->TakeMaps(i);
  for (const std::string& name : item.tensors) {
    const std::optional<int> stage = StageOfTensor(facts, name);
    if (stage) {
      const auto at = std::find(item.stages.begin(), item.stages.end(), *stage);
      const FeatureMap& map = maps[at - item.stages.begin()];
      answer.tensors.push_back(
          Floats(name, {map.channels, map.size.height, map.size.width}, map.values));
    } else if (name == "embedding") {
      answer.tensors.push_back(Floats(name, {facts.width}, batch_->Embedding(i)));
    } else {
      answer.tensors.push_back(Floats(name, {static_cast<int64_t>(logits.size())}, logits));
    }
  }
  if (classifies && item.typed) {
    answer.labels = RankLabels(logits, facts.labels, facts.problem_type, item.top_k);
  }
  return answer;
}

absl::StatusOr<Answer> VisionRun::Take(int i) {
  if (!status_.ok()) return status_;
  if (dropped_[i] || !finished_) return absl::CancelledError("the item was dropped");
  Answer answer;
  RETURN_IF_ERROR(GuardTorch(family_.facts().family, [&] { answer = MakeAnswer(i); }));
  return answer;
}

}  // namespace longview::models
