#include "models/quantize/probes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace longview::models {
namespace {

bool Does(const ModelInfo& info, Task task) {
  return std::find(info.tasks.begin(), info.tasks.end(), task) != info.tasks.end();
}

Probe TextProbe(Comparison comparison, Task task, std::string text,
                std::vector<std::string> tensors) {
  Probe probe{.comparison = comparison};
  probe.request.task = task;
  probe.request.text = std::move(text);
  probe.request.truncate = true;
  probe.request.tensors = std::move(tensors);
  probe.request.typed = false;
  return probe;
}

std::vector<Probe> PictureProbes(const ModelInfo& info, const GivenInputs& inputs) {
  std::vector<Probe> probes;
  for (const std::string& picture : inputs.pictures) {
    Probe& probe = probes.emplace_back(Probe{.picture = picture});
    probe.request.task = info.task;
    probe.request.typed = info.task == Task::kObjectDetection;
    if (info.task == Task::kObjectDetection) {
      probe.comparison = Comparison::kBoxes;
    } else if (info.task == Task::kImageClassification) {
      probe.request.tensors = {"logits"};
    } else {
      probe.comparison = Comparison::kCosine;
      probe.request.tensors = {"embedding"};
    }
  }
  return probes;
}

// Each query ranks itself and texts from all over.
std::vector<Probe> RankingProbes(const std::vector<GivenText>& texts) {
  std::vector<Probe> probes;
  int number = 0;
  for (const size_t place : EvenlySpaced(texts.size(), kMostQueries)) {
    std::vector<size_t> documents = EvenlySpaced(texts.size(), kMostDocuments);
    if (std::find(documents.begin(), documents.end(), place) == documents.end()) {
      documents.back() = place;
    }
    for (const size_t document : documents) {
      Probe& probe = probes.emplace_back(
          TextProbe(Comparison::kRanking, Task::kRerank, FirstSentence(texts[place].text), {}));
      probe.request.text_pair = texts[document].text;
      probe.request.typed = true;
      probe.query = number;
    }
    ++number;
  }
  return probes;
}

// A text and the one that was given with it, else the next text.
std::vector<Probe> PairProbes(const std::vector<GivenText>& texts) {
  std::vector<Probe> probes;
  for (size_t i = 0; i < texts.size(); ++i) {
    Probe& probe = probes.emplace_back(
        TextProbe(Comparison::kTop1, Task::kTextPairClassification, texts[i].text, {"logits"}));
    const bool own = !texts[i].pair.empty();
    probe.request.text_pair = own ? texts[i].pair : texts[(i + 1) % texts.size()].text;
  }
  return probes;
}

Probe QuestionProbe(const std::string& text) {
  Probe probe = TextProbe(Comparison::kSpan, Task::kQuestionAnswering, text, {});
  probe.request.question = FirstSentence(text);
  probe.request.typed = true;
  return probe;
}

Probe MaskProbe(const std::string& text) {
  Probe probe = TextProbe(Comparison::kMaskTop1, Task::kFillMask, text, {});
  probe.request.typed = true;
  probe.request.top_k = 1;
  return probe;
}

Probe EmbeddingProbe(const ModelInfo& info, const std::string& text) {
  if (Does(info, Task::kMultiVector)) {
    return TextProbe(Comparison::kCosine, Task::kMultiVector, text, {"last_hidden_state"});
  }
  return TextProbe(Comparison::kCosine, Task::kEmbedding, text, {"embedding"});
}

// The prompt comes back with log-probabilities, and nothing new.
Probe ScoringProbe(std::string_view text) {
  Probe probe = TextProbe(Comparison::kBitsPerByte, Task::kTextGeneration,
                          BeginningOf(text, kMostScoredBytes), {});
  GenerationOptions& options = probe.request.generation.emplace();
  options.max_new_tokens = 0;
  options.echo = true;
  options.logprobs = 0;
  return probe;
}

Probe OutputProbe(const std::string& text) {
  Probe probe = TextProbe(Comparison::kBitsPerToken, Task::kText2TextGeneration, text, {"logits"});
  probe.request.generation.emplace().max_new_tokens = 0;
  return probe;
}

// The probe of a text by itself.
Probe SingleProbe(const ModelInfo& info, const std::string& text) {
  switch (info.task) {
    case Task::kTextClassification:
      if (info.labels.size() == 1 || info.problem_type == ProblemType::kRegression) break;
      return TextProbe(Comparison::kTop1, info.task, text, {"logits"});
    case Task::kTokenClassification:
      return TextProbe(Comparison::kLabels, info.task, text, {"logits"});
    case Task::kQuestionAnswering:
      return QuestionProbe(text);
    case Task::kTextGeneration:
      return ScoringProbe(text);
    case Task::kText2TextGeneration:
      return OutputProbe(text);
    default:
      break;
  }
  return EmbeddingProbe(info, text);
}

bool ReadsPictures(Task task) {
  return task == Task::kImageClassification || task == Task::kObjectDetection ||
         task == Task::kImageFeatures;
}

}  // namespace

absl::StatusOr<std::vector<Probe>> MakeProbes(const ModelInfo& info, const GivenInputs& inputs) {
  const std::string model = absl::StrCat(info.architecture, " reads ");
  if (ReadsPictures(info.task)) {
    if (inputs.pictures.empty()) {
      return absl::InvalidArgumentError(model + "pictures: none were given (--pictures FOLDER)");
    }
    return PictureProbes(info, inputs);
  }
  if (inputs.texts.empty()) {
    return absl::InvalidArgumentError(model +
                                      "texts: none were given (--texts FILE or --texts FOLDER)");
  }
  if (!info.has_tokenizer) {
    return absl::InvalidArgumentError(model + "texts, and its directory has no tokenizer for them");
  }
  if (Does(info, Task::kRerank)) return RankingProbes(inputs.texts);
  if (info.task == Task::kTextPairClassification) return PairProbes(inputs.texts);
  std::vector<Probe> probes;
  for (const GivenText& given : inputs.texts) {
    probes.push_back(SingleProbe(info, given.text));
    if (info.task == Task::kFillMask) probes.push_back(MaskProbe(given.text));
  }
  return probes;
}

Request OutputRequest(const Probe& probe) {
  Request request = probe.request;
  request.tensors.clear();
  GenerationOptions& options = request.generation.emplace();
  options.max_new_tokens = kOutputTokens;
  options.do_sample = false;
  options.num_beams = 1;
  options.num_return_sequences = 1;
  return request;
}

}  // namespace longview::models
