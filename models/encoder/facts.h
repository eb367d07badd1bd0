// Facts of a family for the shared part of its encoder: its head, the contents that requests may
// have, the rows that are read. Plain data, constant after load.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/config/sentence_config.h"
#include "models/model.h"

namespace longview::models {

// The head of a checkpoint, by what it answers.
enum class EncoderHead {
  kNone,
  kSequenceClassification,
  kPairClassification,  // Two documents, encoded one by one.
  kTokenClassification,
  kQuestionAnswering,
  kMaskedLm,
  kMultipleChoice,
};

// How the second text of a request reaches the encoder.
enum class PairForm {
  kNone,      // Not at all.
  kJoined,    // In one sequence with the first: the tokenizer's template, or ids end to end.
  kSeparate,  // In a sequence of its own.
};

// Last hidden states of a sequence that something reads.
enum class RowsRead { kNone, kFirst, kAll };

// How a sequence becomes one vector: the vector of its class token, the mean over its tokens, the
// checkpoint's pooler.
enum class Pooling { kCls, kMean, kPooler };

struct EncoderFacts {
  std::string family;        // "longformer"
  std::string architecture;  // architectures[0] of config.json.
  EncoderHead head = EncoderHead::kNone;
  int vocab = 0;
  int types = 0;  // Rows of the token type table; 0: the family has none.
  int width = 0;
  int max_tokens = 0;  // Rows of the position table; 0: there is none.
  std::vector<std::string> labels;
  ProblemType problem_type = ProblemType::kSingleLabel;
  PairForm pairs = PairForm::kNone;
  // The id that ends texts, kept when ids are cut; separates question and document.
  std::optional<int> sep;
  int pad = -1;  // The id that stands for no token.
  // Whether `pad` masks like attention_mask 0. Masked tokens may then stand anywhere; else the
  // first token must not be masked.
  bool pad_masks = false;
  // Whether positions count visible tokens alone, as fairseq's do: then max_tokens does too.
  bool masked_take_no_position = false;
  bool global_attention = false;
  bool has_pooler = false;
  RowsRead pooler_reads = RowsRead::kFirst;
  // The vector that sequence classification, pairs and multiple choice read. kNone: one that is no
  // token's; the encoder then runs without any wanted row.
  RowsRead head_reads = RowsRead::kFirst;
  std::optional<RowsRead> cls_reads = RowsRead::kFirst;  // Pooling `cls`; unset: there is none.
  Pooling default_pooling = Pooling::kMean;              // If the directory does not say.
};

// The task of the head, first, and the others the model can do. `sentence`: what the directory says
// of embeddings; null: nothing.
std::vector<Task> TasksOf(const EncoderFacts& facts, const SentenceConfig* sentence = nullptr);

// The facts that every configuration holds under the same names.
template <class Config>
EncoderFacts FactsOfText(std::string family, const Config& config) {
  EncoderFacts facts;
  facts.family = std::move(family);
  facts.architecture = config.architecture;
  facts.vocab = config.vocab;
  facts.width = config.width;
  facts.labels = config.labels;
  facts.problem_type = config.problem_type;
  return facts;
}

// Says of an encoder in general: task, tasks, labels and the tensors of the Open Inference
// Protocol. `sentence` may be null.
ModelInfo EncoderInfo(const EncoderFacts& facts, const SentenceConfig* sentence,
                      bool has_tokenizer);

}  // namespace longview::models
