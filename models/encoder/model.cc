#include "models/encoder/model.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "models/cost/best_rates.h"
#include "models/device/placement.h"
#include "models/directory/architecture.h"
#include "models/encoder/facts.h"
#include "models/encoder/heads_pass.h"
#include "models/encoder/placed_encoder.h"
#include "models/encoder/prepare.h"
#include "models/encoder/run.h"
#include "models/encoder/sentence_pipeline.h"
#include "models/parallel.h"
#include "models/pauses.h"
#include "models/status_macros.h"
#include "models/text/text_listing.h"
#include "models/text/tokenizer_codec.h"

namespace longview::models {
namespace {

// Tokens of a model without a position table, if nothing else limits them.
constexpr int64_t kMostTokens = 131072;

Pooling DefaultPooling(const ModelDirectory& directory, const EncoderFacts& facts) {
  const std::optional<std::string>& own = directory.serving.pooling;
  if (!own) return facts.default_pooling;
  if (*own == "cls") return Pooling::kCls;
  return *own == "pooler" ? Pooling::kPooler : Pooling::kMean;
}

// The front end of a directory's requests.
EncoderFrontEnd FrontEndOf(const ModelDirectory& directory, const SequenceRules& rules) {
  EncoderFrontEnd front;
  front.rules = &rules;
  front.tokenizer = directory.tokenizer ? &*directory.tokenizer : nullptr;
  front.codec = directory.bytes ? directory.bytes->codec.get() : nullptr;
  front.max_tokens = MostTokens(directory, rules.facts().max_tokens);
  front.pooling = DefaultPooling(directory, rules.facts());
  front.own_pooling = directory.serving.pooling.has_value();
  front.truncate = directory.serving.truncate.value_or(false);
  front.sentence = &directory.sentence;
  const SentenceModules* modules = front.modules();
  front.normalize =
      directory.serving.normalize.value_or(modules != nullptr && modules->normalizes());
  return front;
}

// A pooling by the class token needs one.
absl::Status CheckPooling(const ModelDirectory& directory, const EncoderFacts& facts) {
  bool by_class = directory.serving.pooling == "cls";
  const auto& modules = directory.sentence.modules;
  if (!directory.serving.pooling && modules.ok() && *modules) {
    const std::vector<PoolMode>& modes = (*modules)->pooling;
    by_class = std::find(modes.begin(), modes.end(), PoolMode::kCls) != modes.end();
  }
  if (!by_class || facts.cls_reads) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(directory.path, ": \"pooling\": \"cls\", but a ", facts.architecture,
                   " of this configuration has no class token; mean is possible"));
}

// The directory's modules with their weights, or without `compute` checked. What embeddings or
// scores alone need stops a model that is there for nothing else.
absl::StatusOr<SentencePipeline> LoadSentence(const EncoderFacts& facts,
                                              std::optional<Compute> compute,
                                              SentenceConfig& sentence) {
  if (facts.head == EncoderHead::kSequenceClassification && facts.labels.size() == 1 &&
      !sentence.score_activation.ok()) {
    return sentence.score_activation.status();
  }
  absl::StatusOr<SentencePipeline> pipeline = SentencePipeline::Load({}, facts.width, compute);
  if (sentence.modules.ok()) {
    pipeline = SentencePipeline::Load(*sentence.modules, facts.width, compute);
    if (!pipeline.ok()) sentence.modules = pipeline.status();
  }
  if (sentence.modules.ok()) return pipeline;
  if (facts.head == EncoderHead::kNone) return sentence.modules.status();
  return SentencePipeline::Load({}, facts.width, compute);
}

ModelInfo InfoOf(const ModelDirectory& directory, const SentenceConfig& sentence,
                 const EncoderFacts& facts, bool own_tokenizer) {
  ModelInfo info =
      EncoderInfo(facts, &sentence, own_tokenizer || directory.tokenizer || directory.bytes);
  info.max_tokens = MostTokens(directory, facts.max_tokens);
  info.notes = CompletionNotes(directory);
  if (!sentence.modules.ok()) {
    info.notes.push_back(absl::StrCat("no embeddings: ", sentence.modules.status().message()));
  }
  return info;
}

void AddNotes(const std::vector<std::string>& notes, ModelInfo& info) {
  info.notes.insert(info.notes.end(), notes.begin(), notes.end());
}

class EncoderModel final : public Model, public Tokenizing {
 public:
  EncoderModel(const Placement& place, std::unique_ptr<ModelDirectory> directory,
               std::unique_ptr<PlacedEncoder> encoder, SentencePipeline sentence)
      : directory_(std::move(directory)),
        encoder_(std::move(encoder)),
        sentence_(std::move(sentence)),
        front_(FrontEndOf(*directory_, encoder_->family())) {
    info_ = InfoOf(*directory_, directory_->sentence, encoder_->facts(), false);
    info_.parameters = encoder_->family().parameters();
    info_.device = place.name;
    AddNotes(encoder_->family().notes(), info_);
    AddNotes(place.notes, info_);
    info_.dtype = place.dtype();
    info_.memory_bytes = encoder_->memory_bytes();
  }

  const ModelInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Item>> Prepare(const Request& request) const override;
  absl::StatusOr<ChunkPlan> PlanChunks(const Request& request) const override {
    return PlanTextChunks(front_, request);
  }
  absl::StatusOr<Cost> EstimateTokens(int tokens) const override;
  absl::StatusOr<std::vector<TextToken>> Tokenize(std::string_view text,
                                                  bool add_special) const override {
    return listing().Tokenize(text, add_special);
  }
  absl::StatusOr<std::string> Detokenize(std::span<const int32_t> ids,
                                         bool skip_special) const override {
    return listing().Detokenize(ids, skip_special);
  }
  absl::Status WarmUp() override;

  std::unique_ptr<Run> Begin(std::span<const Item* const> items, RunTimes* times) const override {
    const EncoderBackEnd back = {front_.tokenizer, &sentence_, &pool_};
    return std::make_unique<EncoderTaskRun>(*encoder_, back, items, scratch_,
                                            info_.device == "cpu" ? &teams_ : nullptr, times);
  }

 private:
  TextListing listing() const { return {front_.tokenizer, front_.codec, std::nullopt}; }
  // Heads and modules included.
  EncoderCost Count(const EncoderItem& item) const;
  Cost CostOf(const EncoderItem& item) const;
  // A typical document of the task: random-free ids, the task's defaults.
  absl::StatusOr<std::unique_ptr<EncoderItem>> MakeItem(int tokens) const;
  absl::StatusOr<double> Time(const EncoderItem& item, RunTimes* times) const;

  const std::unique_ptr<const ModelDirectory> directory_;
  const std::unique_ptr<const PlacedEncoder> encoder_;
  const SentencePipeline sentence_;
  const TorchParallelFor pool_;
  const EncoderFrontEnd front_;
  ModelInfo info_;
  EncoderRates rates_;
  BestRates best_;  // The best of all warm-ups.
  // Used by the executor's thread alone, as the runs are.
  mutable ScratchPool scratch_;
  mutable TeamChoice teams_;
};

EncoderCost EncoderModel::Count(const EncoderItem& item) const {
  std::vector<const EncoderSequence*> sequences;
  for (const EncoderSequence& sequence : item.sequences) sequences.push_back(&sequence);
  EncoderCost cost = encoder_->CostOf(sequences);
  const auto logits = static_cast<size_t>(LogitFloats(encoder_->facts(), item));
  cost.work.linear += static_cast<double>(logits) * encoder_->facts().width;
  cost.work += sentence_.WorkOf(item);
  cost.workspace_bytes += logits * sizeof(float) + sentence_.WorkspaceBytes(item);
  return cost;
}

Cost EncoderModel::CostOf(const EncoderItem& item) const {
  const EncoderCost counted = Count(item);
  Cost cost;
  cost.seconds = rates_.Seconds(counted.work);
  cost.workspace_bytes = static_cast<double>(counted.workspace_bytes);
  cost.multiply_adds = counted.work.MultiplyAdds();
  return cost;
}

absl::StatusOr<std::unique_ptr<Item>> EncoderModel::Prepare(const Request& request) const {
  ASSIGN_OR_RETURN(std::unique_ptr<EncoderItem> item, PrepareEncoderItem(front_, request));
  item->SetCost(CostOf(*item));
  return std::unique_ptr<Item>(std::move(item));
}

absl::StatusOr<std::unique_ptr<EncoderItem>> EncoderModel::MakeItem(int tokens) const {
  const EncoderFacts& facts = encoder_->facts();
  Request request;
  request.typed = false;
  request.tokens.emplace();
  for (int t = 0; t < tokens; ++t) {
    int id = static_cast<int>((int64_t{t} * 7919 + 11) % facts.vocab);
    if (id == facts.pad) id = (id + 1) % facts.vocab;
    request.tokens->ids.push_back(id);
  }
  const bool classifies = facts.head == EncoderHead::kSequenceClassification;
  const bool pair = facts.head == EncoderHead::kPairClassification;
  const std::vector<Task>& tasks = info_.tasks;
  const bool embeds = std::find(tasks.begin(), tasks.end(), Task::kEmbedding) != tasks.end();
  request.task = embeds && !classifies ? Task::kEmbedding : info_.task;
  request.tensors = {classifies ? "logits" : pair ? "embedding" : "last_hidden_state"};
  return PrepareEncoderItem(front_, request);
}

absl::StatusOr<Cost> EncoderModel::EstimateTokens(int tokens) const {
  if (tokens < 1 || tokens > front_.max_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_tokens: ", tokens, " is not in [1, ", front_.max_tokens, "]"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<EncoderItem> item, MakeItem(tokens));
  return CostOf(*item);
}

absl::StatusOr<double> EncoderModel::Time(const EncoderItem& item, RunTimes* times) const {
  const Item* const items[] = {&item};
  const double start = ComputeClock();
  const std::unique_ptr<Run> run = Begin(items, times);
  RunToEnd(*run);
  RETURN_IF_ERROR(run->Take(0).status());
  return ComputeClock() - start;
}

// From a document long enough to fill panels and windows, and a short one.
absl::Status EncoderModel::WarmUp() {
  if (!directory_->serving.warmup) return absl::OkStatus();
  constexpr int kLong = 768, kShort = 16;
  ASSIGN_OR_RETURN(const auto item, MakeItem(std::min(front_.max_tokens, kLong)));
  ASSIGN_OR_RETURN(const auto brief, MakeItem(std::min(front_.max_tokens, kShort)));
  const auto time_long = [&](RunTimes* times) { return Time(*item, times); };
  const auto time_short = [&](RunTimes* times) { return Time(*brief, times); };
  const SampleRun large = {Count(*item).work, time_long};
  const SampleRun small = {Count(*brief).work, time_short};
  const absl::StatusOr<EncoderRates> rates = Calibrate(large, &small, best_);
  if (rates.ok()) rates_ = *rates;
  return rates.status();
}

}  // namespace

int MostTokens(const ModelDirectory& directory, int positions) {
  int64_t limit = positions;
  if (limit == 0) limit = directory.serving.max_tokens.value_or(kMostTokens);
  if (const std::optional<int> of_texts = directory.sentence.limits.max_tokens) {
    limit = std::min<int64_t>(limit, *of_texts);
  } else if (directory.tokenizer && directory.tokenizer->model_max_length() > 0) {
    limit = std::min(limit, directory.tokenizer->model_max_length());
  }
  if (directory.bytes && directory.bytes->model_max_length > 0) {
    limit = std::min(limit, directory.bytes->model_max_length);
  }
  return static_cast<int>(std::min<int64_t>(limit, directory.serving.max_tokens.value_or(limit)));
}

absl::Status CheckTokenIds(const ModelDirectory& directory, int vocab) {
  if (!directory.tokenizer) return absl::OkStatus();
  ASSIGN_OR_RETURN(const EncodeResult empty, directory.tokenizer->Encode("", {}));
  const auto problem = ProblemOfRows(empty.encoding.ids, vocab, &*directory.tokenizer);
  if (!problem) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      directory.path, ": the tokenizer is another model's: around every text, ", *problem));
}

absl::StatusOr<ModelInfo> DescribeEncoder(const ModelDirectory& directory, MakeEncoder make,
                                          ReadTokenizer read) {
  absl::StatusOr<std::optional<Tokenizer>> own = std::nullopt;
  if (read != nullptr) own = read(directory);
  if (!own.ok()) return own.status();
  ASSIGN_OR_RETURN(const std::unique_ptr<EncoderFamily> family, make(directory));
  RETURN_IF_ERROR(family->Load(std::nullopt, nullptr));
  const EncoderFacts& facts = family->facts();
  SentenceConfig sentence = directory.sentence;
  ASSIGN_OR_RETURN(const auto modules, LoadSentence(facts, std::nullopt, sentence));
  ModelInfo info = InfoOf(directory, sentence, facts, own->has_value());
  info.parameters = family->parameters();
  AddNotes(family->notes(), info);
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadEncoderAt(std::unique_ptr<Device> device,
                                                     ModelDirectory directory,
                                                     const LoadOptions& options, MakeEncoder make,
                                                     std::vector<std::string> notes,
                                                     ReadTokenizer read) {
  auto kept = std::make_unique<ModelDirectory>(std::move(directory));
  if (read != nullptr) {
    ASSIGN_OR_RETURN(std::optional<Tokenizer> own, read(*kept));
    if (own) kept->tokenizer = *std::move(own);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<EncoderFamily> family, make(*kept));
  ASSIGN_OR_RETURN(Placement place,
                   PlaceModel(std::move(device), OddWidth("width ", family->facts().width), *kept,
                              options, std::move(notes)));
  const bool on_device = place.device != nullptr;
  absl::StatusOr<std::unique_ptr<PlacedEncoder>> placed = absl::InternalError("not placed");
  RETURN_IF_ERROR(LoadInTurn(place.name, place.device.get(), [&] {
    placed = on_device ? PlacedEncoder::OnDevice(std::move(family), *kept, place.compute,
                                                 std::move(place.device))
                       : PlacedEncoder::OnHost(std::move(family), place.format());
    return placed.status();
  }));
  RETURN_IF_ERROR(NoteInt8(*kept, place, place.notes));
  const EncoderFacts& facts = (*placed)->facts();
  RETURN_IF_ERROR(CheckPooling(*kept, facts));
  // The pipeline computes in the heads' type: the model's own, or fp32 beside a device.
  const Compute compute = on_device ? Compute::kFp32 : place.compute;
  ASSIGN_OR_RETURN(SentencePipeline sentence, LoadSentence(facts, compute, kept->sentence));
  return std::make_unique<EncoderModel>(place, std::move(kept), *std::move(placed),
                                        std::move(sentence));
}

}  // namespace longview::models
