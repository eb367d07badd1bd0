#include "models/generation/model/generator_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/generation/decoder/encoder_stage.h"
#include "models/generation/model/document_reading.h"
#include "models/generation/model/generation_cost.h"
#include "models/generation/model/generator_run.h"
#include "models/generation/model/prompt.h"
#include "models/generation/model/text_generation.h"
#include "models/status_macros.h"
#include "models/text/text_listing.h"

namespace longview::models {
namespace {

// The run that Begin returns: generators have no answers in one pass.
class RefusedRun final : public Run {
 public:
  bool Advance() override { return false; }
  void Drop(int) override {}
  absl::StatusOr<Answer> Take(int) override {
    return absl::UnimplementedError("the model generates; it has no answers in one pass");
  }
};

EncoderFrontEnd DocumentsOf(const GeneratorParts& parts) {
  EncoderFrontEnd front;
  const EncoderStage* encoder = parts.decoder->encoder();
  if (encoder == nullptr) return front;
  front.rules = &encoder->rules();
  front.tokenizer = parts.tokenizer;
  front.codec = parts.tokenizer == nullptr ? parts.codec.get() : nullptr;
  front.max_tokens = encoder->max_tokens();
  front.truncate = parts.truncate;
  return front;
}

class GeneratorModel final : public Model, public Tokenizing {
 public:
  explicit GeneratorModel(GeneratorParts parts)
      : parts_(std::move(parts)),
        documents_(DocumentsOf(parts_)),
        front_{parts_.codec.get(),           &parts_.traits,  parts_.decoder->vocab_size(),
               parts_.decoder->max_tokens(), parts_.truncate, encodes() ? &documents_ : nullptr} {}

  absl::Status Complete();

  const ModelInfo& info() const override { return parts_.info; }
  absl::StatusOr<std::unique_ptr<Item>> Prepare(const Request& request) const override;
  absl::StatusOr<Cost> EstimateTokens(int tokens) const override;
  absl::StatusOr<std::vector<TextToken>> Tokenize(std::string_view text,
                                                  bool add_special) const override {
    return listing().Tokenize(text, add_special);
  }
  absl::StatusOr<std::string> Detokenize(std::span<const int32_t> ids,
                                         bool skip_special) const override {
    return listing().Detokenize(ids, skip_special);
  }
  std::unique_ptr<Run> Begin(std::span<const Item* const>, RunTimes*) const override {
    return std::make_unique<RefusedRun>();
  }
  absl::Status WarmUp() override {
    return parts_.warms_up ? parts_.decoder->WarmUp() : absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Generation>> Start(const Item& item) override;
  std::unique_ptr<Run> BeginStep(std::span<const StepGrant> grants) override {
    return std::make_unique<GeneratorRun>(*parts_.decoder,
                                          parts_.info.device == "cpu" ? &teams_ : nullptr, grants);
  }
  double StepSeconds() const override { return parts_.decoder->costs().StepSeconds(); }
  absl::StatusOr<std::shared_ptr<Document>> NewDocument() override {
    if (encodes()) {
      return absl::UnimplementedError(
          absl::StrCat(parts_.info.architecture, " reads a document with every request"));
    }
    return std::make_shared<GeneratorDocument>(*parts_.decoder);
  }
  CacheUse cache() const override { return parts_.decoder->cache(); }

 private:
  int prefill_alignment() const { return parts_.decoder->prefill_alignment(); }
  bool encodes() const { return parts_.decoder->encoder() != nullptr; }
  Task task() const { return encodes() ? Task::kText2TextGeneration : Task::kTextGeneration; }
  TextListing listing() const { return {parts_.tokenizer, parts_.codec.get(), parts_.traits.bos}; }
  void Describe();

  GeneratorParts parts_;
  const EncoderFrontEnd documents_;
  const GeneratorFrontEnd front_;
  TeamChoice teams_;  // Used by the executor's thread alone.
};

absl::Status GeneratorModel::Complete() {
  const GeneratorTraits& traits = parts_.traits;
  const absl::StatusOr<GenerationSettings> settings =
      ResolveSettings({}, traits.defaults, ContextOf(front_, 1));
  if (!settings.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the model's generation settings: ",
                                                   std::string(settings.status().message())));
  }
  ModelInfo& info = parts_.info;
  Describe();
  info.sequences = settings->sequences;
  info.pad_token = traits.pad.value_or(settings->eos.empty() ? 0 : settings->eos.front());
  return absl::OkStatus();
}

void GeneratorModel::Describe() {
  const bool text = front_.codec != nullptr;
  if (encodes()) {
    const EncoderStage& encoder = *parts_.decoder->encoder();
    FillEncoderDecoderInfo(front_.vocab, encoder.max_tokens(), prefill_alignment(), text,
                           encoder.rules().facts().global_attention, encoder.width(), parts_.info);
  } else {
    FillGeneratorInfo(front_.vocab, front_.max_tokens, prefill_alignment(), text, parts_.info);
  }
}

absl::StatusOr<std::unique_ptr<Item>> GeneratorModel::Prepare(const Request& request) const {
  if (request.task != task()) {
    return absl::UnimplementedError(absl::StrCat(parts_.info.architecture, " does not do ",
                                                 std::string(TaskName(request.task)), "; it does ",
                                                 std::string(TaskName(task()))));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<GenerationItem> item, encodes()
                                                             ? PrepareSourced(front_, request)
                                                             : PrepareGeneration(front_, request));
  item->cache_space = request.cache_space;
  const EncoderStage* const encoder = parts_.decoder->encoder();
  if (encoder != nullptr) item->source_cost = encoder->Cost(*item->source);
  item->SetCost(
      GenerationCost(parts_.decoder->costs(), encoder, *item, prefill_alignment(), front_.vocab));
  return std::unique_ptr<Item>(std::move(item));
}

absl::StatusOr<Cost> GeneratorModel::EstimateTokens(int tokens) const {
  const int most = parts_.info.max_tokens;
  if (tokens < 1 || tokens > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_tokens: ", tokens, " is not in [1, ", most, "]"));
  }
  Request request;
  request.task = task();
  request.tokens.emplace().ids.resize(static_cast<size_t>(tokens));
  // A prompt that fills the model is scored: there is no room for a token of its own.
  if (!encodes() && tokens == most) request.generation.emplace().max_new_tokens = 0;
  ASSIGN_OR_RETURN(const std::unique_ptr<Item> item, Prepare(request));
  return item->cost();
}

absl::StatusOr<std::unique_ptr<Generation>> GeneratorModel::Start(const Item& base) {
  const auto& item = static_cast<const GenerationItem&>(base);
  if (item.source) {
    return std::make_unique<TextGeneration>(item, parts_.decoder->encoder()->Open(*item.source),
                                            *parts_.decoder, parts_.codec.get());
  }
  if (item.document == nullptr) {
    const bool scores = item.scores_prompt() || item.wants_logits;
    const std::span<const int32_t> known = scores ? std::span<const int32_t>() : item.prompt;
    return std::make_unique<TextGeneration>(item, parts_.decoder->Open(known, item.cache_space),
                                            *parts_.decoder, parts_.codec.get());
  }
  if (item.document->sequence() == nullptr) {
    return absl::FailedPreconditionError(
        "document: a piece of it was not read to its end; open it again");
  }
  if (item.document->tokens() != item.document_tokens) {
    return absl::FailedPreconditionError(
        absl::StrCat("document: was read into while the request waited; it had ",
                     item.document_tokens, " tokens and has ", item.document->tokens()));
  }
  if (item.extend) return std::make_unique<DocumentReading>(item, *parts_.decoder);
  return std::make_unique<TextGeneration>(item, item.document->sequence()->Fork(), *parts_.decoder,
                                          parts_.codec.get());
}

}  // namespace

void FillGeneratorInfo(int vocab, int max_tokens, int prefill_alignment, bool has_tokenizer,
                       ModelInfo& info) {
  info.task = Task::kTextGeneration;
  info.tasks = {Task::kTextGeneration};
  info.max_tokens = max_tokens;
  info.prefill_alignment = prefill_alignment;
  info.has_tokenizer = has_tokenizer;
  info.inputs.clear();
  if (has_tokenizer) info.inputs.push_back({"text", TensorType::kBytes, {-1}});
  info.inputs.push_back({"input_ids", TensorType::kInt64, {-1, -1}});
  info.inputs.push_back({"attention_mask", TensorType::kInt64, {-1, -1}});
  info.outputs.clear();
  if (has_tokenizer) info.outputs.push_back({"text", TensorType::kBytes, {-1}});
  info.outputs.push_back({"token_ids", TensorType::kInt64, {-1, -1}});
  info.outputs.push_back({"num_tokens", TensorType::kInt64, {-1}});
  info.outputs.push_back({"token_logprobs", TensorType::kFp32, {1, -1}});
  info.outputs.push_back({"logits", TensorType::kFp32, {1, -1, vocab}, false});
}

void FillEncoderDecoderInfo(int vocab, int max_tokens, int prefill_alignment, bool has_tokenizer,
                            bool global_attention, int width, ModelInfo& info) {
  FillGeneratorInfo(vocab, max_tokens, prefill_alignment, has_tokenizer, info);
  info.task = Task::kText2TextGeneration;
  info.tasks = {Task::kText2TextGeneration};
  if (global_attention) {
    info.inputs.push_back({"global_attention_mask", TensorType::kInt64, {-1, -1}});
  }
  info.inputs.push_back({"decoder_input_ids", TensorType::kInt64, {1, -1}});
  std::erase_if(info.outputs, [](const TensorSpec& output) {
    return output.name == "token_logprobs" || output.name == "logits";
  });
  info.outputs.push_back({"scores", TensorType::kFp32, {-1}, false});
  info.outputs.push_back({"logits", TensorType::kFp32, {1, -1, vocab}});
  info.outputs.push_back({"encoder_last_hidden_state", TensorType::kFp32, {1, -1, width}, false});
}

absl::StatusOr<std::unique_ptr<Model>> MakeGeneratorModel(GeneratorParts parts) {
  auto model = std::make_unique<GeneratorModel>(std::move(parts));
  RETURN_IF_ERROR(model->Complete());
  return model;
}

}  // namespace longview::models
