#include "models/encoder/info.h"

namespace longview::models {
namespace {

void AddInputs(const EncoderFacts& facts, bool has_tokenizer, ModelInfo& info) {
  const bool choice = facts.head == EncoderHead::kMultipleChoice;
  const bool question = facts.head == EncoderHead::kQuestionAnswering;
  const bool pairs =
      facts.head == EncoderHead::kPairClassification ||
      (facts.head == EncoderHead::kSequenceClassification && facts.pairs != PairForm::kNone);
  if (has_tokenizer) {
    info.inputs.push_back({"text", TensorType::kBytes, {question || choice ? 1 : -1}});
    if (question) info.inputs.push_back({"question", TensorType::kBytes, {1}});
    if (choice) info.inputs.push_back({"choices", TensorType::kBytes, {-1}});
    if (pairs) info.inputs.push_back({"text_pair", TensorType::kBytes, {-1}});
  }
  std::vector<int64_t> shape = {-1, -1};
  if (question) shape = {1, -1};
  if (choice) shape = {1, -1, -1};
  const auto add = [&](const char* name) {
    info.inputs.push_back({name, TensorType::kInt64, shape});
  };
  add("input_ids");
  add("attention_mask");
  if (facts.types > 0) add("token_type_ids");
  if (facts.global_attention) add("global_attention_mask");
  if (pairs) info.inputs.push_back({"input_ids_pair", TensorType::kInt64, {-1, -1}});
}

void AddOutputs(const EncoderFacts& facts, ModelInfo& info) {
  const auto labels = static_cast<int64_t>(facts.labels.size());
  const auto add = [&](const char* name, TensorType type, std::vector<int64_t> shape,
                       bool by_default = true) {
    info.outputs.push_back({name, type, std::move(shape), by_default});
  };
  switch (facts.head) {
    case EncoderHead::kNone:
      break;
    case EncoderHead::kSequenceClassification:
    case EncoderHead::kPairClassification:
      add("logits", TensorType::kFp32, {-1, labels});
      if (facts.problem_type == ProblemType::kRegression) break;
      add("probabilities", TensorType::kFp32, {-1, labels});
      add("label", TensorType::kBytes, {-1});
      break;
    case EncoderHead::kMultipleChoice:
      add("logits", TensorType::kFp32, {1, -1});
      add("probabilities", TensorType::kFp32, {1, -1});
      break;
    case EncoderHead::kTokenClassification:
      add("logits", TensorType::kFp32, {1, -1, labels});
      add("entities", TensorType::kBytes, {-1});
      break;
    case EncoderHead::kQuestionAnswering:
      add("answer", TensorType::kBytes, {1});
      add("start_logits", TensorType::kFp32, {1, -1});
      add("end_logits", TensorType::kFp32, {1, -1});
      break;
    case EncoderHead::kMaskedLm:
      add("top", TensorType::kBytes, {-1});
      add("logits", TensorType::kFp32, {1, -1, facts.vocab}, false);
      break;
  }
  // Two documents have no one vector.
  if (facts.head == EncoderHead::kPairClassification) return;
  add("embedding", TensorType::kFp32, {-1, facts.width}, facts.head == EncoderHead::kNone);
  add("last_hidden_state", TensorType::kFp32, {1, -1, facts.width}, false);
}

}  // namespace

ModelInfo EncoderInfo(const EncoderFacts& facts, bool has_tokenizer) {
  ModelInfo info;
  info.family = facts.family;
  info.architecture = facts.architecture;
  info.tasks = TasksOf(facts);
  info.task = info.tasks.front();
  info.labels = facts.labels;
  info.problem_type = facts.problem_type;
  info.embedding_width = facts.width;
  info.has_tokenizer = has_tokenizer;
  info.device = "cpu";
  AddInputs(facts, has_tokenizer, info);
  AddOutputs(facts, info);
  return info;
}

std::vector<Task> TasksOf(const EncoderFacts& facts) {
  switch (facts.head) {
    case EncoderHead::kNone:
      return {Task::kEmbedding};
    case EncoderHead::kSequenceClassification:
      if (facts.pairs == PairForm::kNone) return {Task::kTextClassification, Task::kEmbedding};
      return {Task::kTextClassification, Task::kTextPairClassification, Task::kEmbedding};
    case EncoderHead::kPairClassification:
      return {Task::kTextPairClassification, Task::kEmbedding};
    case EncoderHead::kTokenClassification:
      return {Task::kTokenClassification, Task::kEmbedding};
    case EncoderHead::kQuestionAnswering:
      return {Task::kQuestionAnswering, Task::kEmbedding};
    case EncoderHead::kMaskedLm:
      return {Task::kFillMask, Task::kEmbedding};
    case EncoderHead::kMultipleChoice:
      return {Task::kMultipleChoice, Task::kEmbedding};
  }
  return {};
}

}  // namespace longview::models
