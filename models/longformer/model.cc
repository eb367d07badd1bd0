#include "models/longformer/model.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/cpu_features.h"
#include "kernels/span/band_planner.h"
#include "models/dense/compute_choice.h"
#include "models/longformer/cost.h"
#include "models/longformer/info.h"
#include "models/longformer/prepare.h"
#include "models/parallel.h"

namespace longview::models {
namespace {

// The directory and what its configuration means.
struct Settings {
  ModelDirectory directory;
  LongformerConfig config;
  int max_tokens = 0;
};

absl::StatusOr<LongformerConfig> ReadConfig(const ModelDirectory& directory) {
  absl::StatusOr<LongformerConfig> config =
      ParseLongformerConfig(directory.config, directory.common, directory.config_path);
  if (!config.ok()) return config;
  if (directory.tokenizer && directory.tokenizer->max_id() >= config->vocab) {
    return absl::InvalidArgumentError(absl::StrCat(directory.path, ": the tokenizer has ids up to ",
                                                   directory.tokenizer->max_id(),
                                                   ", vocab_size is ", config->vocab));
  }
  return config;
}

// What the position table holds, lowered by the tokenizer's limit and longview.json.
int MaxTokens(const ModelDirectory& directory, const LongformerConfig& config) {
  int64_t limit = config.max_tokens();
  if (directory.tokenizer && directory.tokenizer->model_max_length() > 0) {
    limit = std::min(limit, directory.tokenizer->model_max_length());
  }
  return static_cast<int>(std::min<int64_t>(limit, directory.serving.max_tokens.value_or(limit)));
}

Pooling ParsePooling(const std::string& name) {
  if (name == "cls") return Pooling::kCls;
  return name == "pooler" ? Pooling::kPooler : Pooling::kMean;
}

class LongformerModel final : public Model {
 public:
  LongformerModel(Settings settings, ComputeChoice choice) : settings_(std::move(settings)) {
    context_.config = &settings_.config;
    context_.weights = &weights_;
    context_.compute = choice.compute;
    context_.isa =
        choice.compute == Compute::kFp32 ? kernels::BestFloatIsa() : kernels::BestBf16Isa();
    context_.pool = &pool_;
    const std::optional<Tokenizer>& tokenizer = settings_.directory.tokenizer;
    info_ = LongformerInfo(settings_.config, tokenizer.has_value());
    info_.notes = std::move(choice.notes);
    info_.device = "cpu";
    info_.dtype = choice.compute == Compute::kFp32 ? "fp32" : "bf16";
    info_.max_tokens = settings_.max_tokens;
    front_.config = &settings_.config;
    front_.tokenizer = tokenizer ? &*tokenizer : nullptr;
    front_.max_tokens = settings_.max_tokens;
    front_.pooling = ParsePooling(settings_.directory.embedding.pooling);
    front_.normalize = settings_.directory.embedding.normalize;
  }

  absl::Status LoadWeights() {
    const ModelDirectory& directory = settings_.directory;
    absl::StatusOr<LongformerWeights> weights = LoadLongformerWeights(
        settings_.config, directory.checkpoint, directory.path, context_.compute);
    if (!weights.ok()) return weights.status();
    weights_ = *std::move(weights);
    info_.parameters = weights_.parameters;
    info_.memory_bytes = weights_.memory_bytes;
    front_.has_pooler = weights_.pooler.has_value();
    return absl::OkStatus();
  }

  const ModelInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Item>> Prepare(const Request& request) const override;
  absl::StatusOr<Cost> EstimateTokens(int tokens) const override;
  std::unique_ptr<Run> Begin(std::span<const Item* const> items) const override {
    return BeginTimed(items, nullptr);
  }
  absl::Status WarmUp() override;

  std::unique_ptr<Run> BeginTimed(std::span<const Item* const> items, EncoderTimes* times) const {
    return std::make_unique<LongformerRun>(context_, front_.tokenizer, items, scratch_, times);
  }

 private:
  LongformerWork WorkOfItem(const LongformerItem& item) const;
  Cost CostOf(const LongformerItem& item) const;
  // A typical document of the task: random-free ids, the task's default globals.
  std::unique_ptr<LongformerItem> MakeItem(int tokens) const;
  absl::StatusOr<double> Time(const LongformerItem& item, EncoderTimes* times) const;

  const Settings settings_;
  LongformerWeights weights_;
  TorchParallelFor pool_;
  EncoderContext context_;
  LongformerFrontEnd front_;
  ModelInfo info_;
  LongformerRates rates_;
  mutable ScratchKeeper scratch_;  // Of the executor's thread, as the runs are.
};

LongformerWork LongformerModel::WorkOfItem(const LongformerItem& item) const {
  LongformerWork total;
  for (const LongformerSequence& sequence : item.sequences) {
    const LongformerWork work = WorkOf(settings_.config, sequence);
    total.linear += work.linear;
    total.attention += work.attention;
    total.rows += work.rows;
  }
  total.linear += static_cast<double>(LogitFloats(settings_.config, item)) * settings_.config.width;
  return total;
}

Cost LongformerModel::CostOf(const LongformerItem& item) const {
  const LongformerConfig& config = settings_.config;
  std::vector<const LongformerSequence*> sequences;
  for (const LongformerSequence& sequence : item.sequences) sequences.push_back(&sequence);
  // Two results of one panel are alive at a time: the expanded one and what follows it.
  const int64_t widest = std::max(3 * config.width, config.intermediate) + config.width;
  Cost cost;
  cost.seconds = rates_.Seconds(WorkOfItem(item));
  cost.workspace_bytes = static_cast<double>(EncoderRun::ScratchBytes(context_, sequences)) +
                         static_cast<double>(kPanelRows * widest * ElementBytes(context_.compute)) +
                         4.0 * static_cast<double>(LogitFloats(config, item));
  return cost;
}

absl::StatusOr<std::unique_ptr<Item>> LongformerModel::Prepare(const Request& request) const {
  absl::StatusOr<std::unique_ptr<LongformerItem>> item = PrepareLongformer(front_, request);
  if (!item.ok()) return item.status();
  (*item)->SetCost(CostOf(**item));
  return std::unique_ptr<Item>(*std::move(item));
}

std::unique_ptr<LongformerItem> LongformerModel::MakeItem(int tokens) const {
  const LongformerConfig& config = settings_.config;
  LongformerSequence sequence;
  sequence.roles.assign(static_cast<size_t>(tokens), kernels::kLocalToken);
  for (int t = 0; t < tokens; ++t) {
    int id = static_cast<int>((int64_t{t} * 7919 + 11) % config.vocab);
    if (id == config.pad) id = (id + 1) % config.vocab;
    sequence.ids.push_back(id);
    sequence.positions.push_back(config.pad + 1 + t);
  }
  auto item = std::make_unique<LongformerItem>();
  item->task = Task::kEmbedding;
  item->tensors = {"embedding"};
  item->pooling = Pooling::kCls;
  item->typed = false;
  if (config.head == LongformerHead::kSequenceClassification) {
    item->task = Task::kTextClassification;
    item->tensors = {"logits"};
    sequence.roles[0] = kernels::kGlobalToken;
    sequence.wanted = {0};
  } else {
    sequence.wanted.resize(sequence.ids.size());
    std::iota(sequence.wanted.begin(), sequence.wanted.end(), 0);
  }
  item->sequences.push_back(std::move(sequence));
  return item;
}

absl::StatusOr<Cost> LongformerModel::EstimateTokens(int tokens) const {
  if (tokens < 1 || tokens > settings_.max_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_tokens: ", tokens, " is not in [1, ", settings_.max_tokens, "]"));
  }
  return CostOf(*MakeItem(tokens));
}

absl::StatusOr<double> LongformerModel::Time(const LongformerItem& item,
                                             EncoderTimes* times) const {
  const Item* const items[] = {&item};
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<Run> run = BeginTimed(items, times);
  while (run->Advance()) {
  }
  if (absl::Status status = run->Take(0).status(); !status.ok()) return status;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Rates from a document long enough to fill panels and windows; what a short one takes beyond its
// operations is the fixed price of a run. The first run of each pays for code generation.
absl::Status LongformerModel::WarmUp() {
  if (!settings_.directory.serving.warmup) return absl::OkStatus();
  constexpr int kLong = 768, kShort = 16, kRuns = 3;
  const auto item = MakeItem(std::min(settings_.max_tokens, kLong));
  const auto brief = MakeItem(std::min(settings_.max_tokens, kShort));
  const LongformerWork work = WorkOfItem(*item);
  double fixed = 0;
  for (int i = 0; i < kRuns; ++i) {
    EncoderTimes times;
    absl::StatusOr<double> seconds = Time(*item, &times);
    if (!seconds.ok()) return seconds.status();
    LongformerRates rates;
    rates.linear_seconds = times.linears / work.linear;
    rates.attention_seconds = times.attention / std::max(work.attention, 1.0);
    rates.row_seconds = times.rest / work.rows;
    rates.fixed_seconds = 0;
    seconds = Time(*brief, nullptr);
    if (!seconds.ok()) return seconds.status();
    fixed = std::max(5e-5, *seconds - rates.Seconds(WorkOfItem(*brief)));
    rates.fixed_seconds = fixed;
    rates_ = rates;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelInfo> DescribeLongformer(const ModelDirectory& directory) {
  absl::StatusOr<LongformerConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<double> parameters =
      CheckLongformerWeights(*config, directory.checkpoint, directory.path);
  if (!parameters.ok()) return parameters.status();
  ModelInfo info = LongformerInfo(*config, directory.tokenizer.has_value());
  info.max_tokens = MaxTokens(directory, *config);
  info.parameters = *parameters;
  return info;
}

absl::StatusOr<std::unique_ptr<Model>> LoadLongformer(ModelDirectory directory,
                                                      const LoadOptions& options) {
  absl::StatusOr<LongformerConfig> config = ReadConfig(directory);
  if (!config.ok()) return config.status();
  absl::StatusOr<ComputeChoice> choice = ChooseCompute(
      options.dtype, directory.serving.dtype.value_or(""), directory.common.stored_dtype);
  if (!choice.ok()) return choice.status();
  const int max_tokens = MaxTokens(directory, *config);
  auto model = std::make_unique<LongformerModel>(
      Settings{std::move(directory), *std::move(config), max_tokens}, *std::move(choice));
  if (absl::Status status = model->LoadWeights(); !status.ok()) return status;
  return model;
}

std::unique_ptr<Run> BeginTimed(const Model& model, std::span<const Item* const> items,
                                EncoderTimes* times) {
  return static_cast<const LongformerModel&>(model).BeginTimed(items, times);
}

}  // namespace longview::models
