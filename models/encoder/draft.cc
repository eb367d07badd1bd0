#include "models/encoder/draft.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "models/text/bounded_codec.h"
#include "models/text/tokenizer.h"

namespace longview::models {
namespace {

// The most special tokens of a template: with a lower limit truncation would be refused.
constexpr int kMostSpecials = 16;

// Each is read with the whole text.
constexpr size_t kMostChoices = 256;

// Without those of the template.
absl::StatusOr<int> TextTokensOfPrompt(const Tokenizer& tokenizer, const std::string& prompt) {
  const absl::StatusOr<EncodeResult> alone =
      tokenizer.Encode(prompt, {.add_special_tokens = false});
  if (!alone.ok()) return BadRequest("prompt", std::string(alone.status().message()));
  return static_cast<int>(alone->encoding.ids.size());
}

class Drafter {
 public:
  Drafter(const EncoderFrontEnd& front, const Request& request, const std::string& prompt)
      : front_(front),
        request_(request),
        prompt_(prompt),
        cuts_(request.truncate_tokens || request.truncate.value_or(front.truncate)),
        limit_(request.truncate_tokens.value_or(-1) < 0 ? front.max_tokens
                                                        : *request.truncate_tokens) {}

  absl::StatusOr<std::vector<SequenceDraft>> Draft() {
    RETURN_IF_ERROR(CheckFields());
    if (request_.task == Task::kMultipleChoice) return DraftChoices();
    if (front_.facts().pairs == PairForm::kSeparate &&
        request_.task == Task::kTextPairClassification) {
      return DraftDocuments();
    }
    ASSIGN_OR_RETURN(SequenceDraft draft, request_.text ? DraftText() : DraftTokens());
    std::vector<SequenceDraft> drafts;
    drafts.push_back(std::move(draft));
    return drafts;
  }

 private:
  absl::Status CheckFields() const;
  absl::Status CheckTruncation() const;
  absl::Status CheckPairTokens() const;
  absl::StatusOr<std::vector<SequenceDraft>> DraftChoices();
  absl::StatusOr<std::vector<SequenceDraft>> DraftDocuments();
  absl::StatusOr<SequenceDraft> DraftText();
  absl::StatusOr<SequenceDraft> DraftCutPair(const EncodeOptions& options) const;
  absl::StatusOr<SequenceDraft> DraftTokens();
  absl::StatusOr<SequenceDraft> DraftOneDocument(const std::string& field,
                                                 const TokenInput& tokens) const;
  absl::StatusOr<SequenceDraft> Encode(const std::string& field, const std::string& first,
                                       const std::string* second, EncodeOptions options) const;
  absl::StatusOr<SequenceDraft> EncodeBytes(const std::string& field,
                                            const std::string& text) const;
  absl::StatusOr<SequenceDraft> CheckTokens(const std::string& field,
                                            const TokenInput& tokens) const;
  // `counted` is false if there are more tokens yet.
  absl::Status CheckLength(const std::string& field, int64_t tokens, bool counted = true) const;
  // Tokens that the limit does not count have one of as many of their own.
  absl::Status CheckPadding(const std::string& field, const TokenInput& tokens) const;
  // Refuses a very long text by its beginning.
  absl::Status CheckBeginning(const std::string& field, const std::string& text,
                              const EncodeOptions& options) const;
  // Whether the limit counts token t.
  bool Counts(const TokenInput& tokens, int64_t t) const;
  int64_t Counted(const TokenInput& tokens) const;
  void CutTokens(SequenceDraft& draft, int64_t excess) const;

  bool CutsLeft() const {
    if (!request_.truncation_direction.empty()) return request_.truncation_direction == "left";
    return front_.tokenizer != nullptr && front_.tokenizer->cuts_left();
  }
  // First token that may be cut: behind a leading special token.
  size_t FirstCut(const TokenInput& tokens) const;

  const EncoderFrontEnd& front_;
  const Request& request_;
  const std::string& prompt_;
  const bool cuts_;  // Whether a sequence that is too long is cut.
  const int limit_;  // Tokens of a sequence, at most.
};

absl::Status Drafter::CheckTruncation() const {
  if (!request_.truncate_tokens) return absl::OkStatus();
  const std::string field = "truncate_prompt_tokens";
  const int tokens = *request_.truncate_tokens;
  if (request_.truncate == false) return BadRequest(field, "does not go with truncate false");
  if (tokens == -1) return absl::OkStatus();
  if (tokens < 1) return BadRequest(field, absl::StrCat(tokens, " is neither -1 nor above 0"));
  if (tokens > front_.max_tokens) {
    return BadRequest(field,
                      absl::StrCat(tokens, " is over the model's limit of ", front_.max_tokens));
  }
  if (front_.tokenizer == nullptr || !request_.text) return absl::OkStatus();
  ASSIGN_OR_RETURN(const EncodeResult empty, front_.tokenizer->Encode("", {}));
  const int64_t specials = std::ssize(empty.encoding.ids) + (request_.text_pair ? 2 : 0);
  if (tokens > specials) return absl::OkStatus();
  return BadRequest(field, absl::StrCat(tokens, " leaves no room for text beside the model's ",
                                        specials, " special tokens"));
}

absl::Status Drafter::CheckPairTokens() const {
  if (!request_.pair_tokens) return absl::OkStatus();
  const std::string field = "max_tokens_per_doc";
  if (*request_.pair_tokens < 1) {
    return BadRequest(field, absl::StrCat(*request_.pair_tokens, " is below 1"));
  }
  if (request_.task != Task::kRerank || !request_.text_pair || front_.tokenizer == nullptr) {
    return BadRequest(field, "goes with texts that are ranked");
  }
  return absl::OkStatus();
}

absl::Status Drafter::CheckFields() const {
  RETURN_IF_ERROR(CheckTruncation());
  RETURN_IF_ERROR(CheckPairTokens());
  const bool choice = request_.task == Task::kMultipleChoice;
  const bool question = request_.task == Task::kQuestionAnswering;
  const PairForm form = front_.facts().pairs;
  const bool separate =
      form == PairForm::kSeparate && request_.task == Task::kTextPairClassification;
  const bool pair =
      separate || (form == PairForm::kJoined &&
                   (request_.task == Task::kTextPairClassification ||
                    request_.task == Task::kTextClassification || request_.task == Task::kRerank ||
                    request_.task == Task::kEmbedding));
  const std::string task(TaskName(request_.task));
  if (separate && !request_.text_pair && !request_.tokens_pair) {
    return BadRequest(request_.tokens ? "token_ids_pair" : "text_pair",
                      "missing; this task compares two documents");
  }
  if (request_.task == Task::kRerank && !request_.text_pair && !request_.tokens_pair) {
    return BadRequest(request_.tokens ? "token_ids_pair" : "text_pair",
                      "missing; this task compares a query and a document");
  }
  if (!request_.truncation_direction.empty() && request_.truncation_direction != "left" &&
      request_.truncation_direction != "right") {
    return BadRequest("truncation_direction",
                      absl::StrCat("\"", request_.truncation_direction.substr(0, 64),
                                   "\" is not one of right, left"));
  }
  if (!question && request_.question) return BadRequest("question", "means nothing to " + task);
  if (!pair && (request_.text_pair || request_.tokens_pair)) {
    return BadRequest(request_.text_pair ? "text_pair" : "token_ids_pair",
                      "means nothing to " + task);
  }
  if (!choice && (!request_.choices.empty() || !request_.choice_tokens.empty())) {
    return BadRequest("choices", "means nothing to " + task);
  }
  if (request_.text && request_.tokens) {
    return BadRequest("text", "given together with token ids; send one");
  }
  if (request_.text && request_.tokens_pair) {
    return BadRequest("token_ids_pair", "goes with token ids, not with text");
  }
  if (request_.tokens && (request_.text_pair || request_.question)) {
    return BadRequest(request_.question ? "question" : "text_pair",
                      "goes with text, not with token ids");
  }
  if (question && request_.text && !request_.question) {
    return BadRequest("question", "missing; it is needed with text");
  }
  const bool has_text = request_.text || !request_.choices.empty();
  if (has_text && front_.tokenizer == nullptr && front_.codec == nullptr) {
    return BadRequest("text", "the model has no tokenizer; send token ids");
  }
  if (!request_.global_tokens.empty() && (!has_text || front_.tokenizer == nullptr)) {
    return BadRequest("global_tokens", "goes with text; mark token ids in global_attention_mask");
  }
  if (choice ? request_.choices.empty() && request_.choice_tokens.empty()
             : !request_.text && !request_.tokens) {
    return BadRequest(choice ? "choices" : "text", "text or token ids are needed");
  }
  return absl::OkStatus();
}

absl::Status Drafter::CheckLength(const std::string& field, int64_t tokens, bool counted) const {
  if (tokens <= limit_) return absl::OkStatus();
  return BadRequest(field, absl::StrCat(counted ? "" : "at least ", tokens,
                                        " tokens are more than the model's limit of ", limit_,
                                        "; \"truncate\" cuts what does not fit"));
}

absl::Status Drafter::CheckPadding(const std::string& field, const TokenInput& tokens) const {
  if (std::ssize(tokens.ids) - Counted(tokens) <= limit_) return absl::OkStatus();
  return BadRequest(field, absl::StrCat("more than ", limit_, " tokens are padding, of id ",
                                        front_.facts().pad, " or masked"));
}

absl::Status Drafter::CheckBeginning(const std::string& field, const std::string& text,
                                     const EncodeOptions& options) const {
  const std::string_view beginning = CountedBeginning(text);
  if (beginning.size() == text.size()) return absl::OkStatus();
  const absl::StatusOr<EncodeResult> result = front_.tokenizer->Encode(beginning, options);
  if (!result.ok()) return BadRequest(field, std::string(result.status().message()));
  const int64_t tokens = std::ssize(result->encoding.ids) + result->tokens_cut;
  if (tokens / 2 <= limit_) return absl::OkStatus();
  return CheckLength(field, tokens, /*counted=*/false);
}

absl::StatusOr<SequenceDraft> Drafter::Encode(const std::string& field, const std::string& first,
                                              const std::string* second,
                                              EncodeOptions options) const {
  if (front_.tokenizer == nullptr) return EncodeBytes(field, first);
  // Also where too long is an error: what is cut is counted, and need not be kept. By then the
  // longer text gives way, so that no text is too long to be counted.
  options.max_length = cuts_ ? limit_ : std::max(limit_, kMostSpecials);
  options.cut_left = CutsLeft();
  const bool behind_prompt = cuts_ && options.cut_left && !prompt_.empty();
  if (behind_prompt) {
    ASSIGN_OR_RETURN(const int kept, TextTokensOfPrompt(*front_.tokenizer, prompt_));
    options.keep_first = kept;
    options.strategy = TruncationStrategy::kOnlyFirst;
  }
  if (!cuts_) {
    options.strategy = TruncationStrategy::kLongestFirst;
    for (const std::string* text : {&first, second}) {
      if (text == nullptr) continue;
      if (auto status = CheckBeginning(field, *text, options); !status.ok()) return status;
    }
  }
  absl::StatusOr<EncodeResult> result = second != nullptr
                                            ? front_.tokenizer->EncodePair(first, *second, options)
                                            : front_.tokenizer->Encode(first, options);
  if (!result.ok()) return BadRequest(field, std::string(result.status().message()));
  const std::vector<int8_t>& texts = result->encoding.sequences;
  if (result->tokens_cut > 0 && std::count(texts.begin(), texts.end(), 0) < options.keep_first) {
    return BadRequest("prompt", absl::StrCat("its ", options.keep_first,
                                             " tokens leave no room for the text within ", limit_));
  }
  if (!cuts_) {
    const int64_t tokens = std::ssize(result->encoding.ids) + result->tokens_cut;
    RETURN_IF_ERROR(CheckLength(field, tokens, result->counted));
  }
  SequenceDraft draft;
  draft.field = field;
  draft.truncated = result->tokens_cut;
  draft.encoding = std::move(result->encoding);
  draft.tokens.ids = draft.encoding->ids;
  RETURN_IF_ERROR(CheckLength(field, draft.tokens.ids.size()));
  if (ReadsTypes(front_)) draft.tokens.token_type_ids = draft.encoding->type_ids;
  return draft;
}

absl::StatusOr<SequenceDraft> Drafter::EncodeBytes(const std::string& field,
                                                   const std::string& text) const {
  const EncoderFacts& facts = front_.facts();
  if (CutsLeft()) {
    return BadRequest("truncation_direction", "\"left\" means nothing to a tokenizer of bytes");
  }
  TextBounds bounds = {limit_, cuts_};
  if (facts.masked_take_no_position) bounds.uncounted = facts.pad;
  absl::StatusOr<TextTokens> encoded = EncodeFirst(*front_.codec, text, bounds);
  if (!encoded.ok()) return BadRequest(field, std::string(encoded.status().message()));
  const int64_t excess = encoded->tokens - bounds.keep;
  if (excess > 0 && !cuts_) {
    return CheckLength(field, encoded->tokens, encoded->counted);
  }
  TokenInput tokens;
  tokens.ids = std::move(encoded->ids);
  // A final separator stays, as CutTokens has it.
  if (excess > 0 && facts.sep && encoded->last == facts.sep) {
    while (tokens.ids.back() == bounds.uncounted) tokens.ids.pop_back();
    tokens.ids.back() = *facts.sep;
  }
  absl::StatusOr<SequenceDraft> draft = DraftOneDocument(field, tokens);
  if (draft.ok()) draft->truncated += static_cast<int>(std::max<int64_t>(excess, 0));
  return draft;
}

absl::StatusOr<SequenceDraft> Drafter::DraftText() {
  EncodeOptions options;
  if (request_.task == Task::kQuestionAnswering) {
    // The separator that ends the question decides what is global: text may not forge it.
    options.match_special_tokens = false;
    options.strategy = TruncationStrategy::kOnlySecond;
    return Encode("text", *request_.question, &*request_.text, options);
  }
  options.shared = request_.shared_text.get();
  const std::string* pair = request_.text_pair ? &*request_.text_pair : nullptr;
  // HuggingFace's tokenizers take an empty second text for none; a document that is ranked is one.
  if (pair != nullptr && pair->empty() && request_.task != Task::kRerank) pair = nullptr;
  if (request_.pair_tokens) return DraftCutPair(options);
  if (prompt_.empty()) return Encode("text", *request_.text, pair, options);
  return Encode("text", prompt_ + *request_.text, pair, options);
}

// The second text has no more than its own number of tokens.
absl::StatusOr<SequenceDraft> Drafter::DraftCutPair(const EncodeOptions& options) const {
  const absl::StatusOr<TextCut> cut =
      CutText(*front_.tokenizer, *request_.text_pair, *request_.pair_tokens, CutsLeft());
  if (!cut.ok()) return BadRequest("text_pair", std::string(cut.status().message()));
  const std::string kept(cut->kept);
  absl::StatusOr<SequenceDraft> draft = Encode("text", *request_.text, &kept, options);
  if (draft.ok()) draft->truncated += cut->tokens_cut;
  return draft;
}

absl::StatusOr<std::vector<SequenceDraft>> Drafter::DraftChoices() {
  std::vector<SequenceDraft> drafts;
  const bool texts = !request_.choices.empty();
  if (texts && !request_.choice_tokens.empty()) {
    return BadRequest("choices", "given together with token ids; send one");
  }
  if (texts && !request_.text) return BadRequest("text", "missing; choices need it");
  const size_t count = texts ? request_.choices.size() : request_.choice_tokens.size();
  if (count > kMostChoices) {
    return BadRequest(texts ? "choices" : "input_ids",
                      absl::StrCat(count, " choices, the limit is ", kMostChoices));
  }
  for (size_t i = 0; i < count; ++i) {
    const std::string field = absl::StrCat(texts ? "choices[" : "input_ids[", i, "]");
    ASSIGN_OR_RETURN(SequenceDraft draft,
                     texts ? Encode(field, *request_.text, &request_.choices[i], {})
                           : CheckTokens(field, request_.choice_tokens[i]));
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

absl::StatusOr<SequenceDraft> Drafter::CheckTokens(const std::string& field,
                                                   const TokenInput& tokens) const {
  const size_t count = tokens.ids.size();
  const auto check = [&](const char* name, size_t size) {
    return size == 0 || size == count
               ? absl::OkStatus()
               : BadRequest(name, absl::StrCat(size, " values for ", count, " token ids"));
  };
  if (auto status = check("attention_mask", tokens.attention_mask.size()); !status.ok()) {
    return status;
  }
  if (auto status = check("token_type_ids", tokens.token_type_ids.size()); !status.ok()) {
    return status;
  }
  if (tokens.global_mask && tokens.global_mask->size() != count) {
    return BadRequest("global_attention_mask", absl::StrCat(tokens.global_mask->size(),
                                                            " values for ", count, " token ids"));
  }
  SequenceDraft draft;
  draft.field = field;
  draft.tokens = tokens;
  return draft;
}

bool Drafter::Counts(const TokenInput& tokens, int64_t t) const {
  const auto at = static_cast<size_t>(t);
  if (!front_.facts().masked_take_no_position) return true;
  return tokens.ids[at] != front_.facts().pad &&
         (tokens.attention_mask.empty() || tokens.attention_mask[at] != 0);
}

int64_t Drafter::Counted(const TokenInput& tokens) const {
  int64_t counted = 0;
  for (int64_t t = 0; t < std::ssize(tokens.ids); ++t) counted += Counts(tokens, t) ? 1 : 0;
  return counted;
}

size_t Drafter::FirstCut(const TokenInput& tokens) const {
  if (front_.tokenizer == nullptr || tokens.ids.empty()) return 0;
  const SpecialIds& special = front_.tokenizer->special();
  return tokens.ids[0] == special.cls || tokens.ids[0] == special.bos ? 1 : 0;
}

// Takes `excess` tokens that count from the end, but leaves a final separator in place. What does
// not count goes along. On the left a leading special token stays.
void Drafter::CutTokens(SequenceDraft& draft, int64_t excess) const {
  TokenInput& tokens = draft.tokens;
  if (request_.truncation_direction == "left") {
    const auto from = static_cast<ptrdiff_t>(FirstCut(tokens));
    ptrdiff_t to = from;
    for (int64_t left = excess; left > 0; ++to) left -= Counts(tokens, to) ? 1 : 0;
    const auto cut = [&](auto& values) {
      if (!values.empty()) values.erase(values.begin() + from, values.begin() + to);
    };
    cut(tokens.ids);
    cut(tokens.attention_mask);
    cut(tokens.token_type_ids);
    if (tokens.global_mask) cut(*tokens.global_mask);
    draft.truncated += static_cast<int>(excess);
    return;
  }
  int64_t end = std::ssize(tokens.ids);
  while (end > 0 && !Counts(tokens, end - 1)) --end;
  const bool keep_last = end > 0 && tokens.ids[static_cast<size_t>(end - 1)] == front_.facts().sep;
  const int64_t to = keep_last ? end - 1 : end;
  int64_t from = to;
  for (int64_t left = excess; left > 0; left -= Counts(tokens, from) ? 1 : 0) --from;
  const auto cut = [&](auto& values) {
    if (values.empty()) return;
    values.erase(values.begin() + end, values.end());
    values.erase(values.begin() + from, values.begin() + to);
  };
  cut(tokens.ids);
  cut(tokens.attention_mask);
  cut(tokens.token_type_ids);
  if (tokens.global_mask) cut(*tokens.global_mask);
  draft.truncated += static_cast<int>(excess);
}

absl::StatusOr<SequenceDraft> Drafter::DraftOneDocument(const std::string& field,
                                                        const TokenInput& tokens) const {
  absl::StatusOr<SequenceDraft> draft = CheckTokens(field, tokens);
  if (!draft.ok()) return draft;
  const int64_t excess = Counted(draft->tokens) - limit_;
  if (cuts_ && excess > 0) CutTokens(*draft, excess);
  if (auto status = CheckLength(field, Counted(draft->tokens)); !status.ok()) return status;
  if (auto status = CheckPadding(field, draft->tokens); !status.ok()) return status;
  return draft;
}

// Two documents, each with the whole limit to itself.
absl::StatusOr<std::vector<SequenceDraft>> Drafter::DraftDocuments() {
  std::vector<SequenceDraft> drafts;
  for (const bool second : {false, true}) {
    const std::string field =
        std::string(request_.text ? "text" : "token_ids") + (second ? "_pair" : "");
    ASSIGN_OR_RETURN(
        SequenceDraft draft,
        request_.text ? Encode(field, second ? *request_.text_pair : *request_.text, nullptr, {})
                      : DraftOneDocument(field, second ? *request_.tokens_pair : *request_.tokens));
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

// The longer of a pair gives way until both are of a length, then both alike.
absl::StatusOr<SequenceDraft> Drafter::DraftTokens() {
  if (!request_.tokens_pair) return DraftOneDocument("token_ids", *request_.tokens);
  absl::StatusOr<SequenceDraft> draft = CheckTokens("token_ids", *request_.tokens);
  if (!draft.ok()) return draft;
  absl::StatusOr<SequenceDraft> pair = CheckTokens("token_ids_pair", *request_.tokens_pair);
  if (!pair.ok()) return pair;
  TokenInput& first = draft->tokens;
  TokenInput& second = pair->tokens;
  const int64_t excess = Counted(first) + Counted(second) - limit_;
  if (cuts_ && excess > 0) {
    const int64_t a = Counted(first), b = Counted(second);
    int64_t from_longer = std::min(excess, std::max(a, b) - std::min(a, b));
    from_longer += (excess - from_longer + 1) / 2;
    const int64_t from_shorter = excess - from_longer;
    CutTokens(a >= b ? *draft : *pair, from_longer);
    if (from_shorter > 0) CutTokens(a >= b ? *pair : *draft, from_shorter);
  }
  if (auto status = CheckLength("token_ids", Counted(first) + Counted(second)); !status.ok()) {
    return status;
  }
  for (const TokenInput* tokens : {&first, &second}) {
    if (auto status = CheckPadding("token_ids", *tokens); !status.ok()) return status;
  }
  const auto join = [](auto& to, const auto& from, size_t before, size_t after, auto fill) {
    if (to.empty() && from.empty()) return;
    if (to.empty()) to.assign(before, fill);
    to.insert(to.end(), from.begin(), from.end());
    to.resize(before + after, fill);
  };
  const size_t before = first.ids.size(), after = second.ids.size();
  join(first.attention_mask, second.attention_mask, before, after, uint8_t{1});
  join(first.token_type_ids, second.token_type_ids, before, after, int32_t{0});
  if (first.global_mask || second.global_mask) {
    std::vector<uint8_t> mask = first.global_mask.value_or(std::vector<uint8_t>(before));
    join(mask, second.global_mask.value_or(std::vector<uint8_t>(after)), before, after, uint8_t{0});
    first.global_mask = std::move(mask);
  }
  first.ids.insert(first.ids.end(), second.ids.begin(), second.ids.end());
  draft->truncated += pair->truncated;
  return draft;
}

}  // namespace

// RoBERTa's template has types 0 throughout; a table of one row knows no other.
bool ReadsTypes(const EncoderFrontEnd& front) {
  return front.facts().types > 1 && front.tokenizer->gives_types();
}

absl::Status BadRequest(const std::string& field, const std::string& problem) {
  return absl::InvalidArgumentError(field + ": " + problem);
}

absl::StatusOr<std::vector<SequenceDraft>> DraftSequences(const EncoderFrontEnd& front,
                                                          const Request& request,
                                                          const std::string& prompt) {
  return Drafter(front, request, prompt).Draft();
}

absl::StatusOr<int> PromptTokens(const EncoderFrontEnd& front, const std::string& prompt) {
  if (front.tokenizer == nullptr) return BadRequest("prompt", "the model has no tokenizer");
  const absl::StatusOr<EncodeResult> alone = front.tokenizer->Encode(prompt, {});
  if (!alone.ok()) return BadRequest("prompt", std::string(alone.status().message()));
  const Encoding& encoding = alone->encoding;
  const bool ends = !encoding.special_mask.empty() && encoding.special_mask.back() != 0;
  return static_cast<int>(encoding.ids.size()) - (ends ? 1 : 0);
}

}  // namespace longview::models
