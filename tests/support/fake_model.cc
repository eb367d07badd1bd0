#include "tests/support/fake_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "models/pauses.h"
#include "models/status_macros.h"
#include "models/stop_scope.h"
#include "tests/support/fake_answers.h"

namespace longview::testing {

using models::Task;

void Gate::Close() {
  std::lock_guard lock(mutex_);
  open_ = false;
  admitted_ = 0;
  changed_.notify_all();
}

void Gate::Open() {
  std::lock_guard lock(mutex_);
  open_ = true;
  changed_.notify_all();
}

void Gate::Admit(int count) {
  std::lock_guard lock(mutex_);
  admitted_ += count;
  changed_.notify_all();
}

void Gate::Pass() {
  std::unique_lock lock(mutex_);
  ++waiting_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return open_ || admitted_ > 0; });
  --waiting_;
  if (!open_) --admitted_;
}

bool Gate::AwaitWaiting(int count, absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                           [&] { return !open_ && waiting_ - admitted_ >= count; });
}

absl::Status FakeDeviceStatus(const FakeDevicePtr& lost) {
  if (lost == nullptr || !*lost) return absl::OkStatus();
  absl::Status status = absl::InternalError("fake: an illegal address");
  status.SetPayload(std::string(models::kDeviceLost), absl::Cord());
  return status;
}

namespace {

class FakeRun : public models::Run {
 public:
  FakeRun(const FakeOptions& options, std::span<const models::Item* const> items)
      : options_(options) {
    for (const models::Item* item : items) {
      items_.push_back(static_cast<const FakeItem*>(item));
    }
    wanted_.assign(items_.size(), true);
    ++options_.control->live_runs;
  }
  ~FakeRun() override { --options_.control->live_runs; }

  bool Advance() override {
    FakeControl& control = *options_.control;
    control.advance.Pass();
    const auto wanted = std::count(wanted_.begin(), wanted_.end(), true);
    // In loops, as models compute.
    constexpr absl::Duration kLoop = absl::Milliseconds(10);
    for (absl::Duration left = options_.layer_item_time * wanted;
         left > absl::ZeroDuration() && !control.hurry;) {
      absl::SleepFor(std::min(left, kLoop));
      left -= kLoop;
      models::PauseBetweenLoops();
    }
    ++control.layers_run;
    control.item_layers += wanted;
    device_ = FakeDeviceStatus(options_.lost);
    if (!device_.ok()) return false;
    return ++layer_ < options_.layers;
  }

  void Drop(int i) override {
    wanted_[i] = false;
    ++options_.control->dropped;
  }

  absl::StatusOr<models::Answer> Take(int i) override {
    ++options_.control->taken;
    if (!device_.ok()) return device_;
    const FakeItem& item = *items_[i];
    if (item.fail_take) return absl::InternalError("fake failure of Take");
    models::Answer answer = MakeFakeAnswer(item, options_);
    if (item.not_a_number && !answer.labels.empty()) answer.labels[0].score = std::nanf("");
    return answer;
  }

 private:
  const FakeOptions& options_;
  std::vector<const FakeItem*> items_;
  std::vector<bool> wanted_;
  absl::Status device_;
  int layer_ = 0;
};

void AppendBytes(std::string_view text, std::vector<int32_t>& ids) {
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
}

void AppendIds(const models::TokenInput& tokens, std::vector<int32_t>& ids) {
  if (tokens.attention_mask.empty()) {
    ids.insert(ids.end(), tokens.ids.begin(), tokens.ids.end());
    return;
  }
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    if (tokens.attention_mask[i]) ids.push_back(tokens.ids[i]);
  }
}

}  // namespace

FakeModel::FakeModel(FakeOptions options) : options_(std::move(options)) {
  info_ = MakeFakeInfo(options_);
  ++options_.control->live_models;
}

FakeModel::~FakeModel() { --options_.control->live_models; }

models::Cost FakeModel::CostOf(int tokens) const {
  return {.seconds = options_.item_seconds + tokens * options_.token_seconds,
          .state_bytes = tokens * options_.token_state_bytes,
          .workspace_bytes = tokens * options_.token_workspace_bytes};
}

absl::StatusOr<std::vector<int32_t>> FakeModel::Tokens(const models::Request& request,
                                                       int* truncated) const {
  std::vector<int32_t> ids;
  const bool has_text = request.text || request.text_pair || request.question;
  if (has_text && !options_.has_tokenizer) {
    return absl::InvalidArgumentError("text: the model has no tokenizer; send token ids");
  }
  for (const auto* text : {&request.question, &request.text, &request.text_pair}) {
    if (*text) AppendBytes(**text, ids);
  }
  for (const auto* tokens : {&request.tokens, &request.tokens_pair}) {
    if (*tokens) AppendIds(**tokens, ids);
  }
  for (const std::string& choice : request.choices) AppendBytes(choice, ids);
  for (const models::TokenInput& choice : request.choice_tokens) AppendIds(choice, ids);

  for (const int32_t id : ids) {
    if (id < 0 || id >= options_.vocabulary) {
      return absl::InvalidArgumentError(
          absl::StrCat("token_ids: ", id, " is not in [0, ", options_.vocabulary, ")"));
    }
  }
  if (ids.empty()) return absl::InvalidArgumentError("text: 0 tokens; at least 1 is needed");
  if (static_cast<int>(ids.size()) > options_.max_tokens) {
    if (!request.truncate) {
      return absl::InvalidArgumentError(absl::StrCat("text: ", ids.size(),
                                                     " tokens are more than the model's limit of ",
                                                     options_.max_tokens));
    }
    *truncated = static_cast<int>(ids.size()) - options_.max_tokens;
    ids.resize(options_.max_tokens);
  }
  return ids;
}

absl::StatusOr<models::ChunkPlan> FakeModel::PlanChunks(const models::Request& request) const {
  models::ChunkPlan plan;
  plan.chunking = models::Chunking::kSeparate;
  const int size = request.chunk_tokens.value_or(1),
            length = static_cast<int>(request.text->size());
  for (int begin = 0; begin < length; begin += size) {
    models::Request item;
    item.task = request.task;
    item.text = request.text->substr(static_cast<size_t>(begin), static_cast<size_t>(size));
    item.tensors = request.tensors;
    item.typed = request.typed;
    plan.items.insert(plan.items.begin(), std::move(item));
    plan.ranges.push_back({begin, std::min(begin + size, length)});
  }
  for (int i = static_cast<int>(plan.items.size()) - 1; i >= 0; --i) plan.sources.push_back({i, 0});
  return plan;
}

absl::StatusOr<std::unique_ptr<models::Item>> FakeModel::Prepare(
    const models::Request& request) const {
  options_.control->prepare.Pass();
  ++options_.control->prepared;
  if (std::find(info_.tasks.begin(), info_.tasks.end(), request.task) == info_.tasks.end()) {
    return absl::UnimplementedError(
        absl::StrCat("the model has no task ", std::string(models::TaskName(request.task))));
  }
  for (const std::string& name : request.tensors) {
    if (!HasFakeTensor(request.task, name)) {
      return absl::InvalidArgumentError(absl::StrCat("outputs: unknown name ", name));
    }
  }
  const std::string_view text = request.text ? std::string_view(*request.text) : "";
  if (text.find(options_.fail_prepare) != std::string::npos) {
    return absl::InvalidArgumentError("text: fake failure of Prepare");
  }
  const absl::Time give_up = absl::Now() + absl::Seconds(20);
  while (text.find(options_.endless_prepare) != std::string::npos) {
    RETURN_IF_ERROR(models::CheckStop());
    if (absl::Now() > give_up) return absl::InternalError("text: prepared for 20 s");
    absl::SleepFor(absl::Milliseconds(1));
  }
  if (request.pixel_values) {  // A pixel costs what a token does.
    const int width = request.pixel_values->width, height = request.pixel_values->height;
    const int64_t pixels = int64_t{width} * height;
    if (pixels > options_.max_tokens) {
      return absl::InvalidArgumentError(absl::StrCat("width: ", width, " x ", height, " is ",
                                                     pixels, " pixels, the limit is ",
                                                     options_.max_tokens));
    }
    return std::make_unique<FakeItem>(std::vector<int32_t>(), request,
                                      CostOf(static_cast<int>(pixels)), 0, options_.control);
  }
  if (request.dimensions && *request.dimensions != options_.embedding_width) {
    return absl::InvalidArgumentError(
        absl::StrCat("dimensions: ", *request.dimensions, " is not the width"));
  }
  int truncated = 0;
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, Tokens(request, &truncated));
  const models::Cost cost = CostOf(static_cast<int>(ids.size()));
  auto item =
      std::make_unique<FakeItem>(std::move(ids), request, cost, truncated, options_.control);
  item->fail_take = text.find(options_.fail_take) != std::string::npos;
  item->not_a_number = text.find(options_.not_a_number) != std::string::npos;
  return item;
}

absl::StatusOr<models::Cost> FakeModel::EstimateTokens(int tokens) const {
  if (tokens < 1 || tokens > options_.max_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_tokens: ", tokens, " is not in [1, ", options_.max_tokens, "]"));
  }
  return CostOf(tokens);
}

std::unique_ptr<models::Run> FakeModel::Begin(std::span<const models::Item* const> items,
                                              models::RunTimes*) const {
  ++options_.control->begun;
  options_.control->begun_items += static_cast<int64_t>(items.size());
  return std::make_unique<FakeRun>(options_, items);
}

absl::Status FakeModel::WarmUp() {
  options_.control->warm_up.Pass();
  RETURN_IF_ERROR(FakeDeviceStatus(options_.lost));
  return options_.warm_up_status;
}

}  // namespace longview::testing
