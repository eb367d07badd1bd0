#include "tests/models/encoder/encoder_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace longview::models {
namespace {

struct EncoderGoldens {
  MakeEncoder make;
  double bf16, bf16_of_vocabularies;  // Their logits may be wider spread.
};

const std::map<std::string, EncoderGoldens>& Goldens() {
  static const std::map<std::string, EncoderGoldens> kGoldens = {
      {"cst", {MakeCst, 0.2, 0.6}},
      {"longformer", {MakeLongformer, 0.5, 0.5}},
      {"luna", {MakeLuna, 0.5, 0.5}},
      {"modernbert", {MakeModernBert, 0.5, 0.5}},
      {"transformer_ls_text", {MakeLsText, 0.2, 0.2}},
      {"xlm_roberta", {MakeRoberta, 0.5, 0.5}}};
  return kGoldens;
}

// How far int8 may be off, of the largest value that a case expects.
constexpr double kInt8Share = 0.25;

// The names of the inputs: the documents of a pair are numbered from 0 or from 1.
std::vector<std::string> InputsOf(const GoldenCase& golden) {
  if (golden.HasInput("input_ids_0.0")) return {"input_ids_0", "input_ids_1"};
  if (golden.HasInput("input_ids_1.0")) return {"input_ids_1", "input_ids_2"};
  return {"input_ids"};
}

// By the case's description, or by its name and inputs where that is silent.
Task TaskOf(const GoldenCase& golden, const std::string& name) {
  static const std::map<std::string, Task> kTasks = {
      {"sequence-classification", Task::kTextClassification},
      {"token-classification", Task::kTokenClassification},
      {"question-answering", Task::kQuestionAnswering},
      {"masked-lm", Task::kFillMask},
      {"embeddings", Task::kEmbedding},
      {"multiple-choice", Task::kMultipleChoice}};
  const nlohmann::json& description = golden.description();
  if (description.contains("task")) return kTasks.at(description["task"]);
  if (name.starts_with("mlm_")) return Task::kFillMask;
  const bool pair = InputsOf(golden).size() == 2;
  return pair ? Task::kTextPairClassification : Task::kTextClassification;
}

}  // namespace

void PrintTo(const EncoderCaseName& name, std::ostream* out) {
  *out << name.family << " " << name.name;
}

std::string TestName(const ::testing::TestParamInfo<EncoderCaseName>& info) {
  return info.param.family + "_" + info.param.name;
}

EncoderCase::EncoderCase(const EncoderCaseName& name, size_t most_pooled)
    : golden_(name.name, name.family) {
  const EncoderGoldens& family = Goldens().at(name.family);
  const Task task = TaskOf(golden_, name.name);
  make_ = family.make;
  limits_.fp32 = golden_.tolerance("logits");
  limits_.bf16 = task == Task::kFillMask ? family.bf16_of_vocabularies : family.bf16;
  limits_.fp16 = limits_.bf16 / 5;  // Three bits more; the limit is not quite as much tighter.
  task == Task::kMultipleChoice ? AskChoices() : AskItems(task, most_pooled);
  double largest = 0;
  for (const std::vector<Wanted>& tensors : wanted_) {
    for (const Wanted& wanted : tensors) {
      for (const double value : wanted.values) largest = std::max(largest, std::abs(value));
    }
  }
  // A share of the largest value, so that a small model's answers can be wrong.
  limits_.int8 = kInt8Share * largest;
}

std::vector<std::string> EncoderCase::Names(const std::string& family) {
  std::vector<std::string> names = GoldenCase::Names(family);
  for (const std::string other :
       {"ar_", "attention_kernel", "causal_", "checkpoint_forms", "mt_"}) {
    std::erase_if(names, [&](const std::string& name) { return name.starts_with(other); });
  }
  return names;
}

std::vector<EncoderCaseName> EncoderCase::NamesOf(const std::vector<std::string>& families) {
  std::vector<EncoderCaseName> all;
  for (const std::string& family : families) {
    for (const std::string& name : Names(family)) all.push_back({family, name});
  }
  return all;
}

std::vector<std::string> EncoderCase::Families() {
  std::vector<std::string> families;
  for (const auto& [family, goldens] : Goldens()) families.push_back(family);
  return families;
}

void EncoderCase::AskItems(Task task, size_t most_pooled) {
  struct Pooled {
    std::string output, pooling;
  };
  static const Pooled kPooled[] = {
      {"cls", "cls"}, {"mean", "mean"}, {"mean_normalized", "mean"}, {"pooler_output", "pooler"}};
  const std::vector<std::string> inputs = InputsOf(golden_);
  const int items = golden_.items(inputs[0]);
  // All items are asked for what the first one has; rows of one tensor are the items of some cases.
  const auto asked = [&](const std::string& output) {
    return golden_.Expects(output) || golden_.Expects(output + ".0");
  };
  const auto wanted = [&](const std::string& output, int item) -> Wanted {
    const std::string own = output + "." + std::to_string(item);
    if (golden_.Expects(own)) return {item, golden_.Expected(own)};
    if (golden_.Expects(output)) return {item, RowOf(golden_.Expected(output), item, items)};
    return {item, {}};
  };
  for (int item = 0; item < items; ++item) {
    Request request = TokenRequest(task, golden_.Tokens(item, inputs[0]), {});
    if (inputs.size() == 2) request.tokens_pair = golden_.Tokens(item, inputs[1]);
    std::vector<Wanted> tensors;
    for (const std::string tensor :
         {"logits", "start_logits", "end_logits", "mask_logits", "last_hidden_state"}) {
      if (!asked(tensor)) continue;
      request.tensors.push_back(tensor);
      tensors.push_back(wanted(tensor, item));
    }
    requests_.push_back(std::move(request));
    wanted_.push_back(std::move(tensors));
    const TokenInput& tokens = *requests_.back().tokens;
    if (!requests_.back().tensors.empty() && tokens.ids.size() > most_pooled) continue;
    for (const Pooled& pooled : kPooled) {
      if (!asked(pooled.output)) continue;
      requests_.push_back(TokenRequest(Task::kEmbedding, golden_.Tokens(item), {"embedding"}));
      requests_.back().pooling = pooled.pooling;
      if (pooled.output == "mean_normalized") requests_.back().normalize = true;
      wanted_.push_back({wanted(pooled.output, item)});
    }
  }
}

void EncoderCase::AskChoices() {
  Request request = TokenRequest(Task::kMultipleChoice, {}, {"logits"});
  request.tokens.reset();
  const std::vector<int64_t> ids = golden_.Integers("input_ids");
  const std::vector<double> logits = golden_.Expected("logits");
  const auto length = static_cast<ptrdiff_t>(ids.size() / logits.size());
  for (auto choice = ids.begin(); choice != ids.end(); choice += length) {
    request.choice_tokens.push_back({{choice, choice + length}, {}, {}, {}});
  }
  requests_.push_back(std::move(request));
  wanted_.push_back({{0, logits}});
}

double EncoderCase::Error(const std::vector<Answer>& answers) const {
  double largest = 0;
  for (size_t i = 0; i < requests_.size(); ++i) {
    for (size_t t = 0; t < wanted_[i].size(); ++t) {
      const auto& [item, values] = wanted_[i][t];
      if (values.empty()) continue;
      const HostTensor* tensor = answers.at(i).Find(requests_[i].tensors[t]);
      if (tensor == nullptr) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, golden_.Difference(tensor->floats(), values, item));
    }
  }
  return largest;
}

}  // namespace longview::models
