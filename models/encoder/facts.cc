#include "models/encoder/facts.h"

namespace longview::models {
namespace {

// Numbers of an embedding, or of a token's vector.
int64_t AnswerWidth(const EncoderFacts& facts, const SentenceConfig* sentence) {
  if (sentence == nullptr || !sentence->modules.ok() || !*sentence->modules) return facts.width;
  return (*sentence->modules)->width_of_answers(facts.width);
}

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

void AddOutputs(const EncoderFacts& facts, const SentenceConfig* sentence, ModelInfo& info) {
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
  const bool alone = facts.head == EncoderHead::kNone;
  const bool multi_vector = info.tasks.back() == Task::kMultiVector;
  if (info.tasks.back() == Task::kEmbedding) {
    add("embedding", TensorType::kFp32, {-1, AnswerWidth(facts, sentence)}, alone);
  }
  add("last_hidden_state", TensorType::kFp32,
      {1, -1, multi_vector ? AnswerWidth(facts, sentence) : facts.width}, multi_vector && alone);
}

}  // namespace

ModelInfo EncoderInfo(const EncoderFacts& facts, const SentenceConfig* sentence,
                      bool has_tokenizer) {
  ModelInfo info;
  info.family = facts.family;
  info.architecture = facts.architecture;
  info.tasks = TasksOf(facts, sentence);
  if (!info.tasks.empty()) info.task = info.tasks.front();
  info.labels = facts.labels;
  info.problem_type = facts.problem_type;
  info.embedding_width = static_cast<int>(AnswerWidth(facts, sentence));
  info.has_tokenizer = has_tokenizer;
  info.device = "cpu";
  AddInputs(facts, has_tokenizer, info);
  AddOutputs(facts, sentence, info);
  return info;
}

std::vector<Task> TasksOf(const EncoderFacts& facts, const SentenceConfig* sentence) {
  std::vector<Task> tasks;
  switch (facts.head) {
    case EncoderHead::kNone:
      break;
    case EncoderHead::kSequenceClassification:
      tasks = {Task::kTextClassification};
      if (facts.pairs != PairForm::kNone) tasks.push_back(Task::kTextPairClassification);
      if (facts.pairs == PairForm::kJoined && facts.labels.size() == 1) {
        tasks.push_back(Task::kRerank);
      }
      break;
    case EncoderHead::kPairClassification:
      tasks = {Task::kTextPairClassification};
      break;
    case EncoderHead::kTokenClassification:
      tasks = {Task::kTokenClassification};
      break;
    case EncoderHead::kQuestionAnswering:
      tasks = {Task::kQuestionAnswering};
      break;
    case EncoderHead::kMaskedLm:
      tasks = {Task::kFillMask};
      break;
    case EncoderHead::kMultipleChoice:
      tasks = {Task::kMultipleChoice};
      break;
  }
  if (sentence == nullptr) {
    tasks.push_back(Task::kEmbedding);
  } else if (sentence->modules.ok()) {
    const std::optional<SentenceModules>& modules = *sentence->modules;
    tasks.push_back(modules && modules->multi_vector ? Task::kMultiVector : Task::kEmbedding);
  }
  return tasks;
}

}  // namespace longview::models
