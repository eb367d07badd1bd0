#include "tests/support/fake_generator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "models/status_macros.h"
#include "tests/support/fake_generation.h"

namespace longview::testing {
namespace {

class FakeStep : public models::Run {
 public:
  FakeStep(const GeneratorOptions& options, std::span<const models::StepGrant> grants)
      : options_(options),
        grants_(grants.begin(), grants.end()),
        wanted_(grants.size(), true),
        seconds_(options.step_seconds) {
    ++options_.control->live_runs;
    ++options_.control->steps;
    for (const models::StepGrant& grant : grants_) {
      const models::Generation::Need need = grant.generation->need();
      seconds_ += grant.prefill > 0 ? grant.prefill * need.prefill_seconds : need.decode_seconds;
    }
  }
  ~FakeStep() override { --options_.control->live_runs; }

  bool Advance() override {
    options_.control->advance.Pass();
    if (options_.pace > 0)
      absl::SleepFor(absl::Seconds(seconds_ * options_.pace / options_.layers));
    if (const absl::Status device = FakeDeviceStatus(options_.lost); !device.ok()) {
      for (const models::StepGrant& grant : grants_) {
        static_cast<FakeGeneration&>(*grant.generation).Fail(device);
      }
      return false;
    }
    if (++layer_ < options_.layers) return true;
    for (size_t i = 0; i < grants_.size(); ++i) {
      if (!wanted_[i]) continue;
      static_cast<FakeGeneration&>(*grants_[i].generation).Step(grants_[i].prefill);
    }
    return false;
  }

  void Drop(int i) override {
    wanted_[static_cast<size_t>(i)] = false;
    ++options_.control->dropped;
  }

  absl::StatusOr<models::Answer> Take(int) override {
    return absl::InternalError("results of a step are taken from its generations");
  }

 private:
  const GeneratorOptions& options_;
  const std::vector<models::StepGrant> grants_;
  std::vector<bool> wanted_;
  double seconds_;
  int layer_ = 0;
};

std::string PromptOf(const models::Request& request) {
  if (request.text) return *request.text;
  std::string prompt;
  if (request.tokens) prompt.assign(request.tokens->ids.begin(), request.tokens->ids.end());
  return prompt;
}

}  // namespace

FakeGenerator::FakeGenerator(GeneratorOptions options) : options_(std::move(options)) {
  info_.family = "fake";
  info_.architecture = "FakeGenerator";
  info_.task = models::Task::kTextGeneration;
  info_.tasks = {models::Task::kTextGeneration};
  info_.max_tokens = options_.max_tokens;
  info_.has_tokenizer = true;
  info_.dtype = "fp32";
  info_.device = options_.device;
  info_.parameters = 1000;
  info_.memory_bytes = 4000;
  info_.prefill_alignment = options_.prefill_alignment;
  info_.inputs = {{"text", models::TensorType::kBytes, {-1}},
                  {"input_ids", models::TensorType::kInt64, {-1, -1}},
                  {"attention_mask", models::TensorType::kInt64, {-1, -1}}};
  info_.outputs = {{"text", models::TensorType::kBytes, {-1}},
                   {"token_ids", models::TensorType::kInt64, {-1, -1}},
                   {"num_tokens", models::TensorType::kInt64, {-1}},
                   {"token_logprobs", models::TensorType::kFp32, {1, -1}}};
}

absl::StatusOr<std::unique_ptr<models::Item>> FakeGenerator::Prepare(
    const models::Request& request) const {
  if (request.task != models::Task::kTextGeneration) {
    return absl::UnimplementedError(
        absl::StrCat("the model has no task ", std::string(models::TaskName(request.task))));
  }
  models::Request prepared = request;
  if (!prepared.generation) prepared.generation.emplace();
  const models::GenerationOptions& generation = *prepared.generation;
  if (generation.temperature && !(*generation.temperature >= 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature: ", *generation.temperature, " is not 0 or more"));
  }
  std::string prompt = PromptOf(request);
  if (prompt.find(options_.fail_prepare) != std::string::npos) {
    return absl::InvalidArgumentError("text: fake failure of Prepare");
  }
  if (prompt.empty()) return absl::InvalidArgumentError("text: 0 tokens; at least 1 is needed");
  const int samples = generation.num_return_sequences.value_or(1);
  const int fresh = request.extend_document ? 0 : generation.max_new_tokens.value_or(16) * samples;
  const int read = static_cast<int>(prompt.size());
  const int forked = request.document && !request.extend_document ? request.document->tokens() : 0;
  if (read + forked + fresh > options_.max_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("text: ", read + forked, " tokens and ", fresh,
                     " to generate are more than the model's limit of ", options_.max_tokens));
  }
  const models::Cost cost = {
      .seconds = read * options_.prefill_seconds + fresh * options_.decode_seconds,
      .prompt_seconds = read * options_.prefill_seconds,
      .state_bytes = (read + forked + fresh) * options_.token_bytes,
      .workspace_bytes = 0,
      .token_bytes = options_.answer_token_bytes};
  return std::make_unique<GeneratorItem>(std::move(prepared), std::move(prompt), cost,
                                         options_.control);
}

absl::StatusOr<models::Cost> FakeGenerator::EstimateTokens(int tokens) const {
  return models::Cost{.seconds = tokens * options_.prefill_seconds,
                      .prompt_seconds = tokens * options_.prefill_seconds,
                      .state_bytes = tokens * options_.token_bytes,
                      .workspace_bytes = 0};
}

std::unique_ptr<models::Run> FakeGenerator::Begin(std::span<const models::Item* const>,
                                                  models::RunTimes*) const {
  return nullptr;  // A generator has steps instead.
}

absl::StatusOr<std::unique_ptr<models::Generation>> FakeGenerator::Start(const models::Item& item) {
  options_.control->start.Pass();
  RETURN_IF_ERROR(FakeDeviceStatus(options_.lost));
  const auto& generator_item = static_cast<const GeneratorItem&>(item);
  if (generator_item.prompt.find(options_.fail_start) != std::string::npos) {
    return absl::ResourceExhaustedError("fake failure of Start");
  }
  return std::make_unique<FakeGeneration>(generator_item, options_);
}

std::unique_ptr<models::Run> FakeGenerator::BeginStep(std::span<const models::StepGrant> grants) {
  return std::make_unique<FakeStep>(options_, grants);
}

absl::StatusOr<std::shared_ptr<models::Document>> FakeGenerator::NewDocument() {
  RETURN_IF_ERROR(FakeDeviceStatus(options_.lost));
  return std::make_shared<FakeDocument>(options_.control, options_.token_bytes);
}

models::CacheUse FakeGenerator::cache() const {
  return {.used = static_cast<double>(options_.control->state_bytes),
          .evictable = 0,
          .capacity = options_.cache_bytes,
          .used_by_all = static_cast<double>(options_.control->state_bytes)};
}

}  // namespace longview::testing
