#include "models/generation/model/prompt.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/status_macros.h"
#include "models/text/bounded_codec.h"
#include "models/text/tokenizer_codec.h"
#include "models/text/utf8.h"

namespace longview::models {
namespace {

constexpr int kDefaultNewTokens = 16;

absl::Status BadField(std::string_view field, std::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", std::string(problem)));
}

class PromptReader {
 public:
  PromptReader(const GeneratorFrontEnd& front, const Request& request)
      : front_(front), request_(request), cuts_(request.truncate.value_or(front.truncate)) {}

  absl::StatusOr<std::unique_ptr<GenerationItem>> Read() {
    for (auto step :
         {&PromptReader::CheckFields, &PromptReader::ReadDocument, &PromptReader::ReadTokens,
          &PromptReader::ReadSettings, &PromptReader::ReadOutputs}) {
      RETURN_IF_ERROR((this->*step)());
    }
    ItemUsage usage;
    usage.input_tokens = item_->document_tokens + static_cast<int>(item_->prompt.size());
    usage.truncated_tokens = truncated_;
    item_->SetUsage(usage);
    return std::move(item_);
  }

 private:
  absl::Status CheckFields();
  absl::Status ReadDocument();
  absl::Status ReadTokens();
  absl::Status ReadText();
  absl::Status ReadIds();
  absl::Status CutToLimit(std::string_view field);
  absl::Status ReadSettings();
  absl::Status ReadOutputs();
  int LeastNewTokens() const;
  int AskedNewTokens() const;

  const GeneratorFrontEnd& front_;
  const Request& request_;
  const bool cuts_;  // Whether a prompt that is too long is cut.
  std::unique_ptr<GenerationItem> item_ = std::make_unique<GenerationItem>();
  int64_t given_ = 0;    // Tokens of the prompt, also of one that is too long to be kept.
  bool counted_ = true;  // False: at least so many.
  int truncated_ = 0;
};

absl::Status PromptReader::CheckFields() {
  const std::string nothing =
      absl::StrCat("means nothing to ", std::string(TaskName(request_.task)));
  const std::pair<std::string_view, bool> given[] = {
      {"text_pair", request_.text_pair.has_value()},
      {"token_ids_pair", request_.tokens_pair.has_value()},
      {"question", request_.question.has_value()},
      {"choices", !request_.choices.empty() || !request_.choice_tokens.empty()},
      {"global_positions", request_.global_positions.has_value()},
      {"global_tokens", !request_.global_tokens.empty()},
      {"aggregation", !request_.aggregation.empty()},
      {"pooling", !request_.pooling.empty()},
      {"normalize", request_.normalize.has_value()},
      {"max_answer_tokens", request_.max_answer_tokens != 0},
      {"decoder_input_ids", request_.decoder_tokens.has_value()},
  };
  for (const auto& [name, set] : given) {
    if (set) return BadField(name, nothing);
  }
  if (request_.text && request_.tokens) {
    return BadField("text", "given together with token ids; send one");
  }
  if (request_.text && front_.codec == nullptr) {
    return BadField("text", "the model has no tokenizer; send token ids");
  }
  if (request_.extend_document && request_.document == nullptr) {
    return BadField("document", "missing; there is none to read into");
  }
  const bool prompt = request_.text || request_.tokens;
  if (!prompt && (request_.document == nullptr || request_.extend_document)) {
    return BadField("text", "text or token ids are needed");
  }
  return absl::OkStatus();
}

absl::Status PromptReader::ReadDocument() {
  if (request_.document == nullptr) return absl::OkStatus();
  item_->document = std::dynamic_pointer_cast<GeneratorDocument>(request_.document);
  if (item_->document == nullptr) return BadField("document", "belongs to another model");
  item_->document_tokens = item_->document->tokens();
  item_->extend = request_.extend_document;
  return absl::OkStatus();
}

absl::Status PromptReader::ReadTokens() {
  if (request_.text) {
    RETURN_IF_ERROR(ReadText());
  } else if (request_.tokens) {
    RETURN_IF_ERROR(ReadIds());
  }
  if (given_ == 0 && item_->document_tokens == 0 && !item_->extend) {
    return BadField(request_.tokens ? "token_ids" : "text",
                    "empty; the model has no token to begin with");
  }
  return CutToLimit(request_.tokens ? "token_ids" : "text");
}

absl::Status PromptReader::ReadText() {
  const TextBounds bounds = {front_.max_tokens, cuts_};
  absl::StatusOr<TextTokens> text = EncodeFirst(*front_.codec, *request_.text, bounds);
  if (!text.ok()) return BadField("text", std::string(text.status().message()));
  if (auto problem = ProblemOfRows(text->ids, front_.vocab, TokenizerOf(front_.codec))) {
    return BadField("text", *problem + "; leave it out of the text");
  }
  if (front_.traits->bos && item_->document_tokens == 0) {
    item_->prompt.push_back(*front_.traits->bos);
  }
  given_ = std::ssize(item_->prompt) + text->tokens;
  counted_ = text->counted;
  item_->prompt.insert(item_->prompt.end(), text->ids.begin(), text->ids.end());
  return absl::OkStatus();
}

// Padding may stand on either side, where its mask is 0.
absl::Status PromptReader::ReadIds() {
  const TokenInput& tokens = *request_.tokens;
  const std::vector<uint8_t>& mask = tokens.attention_mask;
  if (!tokens.token_type_ids.empty()) return BadField("token_type_ids", "the model has no types");
  if (tokens.global_mask) {
    return BadField("global_attention_mask", "the model has no global attention");
  }
  if (!mask.empty() && mask.size() != tokens.ids.size()) {
    return BadField("attention_mask",
                    absl::StrCat(mask.size(), " values for ", tokens.ids.size(), " token ids"));
  }
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const int32_t id = tokens.ids[i];
    if (id < 0 || id >= front_.vocab) {
      return BadField("token_ids",
                      absl::StrCat(id, " at position ", i, " is not in [0, ", front_.vocab, ")"));
    }
  }
  const auto begin = std::find(mask.begin(), mask.end(), 1) - mask.begin();
  const auto end = std::find(mask.rbegin(), mask.rend(), 1).base() - mask.begin();
  if (mask.empty()) {
    item_->prompt = tokens.ids;
  } else if (begin < end) {
    if (std::find(mask.begin() + begin, mask.begin() + end, 0) != mask.begin() + end) {
      return BadField("attention_mask", "a hole between tokens; zeros may stand at either end");
    }
    item_->prompt.assign(tokens.ids.begin() + begin, tokens.ids.begin() + end);
  }
  given_ = std::ssize(item_->prompt);
  return absl::OkStatus();
}

// New tokens that the limit must leave room for.
int PromptReader::LeastNewTokens() const {
  if (item_->extend) return 0;
  const GenerationOptions merged =
      MergeOptions(request_.generation.value_or(GenerationOptions()), front_.traits->defaults);
  const bool asked = request_.generation && request_.generation->max_new_tokens;
  const int wanted = merged.max_new_tokens.value_or(1);
  return std::clamp(asked ? wanted : std::min(wanted, 1), 0, front_.max_tokens);
}

// The request's number of new tokens, or the model's default.
int PromptReader::AskedNewTokens() const {
  return MergeOptions(request_.generation.value_or(GenerationOptions()), front_.traits->defaults)
      .max_new_tokens.value_or(1);
}

absl::Status PromptReader::CutToLimit(std::string_view field) {
  const int reserved = LeastNewTokens();
  const int64_t room = int64_t{front_.max_tokens} - item_->document_tokens - reserved;
  if (given_ <= room) return absl::OkStatus();
  if (cuts_ && room > 0) {
    truncated_ = static_cast<int>(given_ - room);
    item_->prompt.resize(static_cast<size_t>(room));
    return absl::OkStatus();
  }
  const int64_t free = int64_t{front_.max_tokens} - item_->document_tokens - given_;
  if (counted_ && free > 0) {
    return BadField("max_new_tokens",
                    absl::StrCat(AskedNewTokens(), " after ", item_->document_tokens + given_,
                                 " tokens are more than the model's limit of ", front_.max_tokens,
                                 "; at most ", free, " are left"));
  }
  std::string problem = absl::StrCat(counted_ ? "" : "at least ", given_, " tokens");
  if (item_->document_tokens > 0) {
    absl::StrAppend(&problem, " after a document of ", item_->document_tokens);
  }
  if (reserved > 0) absl::StrAppend(&problem, " and ", reserved, " to generate");
  absl::StrAppend(&problem, " are more than the model's limit of ", front_.max_tokens,
                  "; \"truncate\" cuts what does not fit");
  return BadField(field, problem);
}

absl::Status PromptReader::ReadSettings() {
  const int prompt = item_->document_tokens + static_cast<int>(item_->prompt.size());
  const GenerationOptions none;
  if (item_->extend) {
    if (request_.generation) {
      return BadField("document", "is read into; generation options mean nothing to that");
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(GenerationSettings settings,
                   ResolveSettings(request_.generation ? *request_.generation : none,
                                   front_.traits->defaults, ContextOf(front_, prompt)));
  if (!settings.stop.empty() && front_.codec == nullptr) {
    return BadField("stop", "the model has no tokenizer; send stop_token_ids");
  }
  item_->settings = std::move(settings);
  return absl::OkStatus();
}

absl::Status PromptReader::ReadOutputs() {
  for (const std::string& name : request_.tensors) {
    if (name != "logits") {
      return BadField("outputs",
                      absl::StrCat("\"", name.substr(0, 64), "\" is not one of this task's"));
    }
    if (item_->extend || item_->settings.max_new_tokens > 0) {
      return BadField("outputs", "\"logits\" needs max_tokens 0: they are the prompt's");
    }
    item_->wants_logits = true;
    item_->tensors.push_back(name);
  }
  if (!item_->settings.echo) return absl::OkStatus();
  if (request_.text && truncated_ == 0) {
    item_->prompt_text = ReplaceInvalidUtf8(*request_.text);
  } else if (front_.codec != nullptr) {
    std::string bytes;
    for (const int32_t id : item_->prompt) bytes += front_.codec->Bytes(id);
    item_->prompt_text = ReplaceInvalidUtf8(bytes);
  }
  return absl::OkStatus();
}

}  // namespace

SettingsContext ContextOf(const GeneratorFrontEnd& front, int prompt) {
  return {.vocab = front.vocab,
          .prompt = prompt,
          .room = front.max_tokens - prompt,
          .default_new_tokens = front.documents != nullptr ? front.max_tokens : kDefaultNewTokens,
          .default_top_k = front.traits->default_top_k,
          .eos = &front.traits->eos,
          .fairseq_source = front.traits->fairseq ? std::optional<int>(0) : std::nullopt};
}

absl::StatusOr<std::unique_ptr<GenerationItem>> PrepareGeneration(const GeneratorFrontEnd& front,
                                                                  const Request& request) {
  return PromptReader(front, request).Read();
}

}  // namespace longview::models
