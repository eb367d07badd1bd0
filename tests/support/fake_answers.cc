#include "tests/support/fake_answers.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <string>

namespace longview::testing {
namespace {

using models::Answer;
using models::HostTensor;
using models::Request;
using models::Task;
using models::TensorSpec;
using models::TensorType;

// A value in [-1, 1) that depends on every token before `end` and on `salt`.
float Hash(const std::vector<int32_t>& ids, size_t end, uint32_t salt) {
  uint32_t h = 2166136261u ^ (salt * 0x9E3779B9u);
  for (size_t i = 0; i < end; ++i) h = (h ^ static_cast<uint32_t>(ids[i])) * 16777619u;
  h ^= h >> 15;
  return static_cast<float>(h % 20001u) / 10000.0f - 1.0f;
}

HostTensor Floats(std::string name, std::vector<int64_t> shape, const std::vector<float>& values) {
  HostTensor tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  tensor.data.resize(values.size() * sizeof(float));
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

// [T, width]: the token's id plus a column offset.
std::vector<float> PerToken(const std::vector<int32_t>& ids, int width, uint32_t salt) {
  std::vector<float> values;
  for (size_t t = 0; t < ids.size(); ++t) {
    const float seen = static_cast<float>(ids[t]);
    for (int j = 0; j < width; ++j) values.push_back(seen + 0.25f * static_cast<float>(j + salt));
  }
  return values;
}

// A mask is the byte '_'.
bool IsMask(int32_t id) { return id == '_'; }

int NumScores(const FakeItem& item, const FakeOptions& options) {
  const size_t choices = std::max(item.request.choices.size(), item.request.choice_tokens.size());
  return item.request.task == Task::kMultipleChoice ? static_cast<int>(choices)
                                                    : static_cast<int>(options.labels.size());
}

HostTensor MakeTensor(const std::string& name, const FakeItem& item, const FakeOptions& options) {
  const auto tokens = static_cast<int64_t>(item.ids.size());
  const int width = options.embedding_width;
  if (name == "embedding") return Floats(name, {width}, FakeLogits(item.ids, width));
  if (name == "last_hidden_state") {
    return Floats(name, {tokens, width}, PerToken(item.ids, width, 0));
  }
  if (name == "start_logits") return Floats(name, {tokens}, PerToken(item.ids, 1, 1));
  if (name == "end_logits") return Floats(name, {tokens}, PerToken(item.ids, 1, 2));
  if (item.request.task == Task::kTokenClassification) {
    const auto labels = static_cast<int>(options.labels.size());
    return Floats(name, {tokens, labels}, PerToken(item.ids, labels, 0));
  }
  if (name == "mask_logits") {
    std::vector<int32_t> masks;
    std::copy_if(item.ids.begin(), item.ids.end(), std::back_inserter(masks), IsMask);
    return Floats(name, {static_cast<int64_t>(masks.size()), options.vocabulary},
                  PerToken(masks, options.vocabulary, 0));
  }
  if (item.request.task == Task::kFillMask) {
    return Floats(name, {tokens, options.vocabulary}, PerToken(item.ids, options.vocabulary, 0));
  }
  const int scores = NumScores(item, options);
  return Floats(name, {scores}, FakeLogits(item.ids, scores));
}

std::vector<models::LabelScore> Labels(const FakeItem& item, const FakeOptions& options) {
  const int count = NumScores(item, options);
  std::vector<float> scores = FakeLogits(item.ids, count);
  if (options.problem_type == models::ProblemType::kMultiLabel) {
    for (float& score : scores) score = 1.0f / (1.0f + std::exp(-score));
  } else if (options.problem_type == models::ProblemType::kSingleLabel) {
    float sum = 0;
    for (float& score : scores) sum += score = std::exp(score);
    for (float& score : scores) score /= sum;
  }
  std::vector<models::LabelScore> labels;
  for (int i = 0; i < count; ++i) {
    const bool named = i < static_cast<int>(options.labels.size());
    labels.push_back({i, named ? options.labels[i] : std::to_string(i), scores[i]});
  }
  if (options.problem_type != models::ProblemType::kRegression) {
    std::stable_sort(labels.begin(), labels.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
  }
  return labels;
}

// Every word that begins with a capital letter.
std::vector<models::EntitySpan> Entities(const FakeItem& item, const FakeOptions& options) {
  std::vector<models::EntitySpan> entities;
  const std::string text = item.request.text.value_or("");
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end]))) ++end;
    if (end > i && std::isupper(static_cast<unsigned char>(text[i]))) {
      entities.push_back({options.labels[(end - i) % options.labels.size()], 0.5f,
                          text.substr(i, end - i), static_cast<int>(i), static_cast<int>(end)});
    }
    i = end + 1;
  }
  return entities;
}

// The first `top_k` words of the document, with falling scores.
std::vector<models::AnswerSpan> Answers(const FakeItem& item) {
  std::vector<models::AnswerSpan> answers;
  const std::string text = item.request.text.value_or("");
  const int wanted = std::max(1, item.request.top_k);
  for (size_t i = 0; i < text.size() && static_cast<int>(answers.size()) < wanted;) {
    const size_t end = std::min(text.find(' ', i), text.size());
    const float score = 8.0f - static_cast<float>(answers.size());
    if (end > i) {
      answers.push_back({text.substr(i, end - i), score, score / 16.0f, static_cast<int>(i),
                         static_cast<int>(end)});
    }
    i = end + 1;
  }
  return answers;
}

std::vector<models::MaskFill> Masks(const FakeItem& item) {
  std::vector<models::MaskFill> masks;
  const int top_k = item.request.top_k > 0 ? item.request.top_k : 5;
  for (size_t t = 0; t < item.ids.size(); ++t) {
    if (!IsMask(item.ids[t])) continue;
    models::MaskFill mask{static_cast<int>(t), {}};
    for (int k = 0; k < top_k; ++k) {
      mask.candidates.push_back({'a' + k, std::string(1, static_cast<char>('a' + k)), -1.0f - k});
    }
    masks.push_back(std::move(mask));
  }
  return masks;
}

std::vector<TensorSpec> FakeInputs(const models::ModelInfo& info) {
  const std::vector<int64_t> ids = info.task == Task::kMultipleChoice
                                       ? std::vector<int64_t>{1, -1, -1}
                                       : std::vector<int64_t>{-1, -1};
  std::vector<TensorSpec> inputs;
  if (info.has_tokenizer) inputs.push_back({"text", TensorType::kBytes, {-1}});
  if (info.task == Task::kTextClassification)
    inputs.push_back({"text_pair", TensorType::kBytes, {-1}});
  if (info.task == Task::kQuestionAnswering)
    inputs.push_back({"question", TensorType::kBytes, {1}});
  if (info.task == Task::kMultipleChoice) inputs.push_back({"choices", TensorType::kBytes, {-1}});
  for (const char* name :
       {"input_ids", "attention_mask", "token_type_ids", "global_attention_mask"}) {
    inputs.push_back({name, TensorType::kInt64, ids});
  }
  return inputs;
}

bool IsClassification(Task task) {
  return task == Task::kTextClassification || task == Task::kTextPairClassification ||
         task == Task::kMultipleChoice;
}

}  // namespace

std::vector<float> FakeLogits(const std::vector<int32_t>& ids, int labels) {
  std::vector<float> logits(labels);
  for (int i = 0; i < labels; ++i) logits[i] = Hash(ids, ids.size(), static_cast<uint32_t>(i));
  return logits;
}

std::vector<float> FakeLogits(std::string_view text, int labels) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return FakeLogits(ids, labels);
}

models::ModelInfo MakeFakeInfo(const FakeOptions& options) {
  const auto labels = static_cast<int64_t>(options.labels.size());
  const int64_t width = options.embedding_width;
  models::ModelInfo info;
  info.family = "fake";
  info.architecture = "FakeModel";
  info.tasks = options.tasks;
  info.task = options.tasks.front();
  info.labels = options.labels;
  info.problem_type = options.problem_type;
  info.max_tokens = options.max_tokens;
  info.embedding_width = options.embedding_width;
  info.has_tokenizer = options.has_tokenizer;
  info.dtype = "fp32";
  info.device = options.device;
  info.parameters = 1000;
  info.memory_bytes = 4000;
  info.inputs = FakeInputs(info);
  if (info.task == Task::kMultipleChoice) {
    info.outputs = {{"logits", TensorType::kFp32, {1, -1}},
                    {"probabilities", TensorType::kFp32, {1, -1}}};
  } else if (IsClassification(info.task)) {
    info.outputs = {{"logits", TensorType::kFp32, {-1, labels}}};
    if (options.problem_type != models::ProblemType::kRegression) {
      info.outputs.push_back({"probabilities", TensorType::kFp32, {-1, labels}});
      info.outputs.push_back({"label", TensorType::kBytes, {-1}});
    }
  } else if (info.task == Task::kTokenClassification) {
    info.outputs = {{"logits", TensorType::kFp32, {1, -1, labels}},
                    {"entities", TensorType::kBytes, {-1}}};
  } else if (info.task == Task::kQuestionAnswering) {
    info.outputs = {{"answer", TensorType::kBytes, {1}},
                    {"start_logits", TensorType::kFp32, {1, -1}},
                    {"end_logits", TensorType::kFp32, {1, -1}}};
  } else if (info.task == Task::kFillMask) {
    info.outputs = {{"top", TensorType::kBytes, {-1}},
                    {"logits", TensorType::kFp32, {1, -1, options.vocabulary}, false}};
  }
  info.outputs.push_back(
      {"embedding", TensorType::kFp32, {-1, width}, info.task == Task::kEmbedding});
  info.outputs.push_back({"last_hidden_state", TensorType::kFp32, {1, -1, width}, false});
  return info;
}

bool HasFakeTensor(Task task, std::string_view name) {
  if (name == "embedding" || name == "last_hidden_state") return true;
  if (task == Task::kQuestionAnswering) return name == "start_logits" || name == "end_logits";
  if (task == Task::kFillMask && name == "mask_logits") return true;
  return name == "logits" && task != Task::kEmbedding;
}

Answer MakeFakeAnswer(const FakeItem& item, const FakeOptions& options) {
  Answer answer;
  answer.usage = item.usage();
  for (const std::string& name : item.request.tensors) {
    answer.tensors.push_back(MakeTensor(name, item, options));
  }
  if (!item.request.typed) return answer;
  const Task task = item.request.task;
  if (IsClassification(task)) answer.labels = Labels(item, options);
  if (task == Task::kTokenClassification) answer.entities = Entities(item, options);
  if (task == Task::kQuestionAnswering) answer.answers = Answers(item);
  if (task == Task::kFillMask) answer.masks = Masks(item);
  if (task == Task::kRerank) {
    answer.pair_score.raw = FakeLogits(item.ids, 1).front();
    answer.pair_score.score = std::tanh(answer.pair_score.raw);
  }
  return answer;
}

}  // namespace longview::testing
