#include "models/generation/model/prompt.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/encoder/draft.h"
#include "models/status_macros.h"

namespace longview::models {
namespace {

constexpr std::string_view kStates = "encoder_last_hidden_state";

class Reader {
 public:
  Reader(const GeneratorFrontEnd& front, const Request& request)
      : front_(front), request_(request) {}

  absl::StatusOr<std::unique_ptr<GenerationItem>> Read() {
    for (auto step : {&Reader::CheckFields, &Reader::ReadStart, &Reader::ReadSource,
                      &Reader::ReadSettings, &Reader::ReadOutputs}) {
      RETURN_IF_ERROR((this->*step)());
    }
    return std::move(item_);
  }

 private:
  absl::Status CheckFields();
  absl::Status ReadStart();
  absl::Status ReadSettings();
  absl::Status ReadOutputs();
  absl::Status ReadSource();

  const GeneratorFrontEnd& front_;
  const Request& request_;
  std::unique_ptr<GenerationItem> item_ = std::make_unique<GenerationItem>();
};

absl::Status Reader::CheckFields() {
  const std::string nothing =
      absl::StrCat("means nothing to ", std::string(TaskName(request_.task)));
  const std::pair<const char*, bool> given[] = {
      {"aggregation", !request_.aggregation.empty()},
      {"pooling", !request_.pooling.empty()},
      {"normalize", request_.normalize.has_value()},
      {"max_answer_tokens", request_.max_answer_tokens != 0},
  };
  for (const auto& [name, set] : given) {
    if (set) return BadRequest(name, nothing);
  }
  if (request_.document != nullptr || request_.extend_document) {
    return BadRequest("document", "the model reads a document with every request and keeps none");
  }
  return absl::OkStatus();
}

// HuggingFace puts the start token in front of a request's own unless they begin with it.
absl::Status Reader::ReadStart() {
  const std::vector<int32_t>& start = front_.traits->decoder_start;
  item_->prompt = start;
  if (!request_.decoder_tokens) return absl::OkStatus();
  const std::string field = "decoder_input_ids";
  const TokenInput& tokens = *request_.decoder_tokens;
  const std::vector<uint8_t>& mask = tokens.attention_mask;
  if (std::find(mask.begin(), mask.end(), 0) != mask.end()) {
    return BadRequest(field, "has masked tokens; the start of an output has none");
  }
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const int32_t id = tokens.ids[i];
    if (id >= 0 && id < front_.vocab) continue;
    return BadRequest(field,
                      absl::StrCat(id, " at position ", i, " is not in [0, ", front_.vocab, ")"));
  }
  const bool begun = tokens.ids.size() >= start.size() &&
                     std::equal(start.begin(), start.end(), tokens.ids.begin());
  if (begun) item_->prompt.clear();
  item_->prompt.insert(item_->prompt.end(), tokens.ids.begin(), tokens.ids.end());
  const auto size = static_cast<int64_t>(item_->prompt.size());
  if (size < front_.max_tokens) return absl::OkStatus();
  return BadRequest(field, absl::StrCat(size, " tokens, start included, are more than the ",
                                        front_.max_tokens - 1, " the decoder has positions for"));
}

absl::Status Reader::ReadSettings() {
  const GenerationOptions none;
  SettingsContext context = ContextOf(front_, static_cast<int>(item_->prompt.size()));
  if (context.fairseq_source) {
    context.fairseq_source = item_->source->tokens() - item_->source->padding;
  }
  ASSIGN_OR_RETURN(GenerationSettings settings,
                   ResolveSettings(request_.generation ? *request_.generation : none,
                                   front_.traits->defaults, context));
  if (!settings.stop.empty() && front_.codec == nullptr) {
    return BadRequest("stop", "the model has no tokenizer; send stop_token_ids");
  }
  if (settings.echo) {
    return BadRequest("echo",
                      "the prompt is a document that the encoder reads; it is no part of "
                      "the output");
  }
  item_->settings = std::move(settings);
  return absl::OkStatus();
}

absl::Status Reader::ReadOutputs() {
  for (const std::string& name : request_.tensors) {
    if (name == kStates) {
      continue;
    } else if (name != "logits") {
      return BadRequest("outputs",
                        absl::StrCat("\"", name.substr(0, 64), "\" is not one of this task's"));
    } else if (item_->settings.max_new_tokens > 0) {
      return BadRequest("outputs",
                        "\"logits\" needs max_tokens 0: they are those of "
                        "decoder_input_ids");
    } else {
      item_->wants_logits = true;
    }
  }
  item_->tensors = request_.tensors;
  return absl::OkStatus();
}

absl::Status Reader::ReadSource() {
  ItemUsage usage;
  const bool wants_states =
      std::count(request_.tensors.begin(), request_.tensors.end(), kStates) > 0;
  ASSIGN_OR_RETURN(EncoderSequence source,
                   PrepareDocument(*front_.documents, request_, wants_states, usage));
  item_->source = std::move(source);
  item_->SetUsage(usage);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GenerationItem>> PrepareSourced(const GeneratorFrontEnd& front,
                                                               const Request& request) {
  return Reader(front, request).Read();
}

}  // namespace longview::models
