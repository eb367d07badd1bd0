#include "models/longformer/info.h"

#include "models/longformer/prepare.h"

namespace longview::models {
namespace {

void AddInputs(const LongformerConfig& config, bool has_tokenizer, ModelInfo& info) {
  const bool choice = config.head == LongformerHead::kMultipleChoice;
  const bool question = config.head == LongformerHead::kQuestionAnswering;
  if (has_tokenizer) {
    info.inputs.push_back({"text", TensorType::kBytes, {question || choice ? 1 : -1}});
    if (question) info.inputs.push_back({"question", TensorType::kBytes, {1}});
    if (choice) info.inputs.push_back({"choices", TensorType::kBytes, {-1}});
    if (config.head == LongformerHead::kSequenceClassification) {
      info.inputs.push_back({"text_pair", TensorType::kBytes, {-1}});
    }
  }
  std::vector<int64_t> shape = {-1, -1};
  if (question) shape = {1, -1};
  if (choice) shape = {1, -1, -1};
  for (const char* name :
       {"input_ids", "attention_mask", "token_type_ids", "global_attention_mask"}) {
    info.inputs.push_back({name, TensorType::kInt64, shape});
  }
  if (config.head == LongformerHead::kSequenceClassification) {
    info.inputs.push_back({"input_ids_pair", TensorType::kInt64, {-1, -1}});
  }
}

void AddOutputs(const LongformerConfig& config, ModelInfo& info) {
  const auto labels = static_cast<int64_t>(config.labels.size());
  const auto add = [&](const char* name, TensorType type, std::vector<int64_t> shape,
                       bool by_default = true) {
    info.outputs.push_back({name, type, std::move(shape), by_default});
  };
  switch (config.head) {
    case LongformerHead::kNone:
      break;
    case LongformerHead::kSequenceClassification:
      add("logits", TensorType::kFp32, {-1, labels});
      if (config.problem_type == ProblemType::kRegression) break;
      add("probabilities", TensorType::kFp32, {-1, labels});
      add("label", TensorType::kBytes, {-1});
      break;
    case LongformerHead::kMultipleChoice:
      add("logits", TensorType::kFp32, {1, -1});
      add("probabilities", TensorType::kFp32, {1, -1});
      break;
    case LongformerHead::kTokenClassification:
      add("logits", TensorType::kFp32, {1, -1, labels});
      add("entities", TensorType::kBytes, {-1});
      break;
    case LongformerHead::kQuestionAnswering:
      add("answer", TensorType::kBytes, {1});
      add("start_logits", TensorType::kFp32, {1, -1});
      add("end_logits", TensorType::kFp32, {1, -1});
      break;
    case LongformerHead::kMaskedLm:
      add("top", TensorType::kBytes, {-1});
      add("logits", TensorType::kFp32, {1, -1, config.vocab}, false);
      break;
  }
  add("embedding", TensorType::kFp32, {-1, config.width}, config.head == LongformerHead::kNone);
  add("last_hidden_state", TensorType::kFp32, {1, -1, config.width}, false);
}

}  // namespace

ModelInfo LongformerInfo(const LongformerConfig& config, bool has_tokenizer) {
  ModelInfo info;
  info.family = "longformer";
  info.architecture = config.architecture;
  info.tasks = LongformerTasks(config.head);
  info.task = info.tasks.front();
  info.labels = config.labels;
  info.problem_type = config.problem_type;
  info.embedding_width = config.width;
  info.has_tokenizer = has_tokenizer;
  info.device = "cpu";
  AddInputs(config, has_tokenizer, info);
  AddOutputs(config, info);
  return info;
}

}  // namespace longview::models
