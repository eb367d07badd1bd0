#include "tests/server/api/backend.h"

#include <atomic>
#include <span>
#include <sstream>
#include <utility>

#include "gtest/gtest.h"
#include "server/errors.h"
#include "server/store/model_errors.h"

namespace longview::testing {

using server::ModelHandle;
using server::ModelState;
using server::ModelStatus;

namespace {

// A model that notes what it is asked.
class AskedModel : public models::Model {
 public:
  AskedModel(std::unique_ptr<models::Model> model, std::shared_ptr<Asked> asked)
      : model_(std::move(model)), asked_(std::move(asked)) {}

  const models::ModelInfo& info() const override { return model_->info(); }
  absl::StatusOr<std::unique_ptr<models::Item>> Prepare(
      const models::Request& request) const override {
    asked_->Note(request);
    return model_->Prepare(request);
  }
  absl::StatusOr<models::ChunkPlan> PlanChunks(const models::Request& request) const override {
    return model_->PlanChunks(request);
  }
  absl::StatusOr<models::Cost> EstimateTokens(int tokens) const override {
    return model_->EstimateTokens(tokens);
  }
  std::unique_ptr<models::Run> Begin(std::span<const models::Item* const> items,
                                     models::RunTimes* times) const override {
    return model_->Begin(items, times);
  }
  absl::Status WarmUp() override { return model_->WarmUp(); }
  absl::StatusOr<std::unique_ptr<models::Generation>> Start(const models::Item& item) override {
    return model_->Start(item);
  }
  std::unique_ptr<models::Run> BeginStep(std::span<const models::StepGrant> grants) override {
    return model_->BeginStep(grants);
  }
  double StepSeconds() const override { return model_->StepSeconds(); }
  absl::StatusOr<std::shared_ptr<models::Document>> NewDocument() override {
    return model_->NewDocument();
  }
  models::CacheUse cache() const override { return model_->cache(); }
  double image_plan_bytes() const override { return model_->image_plan_bytes(); }

 private:
  const std::unique_ptr<models::Model> model_;
  const std::shared_ptr<Asked> asked_;
};

template <typename Models>
absl::Status NotFound(std::string_view name, const Models& models) {
  std::vector<std::string> names;
  for (const auto& [known, status] : models) names.push_back(known);
  return server::ModelNotFound(name, names);
}

}  // namespace

void Asked::Note(const models::Request& request) {
  std::lock_guard lock(mutex_);
  ++count_;
  last_ = request;
}

int Asked::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

models::Request Asked::last() const {
  std::lock_guard lock(mutex_);
  return last_;
}

ModelHandle TestStore::MakeServed(const std::string& name, std::unique_ptr<models::Model> model) {
  auto served = std::make_shared<server::ServedModel>();
  served->name = name;
  served->version = "1";
  served->id = ++last_id_;
  served->model = std::make_unique<AskedModel>(std::move(model), asked_);
  metrics_.ModelLoaded({served->name, served->version}, 1, 1);
  return served;
}

void TestStore::Add(const std::string& name, FakeOptions options) {
  {
    std::lock_guard lock(mutex_);
    models_[name] = {name, "1", ModelState::kReady, "",
                     MakeServed(name, std::make_unique<FakeModel>(std::move(options)))};
  }
  changes().Notify();
}

void TestStore::AddGenerator(const std::string& name, GeneratorOptions options) {
  std::lock_guard lock(mutex_);
  auto model = std::make_unique<FakeGenerator>(std::move(options));
  models_[name] = {name, "1", ModelState::kReady, "", MakeServed(name, std::move(model))};
}

void TestStore::AddUnloaded(const std::string& name, ModelState state, const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    models_[name] = {name, "1", state, reason, nullptr};
  }
  changes().Notify();
}

absl::StatusOr<ModelHandle> TestStore::Find(std::string_view name, std::string_view version) const {
  std::lock_guard lock(mutex_);
  const auto found = models_.find(std::string(name));
  if (found == models_.end() || (!version.empty() && version != "1"))
    return NotFound(name, models_);
  if (found->second.state == ModelState::kLoading) {
    return server::MakeError(absl::StatusCode::kUnavailable, "the model is loading",
                             {.reason = "MODEL_LOADING", .retry_after = absl::Seconds(2)});
  }
  if (found->second.handle == nullptr) return NotFound(name, models_);
  return found->second.handle;
}

absl::StatusOr<ModelHandle> TestStore::FindForTask(std::string_view name, std::string_view version,
                                                   models::Task task) const {
  if (!name.empty()) return Find(name, version);
  ModelHandle only;
  for (const ModelStatus& status : List()) {
    if (status.handle == nullptr || status.handle->model->info().task != task) continue;
    if (only != nullptr) return absl::InvalidArgumentError("model: several models have the task");
    only = status.handle;
  }
  if (only == nullptr) return NotFound(name, std::map<std::string, ModelStatus>());
  return only;
}

std::vector<ModelStatus> TestStore::List() const {
  std::lock_guard lock(mutex_);
  std::vector<ModelStatus> all;
  for (const auto& [name, status] : models_) all.push_back(status);
  return all;
}

void TestStore::Load(std::string_view name, Done done) {
  absl::Status status;
  {
    std::lock_guard lock(mutex_);
    status = NotFound(name, models_);
    const auto found = models_.find(std::string(name));
    if (found != models_.end()) {
      found->second.state = ModelState::kReady;
      found->second.reason.clear();
      found->second.handle =
          MakeServed(std::string(name), std::make_unique<FakeModel>(FakeOptions()));
      status = absl::OkStatus();
    }
  }
  changes().Notify();
  done(status);
}

void TestStore::Unload(std::string_view name, Done done) {
  absl::Status status;
  {
    std::lock_guard lock(mutex_);
    status = NotFound(name, models_);
    const auto found = models_.find(std::string(name));
    if (found != models_.end()) {
      found->second.state = ModelState::kUnavailable;
      found->second.reason = "unloaded";
      found->second.handle = nullptr;
      status = absl::OkStatus();
    }
  }
  changes().Notify();
  done(status);
}

server::EngineOptions TestEngineOptions() {
  server::EngineOptions options;
  options.prepare_threads = 1;
  return options;
}

Backend::Backend(server::ApiOptions options, server::ByteLimits limits,
                 const server::EngineOptions& engine_options)
    : bytes(limits),
      metrics("1.2.3", "abc", "cpu"),
      log(server::LogFormat::kText, server::LogLevel::kError),
      store(metrics),
      engine(engine_options, lifecycle, metrics),
      documents(std::in_place, engine, store, clock, server::DocumentsOptions()),
      api(store, engine, *documents, lifecycle, metrics, log, std::move(options)) {
  FakeOptions one;
  one.control = control;
  store.Add("one", one);
  lifecycle.set_phase(server::Lifecycle::Phase::kServing);
}

Backend::~Backend() {
  held->advance.Open();
  documents.reset();
  engine.Shutdown();
}

int Backend::Counted(const std::string& name, const std::string& label) const {
  double sum = 0;
  std::istringstream lines(metrics.Serialize());
  for (std::string line; std::getline(lines, line);) {
    const bool counts = line.starts_with(name + "{") && line.find(label) != std::string::npos;
    if (counts) sum += std::stod(line.substr(line.rfind(' ')));
  }
  return static_cast<int>(sum);
}

int Backend::ended_early() const {
  return cancelled() + Counted("longview_rejected_total", R"(reason="deadline")") +
         Counted("longview_wasted_tokens_total", R"(reason="deadline")");
}

void Backend::AddSlow() {
  FakeOptions slow;
  slow.item_seconds = 3600;
  store.Add("slow", slow);
}

double Backend::SecondsLeft(const std::string& message) {
  const std::string before = " waiting, and ";
  const size_t begin = message.find(before);
  return begin == std::string::npos ? -1 : std::stod(message.substr(begin + before.size()));
}

namespace {

// Submits an item that nobody waits for.
void Leave(server::Engine& engine, const server::ModelStore& store, std::string_view model,
           const std::string& client) {
  models::Request request;
  request.tokens.emplace().ids = {1};
  server::CallInfo info = TestCall();
  info.client = client;
  engine.Submit(store.Find(model, "").value(), std::move(request), info, [](auto) {});
}

}  // namespace

void Backend::FillQueue(const std::string& client) {
  held->advance.Close();
  FakeOptions runs;
  runs.item_seconds = runs.token_seconds = 0;
  runs.control = held;
  FakeOptions waits = runs;
  waits.item_seconds = server::SchedulerOptions().max_queue_seconds + 1;
  store.Add("runs", runs);
  store.Add("waits", waits);
  Leave(engine, store, "runs", client);
  EXPECT_TRUE(held->advance.AwaitWaiting(1, absl::Seconds(20)));
  Leave(engine, store, "waits", client);
  EXPECT_EQ(engine.waiting(), 1u);
}

void Backend::LoseDevice() {
  FakeOptions options;
  options.lost = std::make_shared<std::atomic<bool>>(true);
  store.Add("lost", options);
  Leave(engine, store, "lost", "tester");
  const absl::Time until = server::SteadyNow() + absl::Seconds(20);
  EXPECT_TRUE(engine.AwaitIdle(until));
  // The device's thread gives it up after the call's end.
  while (engine.Able() && server::SteadyNow() < until) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_FALSE(engine.Able());
}

server::CallInfo TestCall(std::string_view method) {
  server::CallInfo info;
  info.request_id = "test-request";
  info.client = "tester";
  info.arrival = server::SteadyNow();
  info.api = "grpc";
  info.method = method;
  return info;
}

}  // namespace longview::testing
