#include "tests/models/transformer/transformer_case.h"

#include <algorithm>
#include <map>
#include <utility>

namespace longview::models {
namespace {

// The tasks by the names of fixtures.
const std::map<std::string, Task>& Tasks() {
  static const std::map<std::string, Task> kTasks = {
      {"sequence-classification", Task::kTextClassification},
      {"token-classification", Task::kTokenClassification},
      {"question-answering", Task::kQuestionAnswering},
      {"masked-lm", Task::kFillMask},
      {"embeddings", Task::kEmbedding},
      {"multiple-choice", Task::kMultipleChoice}};
  return kTasks;
}

}  // namespace

void PrintTo(const TransformerCaseName& name, std::ostream* out) {
  *out << name.family << " " << name.name;
}

TransformerCase::TransformerCase(const TransformerCaseName& name)
    : golden_(name.name, name.family) {
  const Task task = Tasks().at(golden_.description().at("task"));
  for (int item = 0; item < golden_.items(); ++item) {
    for (const char* tensor :
         {"logits", "start_logits", "end_logits", "mask_logits", "last_hidden_state"}) {
      Ask(item, task, tensor, tensor);
    }
    Ask(item, Task::kEmbedding, "cls", "embedding", "cls");
    Ask(item, Task::kEmbedding, "mean", "embedding", "mean");
    Ask(item, Task::kEmbedding, "mean_normalized", "embedding", "mean");
    Ask(item, Task::kEmbedding, "pooler_output", "embedding", "pooler");
  }
  if (task != Task::kMultipleChoice) return;
  Request request = TokenRequest(task, {}, {"logits"});
  request.tokens.reset();
  const std::vector<int64_t> ids = golden_.Integers("input_ids");
  const size_t choices = golden_.Expected("logits").size(), length = ids.size() / choices;
  for (size_t c = 0; c < choices; ++c) {
    const auto begin = ids.begin() + static_cast<ptrdiff_t>(c * length);
    request.choice_tokens.push_back({{begin, begin + static_cast<ptrdiff_t>(length)}, {}, {}, {}});
  }
  requests_.push_back(std::move(request));
  expected_.push_back("logits");
}

std::vector<TransformerCaseName> TransformerCase::Names() {
  std::vector<TransformerCaseName> names;
  for (const std::string family : {"modernbert", "xlm_roberta"}) {
    for (const std::string& name : GoldenCase::Names(family)) names.push_back({family, name});
  }
  return names;
}

void TransformerCase::Ask(int item, Task task, const std::string& expected,
                          const std::string& tensor, const std::string& pooling) {
  const std::string name = expected + "." + std::to_string(item);
  if (!golden_.Expects(name)) return;
  requests_.push_back(TokenRequest(task, golden_.Tokens(item), {tensor}));
  requests_.back().pooling = pooling;
  if (expected == "mean_normalized") requests_.back().normalize = true;
  expected_.push_back(name);
}

double TransformerCase::Difference(const std::string& name, std::span<const float> got) const {
  const std::vector<double> want = golden_.Expected(name);
  const std::string positions = "positions." + name.substr(name.find('.') + 1);
  const bool per_token = golden_.description().at("task") == "token-classification" ||
                         golden_.description().at("task") == "masked-lm" ||
                         name.starts_with("last_hidden_state") || name.ends_with("_logits");
  if (!per_token || !golden_.Expects(positions)) return LargestDifference(got, want);
  const std::vector<int64_t> rows = golden_.ExpectedIntegers(positions);
  const auto width = static_cast<int64_t>(want.size() / rows.size());
  std::vector<float> kept;
  for (const int64_t row : rows) {
    const auto begin = got.begin() + row * width;
    kept.insert(kept.end(), begin, begin + width);
  }
  return LargestDifference(kept, want);
}

double TransformerCase::Error(const std::vector<Answer>& answers) const {
  double largest = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const double error = Difference(expected_[i], answers[i].tensors.at(0).floats());
    if (!(error <= largest)) largest = error;
  }
  return largest;
}

}  // namespace longview::models
