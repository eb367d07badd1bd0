#include "models/model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/finite.h"

namespace longview::models {
namespace {

constexpr std::array<std::pair<Task, std::string_view>, 14> kTaskNames = {{
    {Task::kTextClassification, "text-classification"},
    {Task::kTextPairClassification, "text-pair-classification"},
    {Task::kMultipleChoice, "multiple-choice"},
    {Task::kTokenClassification, "token-classification"},
    {Task::kQuestionAnswering, "question-answering"},
    {Task::kFillMask, "fill-mask"},
    {Task::kEmbedding, "embedding"},
    {Task::kMultiVector, "multi-vector"},
    {Task::kRerank, "rerank"},
    {Task::kTextGeneration, "text-generation"},
    {Task::kText2TextGeneration, "text2text-generation"},
    {Task::kImageClassification, "image-classification"},
    {Task::kObjectDetection, "object-detection"},
    {Task::kImageFeatures, "image-features"},
}};

}  // namespace

std::string_view TaskName(Task task) {
  for (const auto& [value, name] : kTaskNames) {
    if (value == task) return name;
  }
  return "";
}

std::optional<Task> ParseTask(std::string_view name) {
  for (const auto& [value, task_name] : kTaskNames) {
    if (task_name == name) return value;
  }
  return std::nullopt;
}

const HostTensor* Answer::Find(std::string_view name) const {
  for (const HostTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::string_view Answer::NotFinite() const {
  for (const HostTensor& tensor : tensors) {
    if (tensor.type == TensorType::kFp32 && !AllFinite(tensor.floats())) return tensor.name;
  }
  const auto scored = [](const auto& part) { return std::isfinite(part.score); };
  const bool all = std::all_of(labels.begin(), labels.end(), scored) &&
                   std::all_of(entities.begin(), entities.end(), scored) &&
                   std::all_of(answers.begin(), answers.end(), scored) &&
                   std::all_of(detections.begin(), detections.end(), scored) && scored(pair_score);
  return all ? std::string_view() : "scores";
}

absl::StatusOr<ChunkPlan> Model::PlanChunks(const Request&) const {
  return absl::UnimplementedError(info().architecture + " does not embed chunks of texts");
}

absl::StatusOr<std::unique_ptr<Generation>> Model::Start(const Item&) {
  return absl::UnimplementedError(info().architecture + " does not generate");
}

std::unique_ptr<Run> Model::BeginStep(std::span<const StepGrant>) { return nullptr; }

absl::StatusOr<std::shared_ptr<Document>> Model::NewDocument() {
  return absl::UnimplementedError(info().architecture + " does not read documents ahead");
}

}  // namespace longview::models
