#include "models/encoder/prepare.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/span/band_planner.h"
#include "models/encoder/draft.h"
#include "models/encoder/sentence_wishes.h"
#include "models/status_macros.h"
#include "models/text/tokenizer_codec.h"

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

std::vector<std::string_view> TensorNames(const EncoderFacts& facts, Task task) {
  switch (task) {
    case Task::kTextPairClassification:
      // Two documents have no one vector.
      if (facts.pairs == PairForm::kSeparate) return {"logits"};
      return {"logits", "embedding", "last_hidden_state"};
    case Task::kEmbedding:
      return {"embedding", "last_hidden_state"};
    case Task::kMultiVector:
      return {"last_hidden_state"};
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
  Preparer(const EncoderFrontEnd& front, const Request& request)
      : front_(front), facts_(front.facts()), request_(request) {}

  absl::StatusOr<std::unique_ptr<EncoderItem>> Prepare();
  absl::StatusOr<EncoderSequence> PrepareOne(bool all_rows, ItemUsage& usage);

 private:
  absl::Status ReadOptions();
  absl::Status ReadPooling();
  absl::Status ChoosePooling(std::vector<PoolMode> modes);
  absl::Status TakeChunks(const EncoderSequence& sequence);
  absl::Status ReadDimensions();
  absl::Status CheckTask() const;
  absl::StatusOr<EncoderSequence> Finish(const SequenceDraft& draft);
  absl::Status CheckIds(const SequenceDraft& draft) const;
  absl::Status AddGlobals(const SequenceDraft& draft, EncoderSequence& sequence) const;
  absl::Status FindMasks(const SequenceDraft& draft, const EncoderSequence& sequence);
  void FindContext(const SequenceDraft& draft, const EncoderSequence& sequence);
  absl::Status RefuseGlobals(const SequenceDraft& draft) const;
  absl::Status MarkMasked(const SequenceDraft& draft, EncoderSequence& sequence) const;
  RowsRead RowsOfHead() const;
  void ChooseWanted(EncoderSequence& sequence) const;
  bool KeepsMaskedTail() const;

  const EncoderFrontEnd& front_;
  const EncoderFacts& facts_;
  const Request& request_;
  std::string prompt_;
  int stripped_ = 0;  // Leading tokens of the last draft that are not in its sequence.
  std::unique_ptr<EncoderItem> item_ = std::make_unique<EncoderItem>();
};

absl::Status Preparer::ReadPooling() {
  item_->pooling = front_.pooling;
  if (request_.pooling == "pooler") {
    item_->pooling = Pooling::kPooler;
  } else if (request_.pooling == "none") {
    if (item_->Wants("embedding")) {
      return BadRequest("pooling", "\"none\" leaves no embedding; ask for last_hidden_state");
    }
  } else {
    ASSIGN_OR_RETURN(std::vector<PoolMode> modes, PoolModesOf(front_, request_));
    RETURN_IF_ERROR(ChoosePooling(std::move(modes)));
  }
  if (item_->pooling == Pooling::kPooler && !facts_.has_pooler) {
    return BadRequest("pooling", "\"pooler\" is not in this checkpoint");
  }
  if (item_->pooling == Pooling::kCls && !facts_.cls_reads) {
    return BadRequest("pooling", "\"cls\": this model has no class token; use mean");
  }
  return absl::OkStatus();
}

// By the family where it is one vector of the rows that the family knows, else by the pipeline.
absl::Status Preparer::ChoosePooling(std::vector<PoolMode> modes) {
  const bool chunks = request_.token_chunks.has_value();
  if (chunks && modes.empty()) modes.push_back(PoolMode::kMean);
  if (modes.empty()) return absl::OkStatus();
  const SentenceModules* modules = front_.modules();
  SentencePooling pooling;
  if (modules != nullptr && !modules->include_prompt && !prompt_.empty()) {
    ASSIGN_OR_RETURN(const int skipped, PromptTokens(front_, prompt_));
    pooling.skipped = skipped;
  }
  const bool dense =
      modules != nullptr &&
      std::any_of(modules->steps.begin(), modules->steps.end(), [](const SentenceStep& step) {
        return step.tokens || step.kind == SentenceStep::Kind::kDense;
      });
  const bool known =
      modes.size() == 1 && (modes[0] == PoolMode::kCls || modes[0] == PoolMode::kMean);
  if (known) item_->pooling = modes[0] == PoolMode::kCls ? Pooling::kCls : Pooling::kMean;
  if (known && !dense && !chunks && pooling.skipped == 0) return absl::OkStatus();
  pooling.modes = std::move(modes);
  item_->sentence = std::move(pooling);
  return absl::OkStatus();
}

absl::Status Preparer::ReadDimensions() {
  const bool embeds = request_.task == Task::kEmbedding || item_->Wants("embedding");
  if (!embeds) {
    if (!request_.dimensions) return absl::OkStatus();
    return BadRequest("dimensions", "means nothing without an embedding");
  }
  const SentenceModules* modules = front_.modules();
  int64_t width = facts_.width;
  if (item_->sentence) {
    SentenceModules own = modules != nullptr ? *modules : SentenceModules();
    own.pooling = item_->sentence->modes;
    width = own.width_of_answers(width);
  }
  if (!request_.dimensions) {
    if (front_.sentence != nullptr) {
      item_->dimensions = std::min(front_.sentence->dimensions.value_or(width), width);
    }
    return absl::OkStatus();
  }
  if (*request_.dimensions < 1 || *request_.dimensions > width) {
    return BadRequest("dimensions",
                      absl::StrCat(*request_.dimensions, " is not in [1, ", width, "]"));
  }
  item_->dimensions = *request_.dimensions;
  return absl::OkStatus();
}

absl::Status Preparer::ReadOptions() {
  item_->task = request_.task;
  item_->tensors = request_.tensors;
  item_->typed = request_.typed;
  item_->top_k = request_.top_k;
  const std::vector<std::string_view> names = TensorNames(facts_, request_.task);
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
  if (request_.wants_chunks()) return absl::InternalError("chunks that were not planned");
  if (auto status = ReadPooling(); !status.ok()) return status;
  item_->normalize = request_.normalize.value_or(front_.normalize);
  if (auto status = ReadDimensions(); !status.ok()) return status;
  if (request_.task == Task::kRerank && front_.sentence != nullptr) {
    item_->activation = *front_.sentence->score_activation;
  }
  if (request_.top_k < 0 || request_.max_answer_tokens < 0) {
    return BadRequest(request_.top_k < 0 ? "top_k" : "max_answer_tokens", "must not be negative");
  }
  if (request_.task == Task::kFillMask && item_->top_k == 0) item_->top_k = kDefaultMaskCandidates;
  if (request_.task == Task::kQuestionAnswering && item_->top_k == 0) item_->top_k = 1;
  if (request_.task == Task::kFillMask && item_->top_k > facts_.vocab) {
    return BadRequest("top_k", absl::StrCat(item_->top_k, " is more than the vocabulary's ",
                                            facts_.vocab, " tokens"));
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

absl::Status Preparer::CheckIds(const SequenceDraft& draft) const {
  const TokenInput& tokens = draft.tokens;
  const auto check = [&](const std::string& name, std::span<const int32_t> values, int limit) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] >= 0 && values[i] < limit) continue;
      return BadRequest(name,
                        absl::StrCat(values[i], " at position ", i, " is not in [0, ", limit, ")"));
    }
    return absl::OkStatus();
  };
  if (!draft.encoding) {
    if (auto status = check(draft.field, tokens.ids, facts_.vocab); !status.ok()) return status;
  } else if (auto problem = ProblemOfRows(tokens.ids, facts_.vocab, front_.tokenizer)) {
    return BadRequest(draft.field, *problem + "; leave it out of the text");
  }
  if (facts_.types == 0 && !tokens.token_type_ids.empty()) {
    return BadRequest("token_type_ids", "this model has no token types");
  }
  return check("token_type_ids", tokens.token_type_ids, facts_.types);
}

absl::Status Preparer::RefuseGlobals(const SequenceDraft& draft) const {
  const char* field = nullptr;
  if (request_.global_positions) field = "global_positions";
  if (draft.tokens.global_mask) field = "global_attention_mask";
  if (!request_.global_tokens.empty()) field = "global_tokens";
  if (field == nullptr) return absl::OkStatus();
  return BadRequest(field, absl::StrCat("a ", facts_.architecture, " has no global attention"));
}

absl::Status Preparer::AddGlobals(const SequenceDraft& draft, EncoderSequence& sequence) const {
  if (!facts_.global_attention) return RefuseGlobals(draft);
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
  } else if (auto status = front_.rules->MarkDefaultGlobals(draft.field, request_.task, sequence);
             !status.ok()) {
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

absl::Status Preparer::FindMasks(const SequenceDraft& draft, const EncoderSequence& sequence) {
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
void Preparer::FindContext(const SequenceDraft& draft, const EncoderSequence& sequence) {
  if (request_.task != Task::kQuestionAnswering) return;
  int begin = 0, end = sequence.tokens();
  if (draft.encoding) {
    const std::vector<int8_t>& texts = draft.encoding->sequences;
    while (begin < end && texts[begin] != 1) ++begin;
    while (end > begin && texts[end - 1] != 1) --end;
  } else {
    while (begin < end && sequence.ids[begin] != facts_.sep) ++begin;
    if (begin == end) begin = 0;  // A caller's own layout: everything may answer.
    while (begin < end && sequence.ids[begin] == facts_.sep) ++begin;
    while (end > begin &&
           (sequence.roles[end - 1] == kMaskedToken || sequence.ids[end - 1] == facts_.sep)) {
      --end;
    }
  }
  item_->context_begin = begin;
  item_->context_end = end;
}

RowsRead Preparer::RowsOfHead() const {
  const bool per_token =
      request_.task == Task::kTokenClassification || request_.task == Task::kQuestionAnswering;
  if (per_token && (item_->typed || item_->Wants("logits"))) return RowsRead::kAll;
  if (KeepsMaskedTail()) return RowsRead::kAll;
  RowsRead reads = request_.task == Task::kEmbedding ? RowsRead::kNone : facts_.head_reads;
  if (item_->Wants("embedding")) {
    RowsRead pooled = RowsRead::kFirst;
    if (item_->sentence) return RowsRead::kAll;
    if (item_->pooling == Pooling::kMean) pooled = RowsRead::kAll;
    if (item_->pooling == Pooling::kPooler) pooled = facts_.pooler_reads;
    if (item_->pooling == Pooling::kCls) pooled = *facts_.cls_reads;
    reads = std::max(reads, pooled);
  }
  return facts_.head_reads == RowsRead::kNone ? reads : std::max(reads, RowsRead::kFirst);
}

void Preparer::ChooseWanted(EncoderSequence& sequence) const {
  const RowsRead reads = RowsOfHead();
  if (reads == RowsRead::kAll) {
    sequence.wanted.resize(sequence.ids.size());
    std::iota(sequence.wanted.begin(), sequence.wanted.end(), 0);
    return;
  }
  const bool masks_only = request_.task == Task::kFillMask && !item_->masks.empty();
  if (masks_only) sequence.wanted = item_->masks;
  if (reads == RowsRead::kFirst && (!masks_only || item_->Wants("embedding"))) {
    if (sequence.wanted.empty() || sequence.wanted.front() != 0) {
      sequence.wanted.insert(sequence.wanted.begin(), 0);
    }
  }
}

// Roles of the draft's tokens, without padding that nobody reads.
absl::Status Preparer::MarkMasked(const SequenceDraft& draft, EncoderSequence& sequence) const {
  const TokenInput& tokens = draft.tokens;
  const std::vector<uint8_t>& mask = tokens.attention_mask;
  sequence.roles.assign(tokens.ids.size(), kLocalToken);
  for (size_t t = 0; t < tokens.ids.size(); ++t) {
    const bool padding = facts_.pad_masks && tokens.ids[t] == facts_.pad;
    const bool masked = padding || (!mask.empty() && mask[t] == 0);
    if (masked) sequence.roles[t] = kMaskedToken;
  }
  size_t length = tokens.ids.size();
  while (length > 0 && sequence.roles[length - 1] == kMaskedToken) --length;
  if (facts_.pad_masks && length == 0) {
    return BadRequest(draft.field, absl::StrCat("every token is masked, by id ", facts_.pad,
                                                " or by attention_mask"));
  }
  if (!facts_.pad_masks && sequence.roles[0] == kMaskedToken) {
    return BadRequest("attention_mask", "position 0 is masked; padding must stand on the right");
  }
  if (!KeepsMaskedTail()) sequence.roles.resize(length);
  sequence.padding = static_cast<int>(sequence.roles.size() - length);
  return absl::OkStatus();
}

absl::StatusOr<EncoderSequence> Preparer::Finish(const SequenceDraft& draft) {
  const TokenInput& tokens = draft.tokens;
  if (tokens.ids.empty()) return BadRequest(draft.field, "0 tokens; at least 1 is needed");
  if (auto status = CheckIds(draft); !status.ok()) return status;
  EncoderSequence sequence;
  if (auto status = MarkMasked(draft, sequence); !status.ok()) return status;
  const auto end = static_cast<ptrdiff_t>(sequence.roles.size());
  sequence.ids.assign(tokens.ids.begin(), tokens.ids.begin() + end);
  if (!tokens.token_type_ids.empty()) {
    sequence.types.assign(tokens.token_type_ids.begin(), tokens.token_type_ids.begin() + end);
  }
  if (auto status = front_.rules->Place(draft.field, sequence); !status.ok()) return status;
  stripped_ = static_cast<int>(end) - sequence.tokens();
  if (auto status = AddGlobals(draft, sequence); !status.ok()) return status;
  if (auto status = FindMasks(draft, sequence); !status.ok()) return status;
  FindContext(draft, sequence);
  ChooseWanted(sequence);
  return sequence;
}

absl::Status Preparer::TakeChunks(const EncoderSequence& sequence) {
  if (!request_.token_chunks) return absl::OkStatus();
  SentencePooling& pooling = *item_->sentence;
  pooling.tokens = request_.token_chunks->positions;
  pooling.chunks = request_.token_chunks->chunks;
  for (int32_t& position : pooling.tokens) {
    position -= stripped_;
    if (position >= 0 && position < sequence.tokens()) continue;
    return absl::InternalError("a chunk's token is not in its sequence");
  }
  return absl::OkStatus();
}

absl::Status Preparer::CheckTask() const {
  const std::vector<Task> tasks = TasksOf(facts_, front_.sentence);
  if (std::find(tasks.begin(), tasks.end(), request_.task) != tasks.end()) return absl::OkStatus();
  if (request_.task == Task::kEmbedding && front_.sentence != nullptr &&
      !front_.sentence->modules.ok()) {
    return absl::UnimplementedError(
        absl::StrCat("no embeddings: ", front_.sentence->modules.status().message()));
  }
  return absl::UnimplementedError(absl::StrCat("a ", facts_.architecture, " has no task ",
                                               std::string(TaskName(request_.task))));
}

absl::StatusOr<std::unique_ptr<EncoderItem>> Preparer::Prepare() {
  if (auto status = CheckTask(); !status.ok()) return status;
  ASSIGN_OR_RETURN(std::string prompt, ResolvePrompt(front_.sentence, request_));
  prompt_ = std::move(prompt);
  if (auto status = ReadOptions(); !status.ok()) return status;
  ASSIGN_OR_RETURN(std::vector<SequenceDraft> drafts, DraftSequences(front_, request_, prompt_));
  ItemUsage usage;
  for (SequenceDraft& draft : drafts) {
    ASSIGN_OR_RETURN(EncoderSequence sequence, Finish(draft));
    usage.input_tokens += sequence.tokens();
    usage.truncated_tokens += draft.truncated;
    item_->sequences.push_back(std::move(sequence));
  }
  if (auto status = TakeChunks(item_->sequences.front()); !status.ok()) return status;
  if (item_->sentence) {
    item_->sentence->skipped = std::max(item_->sentence->skipped - stripped_, 0);
  }
  item_->SetUsage(usage);
  item_->choices = request_.choices;
  if (item_->sequences.size() == 1) {
    item_->encoding = std::move(drafts.front().encoding);
    if (item_->typed && request_.text) item_->text = *request_.text;
  }
  return std::move(item_);
}

absl::StatusOr<EncoderSequence> Preparer::PrepareOne(bool all_rows, ItemUsage& usage) {
  item_->task = request_.task;
  if (all_rows) item_->tensors = {"last_hidden_state"};
  item_->typed = false;
  ASSIGN_OR_RETURN(std::vector<SequenceDraft> drafts, DraftSequences(front_, request_));
  absl::StatusOr<EncoderSequence> sequence = Finish(drafts.front());
  if (!sequence.ok()) return sequence;
  usage.input_tokens += sequence->tokens();
  usage.truncated_tokens += drafts.front().truncated;
  return sequence;
}

}  // namespace

absl::StatusOr<EncoderSequence> PrepareDocument(const EncoderFrontEnd& front,
                                                const Request& request, bool all_rows,
                                                ItemUsage& usage) {
  return Preparer(front, request).PrepareOne(all_rows, usage);
}

absl::StatusOr<std::unique_ptr<EncoderItem>> PrepareEncoderItem(const EncoderFrontEnd& front,
                                                                const Request& request) {
  return Preparer(front, request).Prepare();
}

}  // namespace longview::models
