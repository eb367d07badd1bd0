#include "models/longformer/prepare.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/span/band_planner.h"
#include "models/longformer/draft.h"

namespace longview::models {
namespace {

using kernels::kGlobalToken;
using kernels::kLocalToken;
using kernels::kMaskedToken;

constexpr int kDefaultAnswerTokens = 30;
constexpr int kDefaultMaskCandidates = 5;

// Outputs that hold one row per token, masked tokens at the end included.
constexpr std::array<std::string_view, 3> kTokenTensors = {"last_hidden_state", "start_logits",
                                                           "end_logits"};

std::vector<std::string_view> TensorNames(Task task) {
  switch (task) {
    case Task::kEmbedding:
      return {"embedding", "last_hidden_state"};
    case Task::kQuestionAnswering:
      return {"start_logits", "end_logits", "embedding", "last_hidden_state"};
    case Task::kFillMask:
      return {"logits", "mask_logits", "embedding", "last_hidden_state"};
    default:
      return {"logits", "embedding", "last_hidden_state"};
  }
}

class Preparer {
 public:
  Preparer(const LongformerFrontEnd& front, const Request& request)
      : front_(front), config_(*front.config), request_(request) {}

  absl::StatusOr<std::unique_ptr<LongformerItem>> Prepare();

 private:
  absl::Status ReadOptions();
  absl::StatusOr<LongformerSequence> Finish(const SequenceDraft& draft);
  absl::Status CheckIds(const std::string& field, const TokenInput& tokens) const;
  absl::Status AddGlobals(const SequenceDraft& draft, LongformerSequence& sequence) const;
  absl::Status AddDefaultGlobals(const SequenceDraft& draft, LongformerSequence& sequence) const;
  absl::Status AddPositions(const SequenceDraft& draft, LongformerSequence& sequence) const;
  absl::Status FindMasks(const SequenceDraft& draft, const LongformerSequence& sequence);
  void FindContext(const SequenceDraft& draft, const LongformerSequence& sequence);
  void ChooseWanted(LongformerSequence& sequence) const;
  bool KeepsMaskedTail() const;

  const LongformerFrontEnd& front_;
  const LongformerConfig& config_;
  const Request& request_;
  std::unique_ptr<LongformerItem> item_ = std::make_unique<LongformerItem>();
};

absl::Status Preparer::ReadOptions() {
  item_->task = request_.task;
  item_->tensors = request_.tensors;
  item_->typed = request_.typed;
  item_->top_k = request_.top_k;
  const std::vector<std::string_view> names = TensorNames(request_.task);
  for (const std::string& name : request_.tensors) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return BadRequest("outputs",
                        absl::StrCat("\"", name.substr(0, 64), "\" is not one of ", "this task's"));
    }
  }
  const std::optional<Aggregation> aggregation = ParseAggregation(request_.aggregation);
  if (!aggregation) {
    return BadRequest("aggregation",
                      absl::StrCat("\"", request_.aggregation.substr(0, 64),
                                   "\" is not one of none, simple, first, average, max"));
  }
  item_->aggregation = *aggregation;
  item_->pooling = front_.pooling;
  if (request_.pooling == "cls") {
    item_->pooling = Pooling::kCls;
  } else if (request_.pooling == "mean") {
    item_->pooling = Pooling::kMean;
  } else if (request_.pooling == "pooler") {
    item_->pooling = Pooling::kPooler;
  } else if (request_.pooling == "none") {
    if (item_->Wants("embedding")) {
      return BadRequest("pooling", "\"none\" leaves no embedding; ask for last_hidden_state");
    }
  } else if (!request_.pooling.empty()) {
    return BadRequest("pooling", absl::StrCat("\"", request_.pooling.substr(0, 64),
                                              "\" is not one of cls, mean, pooler, none"));
  }
  if (item_->pooling == Pooling::kPooler && !front_.has_pooler) {
    return BadRequest("pooling", "\"pooler\" is not in this checkpoint");
  }
  item_->normalize = request_.normalize.value_or(front_.normalize);
  if (request_.top_k < 0 || request_.max_answer_tokens < 0) {
    return BadRequest(request_.top_k < 0 ? "top_k" : "max_answer_tokens", "must not be negative");
  }
  if (request_.task == Task::kFillMask && item_->top_k == 0) item_->top_k = kDefaultMaskCandidates;
  if (request_.task == Task::kQuestionAnswering && item_->top_k == 0) item_->top_k = 1;
  if (request_.task == Task::kFillMask && item_->top_k > config_.vocab) {
    return BadRequest("top_k", absl::StrCat(item_->top_k, " is more than the vocabulary's ",
                                            config_.vocab, " tokens"));
  }
  constexpr int kMostAnswers = 1000;
  if (request_.task == Task::kQuestionAnswering && item_->top_k > kMostAnswers) {
    return BadRequest("top_k", absl::StrCat(item_->top_k, " is more than ", kMostAnswers));
  }
  item_->max_answer_tokens =
      request_.max_answer_tokens > 0 ? request_.max_answer_tokens : kDefaultAnswerTokens;
  return absl::OkStatus();
}

bool Preparer::KeepsMaskedTail() const {
  const auto per_token = [this](std::string_view name) { return item_->Wants(name); };
  if (std::any_of(kTokenTensors.begin(), kTokenTensors.end(), per_token)) return true;
  return item_->Wants("logits") &&
         (request_.task == Task::kTokenClassification || request_.task == Task::kFillMask);
}

absl::Status Preparer::CheckIds(const std::string& field, const TokenInput& tokens) const {
  const auto check = [&](const std::string& name, std::span<const int32_t> values, int limit) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= 0 && values[i] < limit) continue;
      return BadRequest(name,
                        absl::StrCat(values[i], " at position ", i, " is not in [0, ", limit, ")"));
    }
    return absl::OkStatus();
  };
  if (auto status = check(field, tokens.ids, config_.vocab); !status.ok()) return status;
  return check("token_type_ids", tokens.token_type_ids, config_.types);
}

// HuggingFace create_position_ids_from_input_ids: counts tokens other than pad.
absl::Status Preparer::AddPositions(const SequenceDraft& draft,
                                    LongformerSequence& sequence) const {
  int32_t position = config_.pad;
  for (const int32_t id : sequence.ids) {
    if (id != config_.pad) ++position;
    sequence.positions.push_back(id == config_.pad ? config_.pad : position);
  }
  if (position < config_.positions) return absl::OkStatus();
  return BadRequest(draft.field, absl::StrCat("token position ", position,
                                              " is beyond the table of ", config_.positions));
}

// As the task's HuggingFace class: sequence classification marks the first token, question
// answering everything before the first separator, multiple choice everything after the second.
absl::Status Preparer::AddDefaultGlobals(const SequenceDraft& draft,
                                         LongformerSequence& sequence) const {
  const auto mark = [&](int begin, int end) {
    for (int t = begin; t < end; ++t) {
      if (sequence.roles[t] == kLocalToken) sequence.roles[t] = kGlobalToken;
    }
  };
  const auto first_sep = std::find(sequence.ids.begin(), sequence.ids.end(), config_.sep);
  const int sep = static_cast<int>(first_sep - sequence.ids.begin());
  if (config_.head == LongformerHead::kSequenceClassification) mark(0, 1);
  if (request_.task == Task::kQuestionAnswering) {
    if (first_sep == sequence.ids.end()) {
      return BadRequest(draft.field, absl::StrCat("no separator (id ", config_.sep,
                                                  ") ends the question; send one, or a "
                                                  "global_attention_mask"));
    }
    mark(0, sep);
  }
  if (request_.task == Task::kMultipleChoice) {
    if (first_sep == sequence.ids.end()) {
      return BadRequest(draft.field, absl::StrCat("no separator (id ", config_.sep,
                                                  ") ends the first text; send one, or a "
                                                  "global_attention_mask"));
    }
    mark(sep + 2, sequence.tokens());
  }
  return absl::OkStatus();
}

absl::Status Preparer::AddGlobals(const SequenceDraft& draft, LongformerSequence& sequence) const {
  const auto mark = [&](int t) {
    if (sequence.roles[t] == kLocalToken) sequence.roles[t] = kGlobalToken;
  };
  if (request_.global_positions && draft.tokens.global_mask) {
    return BadRequest("global_positions", "given together with a global attention mask; send one");
  }
  if (request_.global_positions) {
    for (const int32_t position : *request_.global_positions) {
      if (position < 0 || position >= static_cast<int>(draft.tokens.ids.size())) {
        return BadRequest("global_positions",
                          absl::StrCat(position, " is not in [0, ", draft.tokens.ids.size(),
                                       "), the document's tokens"));
      }
      if (position < sequence.tokens()) mark(position);
    }
  } else if (draft.tokens.global_mask) {
    for (int t = 0; t < sequence.tokens(); ++t) {
      if ((*draft.tokens.global_mask)[t] != 0) mark(t);
    }
  } else if (auto status = AddDefaultGlobals(draft, sequence); !status.ok()) {
    return status;
  }
  for (const std::string& token : request_.global_tokens) {
    const std::optional<int32_t> id = front_.tokenizer->TokenToId(token);
    if (!id) {
      return BadRequest("global_tokens",
                        absl::StrCat("\"", token.substr(0, 64), "\" is not in the vocabulary"));
    }
    for (int t = 0; t < sequence.tokens(); ++t) {
      if (sequence.ids[t] == *id) mark(t);
    }
  }
  return absl::OkStatus();
}

absl::Status Preparer::FindMasks(const SequenceDraft& draft, const LongformerSequence& sequence) {
  if (request_.task != Task::kFillMask) return absl::OkStatus();
  if (!item_->typed && !item_->Wants("mask_logits")) return absl::OkStatus();
  if (front_.tokenizer == nullptr || !front_.tokenizer->special().mask) {
    return BadRequest(draft.field,
                      "the model has no tokenizer that names a mask token; ask for "
                      "the output logits instead");
  }
  const int32_t mask = *front_.tokenizer->special().mask;
  for (int t = 0; t < sequence.tokens(); ++t) {
    if (sequence.ids[t] == mask && sequence.roles[t] != kMaskedToken) item_->masks.push_back(t);
  }
  if (!item_->masks.empty()) return absl::OkStatus();
  return BadRequest(draft.field, absl::StrCat("no mask token (\"",
                                              front_.tokenizer->IdToToken(mask).value_or("<mask>"),
                                              "\", id ", mask, ") in it"));
}

// The text's tokens. With ids: what follows the first separators, without the last one.
void Preparer::FindContext(const SequenceDraft& draft, const LongformerSequence& sequence) {
  if (request_.task != Task::kQuestionAnswering) return;
  int begin = 0, end = sequence.tokens();
  if (draft.encoding) {
    const std::vector<int8_t>& texts = draft.encoding->sequences;
    while (begin < end && texts[begin] != 1) ++begin;
    while (end > begin && texts[end - 1] != 1) --end;
  } else {
    while (begin < end && sequence.ids[begin] != config_.sep) ++begin;
    if (begin == end) begin = 0;  // A caller's own layout: everything may answer.
    while (begin < end && sequence.ids[begin] == config_.sep) ++begin;
    while (end > begin &&
           (sequence.roles[end - 1] == kMaskedToken || sequence.ids[end - 1] == config_.sep)) {
      --end;
    }
  }
  item_->context_begin = begin;
  item_->context_end = end;
}

void Preparer::ChooseWanted(LongformerSequence& sequence) const {
  const bool head_reads_all =
      request_.task == Task::kTokenClassification || request_.task == Task::kQuestionAnswering;
  const bool pooled = item_->Wants("embedding");
  const bool all = KeepsMaskedTail() || (pooled && item_->pooling == Pooling::kMean) ||
                   (head_reads_all && (item_->typed || item_->Wants("logits")));
  if (all) {
    sequence.wanted.resize(sequence.ids.size());
    std::iota(sequence.wanted.begin(), sequence.wanted.end(), 0);
    return;
  }
  const bool masks_only = request_.task == Task::kFillMask && !item_->masks.empty();
  if (masks_only) sequence.wanted = item_->masks;
  if (!masks_only || pooled) {
    if (sequence.wanted.empty() || sequence.wanted.front() != 0) {
      sequence.wanted.insert(sequence.wanted.begin(), 0);
    }
  }
}

absl::StatusOr<LongformerSequence> Preparer::Finish(const SequenceDraft& draft) {
  const TokenInput& tokens = draft.tokens;
  const std::vector<uint8_t>& mask = tokens.attention_mask;
  size_t length = tokens.ids.size();
  if (length == 0) return BadRequest(draft.field, "0 tokens; at least 1 is needed");
  if (auto status = CheckIds(draft.field, tokens); !status.ok()) return status;
  if (!mask.empty() && mask[0] == 0) {
    return BadRequest("attention_mask", "position 0 is masked; padding must stand on the right");
  }
  if (!KeepsMaskedTail()) {
    while (!mask.empty() && mask[length - 1] == 0) --length;
  }
  LongformerSequence sequence;
  const auto end = static_cast<ptrdiff_t>(length);
  sequence.ids.assign(tokens.ids.begin(), tokens.ids.begin() + end);
  if (!tokens.token_type_ids.empty()) {
    sequence.types.assign(tokens.token_type_ids.begin(), tokens.token_type_ids.begin() + end);
  }
  sequence.roles.assign(length, kLocalToken);
  for (size_t t = 0; t < length && !mask.empty(); ++t) {
    if (mask[t] == 0) sequence.roles[t] = kMaskedToken;
  }
  if (auto status = AddPositions(draft, sequence); !status.ok()) return status;
  if (auto status = AddGlobals(draft, sequence); !status.ok()) return status;
  if (auto status = FindMasks(draft, sequence); !status.ok()) return status;
  FindContext(draft, sequence);
  ChooseWanted(sequence);
  return sequence;
}

absl::StatusOr<std::unique_ptr<LongformerItem>> Preparer::Prepare() {
  const std::vector<Task> tasks = LongformerTasks(config_.head);
  if (std::find(tasks.begin(), tasks.end(), request_.task) == tasks.end()) {
    return absl::UnimplementedError(absl::StrCat("a ", config_.architecture, " has no task ",
                                                 std::string(TaskName(request_.task))));
  }
  if (auto status = ReadOptions(); !status.ok()) return status;
  absl::StatusOr<std::vector<SequenceDraft>> drafts = DraftSequences(front_, request_);
  if (!drafts.ok()) return drafts.status();
  ItemUsage usage;
  for (SequenceDraft& draft : *drafts) {
    absl::StatusOr<LongformerSequence> sequence = Finish(draft);
    if (!sequence.ok()) return sequence.status();
    usage.input_tokens += sequence->tokens();
    usage.truncated_tokens += draft.truncated;
    item_->sequences.push_back(*std::move(sequence));
  }
  item_->SetUsage(usage);
  item_->choices = request_.choices;
  if (item_->sequences.size() == 1) {
    item_->encoding = std::move(drafts->front().encoding);
    if (item_->typed && request_.text) item_->text = *request_.text;
  }
  return std::move(item_);
}

}  // namespace

std::vector<Task> LongformerTasks(LongformerHead head) {
  switch (head) {
    case LongformerHead::kNone:
      return {Task::kEmbedding};
    case LongformerHead::kSequenceClassification:
      return {Task::kTextClassification, Task::kTextPairClassification, Task::kEmbedding};
    case LongformerHead::kTokenClassification:
      return {Task::kTokenClassification, Task::kEmbedding};
    case LongformerHead::kQuestionAnswering:
      return {Task::kQuestionAnswering, Task::kEmbedding};
    case LongformerHead::kMaskedLm:
      return {Task::kFillMask, Task::kEmbedding};
    case LongformerHead::kMultipleChoice:
      return {Task::kMultipleChoice, Task::kEmbedding};
  }
  return {};
}

absl::StatusOr<std::unique_ptr<LongformerItem>> PrepareLongformer(const LongformerFrontEnd& front,
                                                                  const Request& request) {
  return Preparer(front, request).Prepare();
}

}  // namespace longview::models
