#include "tests/server/api/backend.h"

#include <utility>

#include "absl/time/clock.h"
#include "server/errors.h"
#include "server/store/model_errors.h"

namespace longview::testing {

using server::Completed;
using server::ModelHandle;
using server::ModelState;
using server::ModelStatus;

namespace {

ModelHandle MakeServed(const std::string& name, std::unique_ptr<models::Model> model) {
  auto served = std::make_shared<server::ServedModel>();
  served->name = name;
  served->version = std::string("1");
  served->model = std::move(model);
  return served;
}

ModelHandle MakeServed(const std::string& name, FakeOptions options) {
  return MakeServed(name, std::make_unique<FakeModel>(std::move(options)));
}

template <typename Models>
absl::Status NotFound(std::string_view name, const Models& models) {
  std::vector<std::string> names;
  for (const auto& [known, status] : models) names.push_back(known);
  return server::ModelNotFound(name, names);
}

}  // namespace

void TestStore::Add(const std::string& name, FakeOptions options) {
  {
    std::lock_guard lock(mutex_);
    models_[name] = {name, "1", ModelState::kReady, "", MakeServed(name, std::move(options))};
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
      found->second.handle = MakeServed(std::string(name), FakeOptions());
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

void TestEngine::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (worker_.joinable()) worker_.join();
}

server::CallId TestEngine::Submit(ModelHandle model, models::Request request,
                                  const server::CallInfo& info, server::Reply<Completed> done) {
  Job job;
  job.model = std::move(model);
  job.request = std::move(request);
  job.deadline = info.deadline;
  job.done = std::move(done);
  return Add(std::move(job));
}

std::vector<server::CallId> TestEngine::SubmitTogether(
    server::ModelHandle model, std::vector<models::Request> requests, const server::CallInfo& info,
    std::vector<server::Reply<server::Completed>> done) {
  std::vector<server::CallId> ids;
  for (size_t i = 0; i < requests.size(); ++i) {
    ids.push_back(Submit(model, std::move(requests[i]), info, std::move(done[i])));
  }
  return ids;
}

server::CallId TestEngine::Generate(ModelHandle model, models::Request request,
                                    const server::CallInfo& info, server::GenerationEvents events,
                                    server::Reply<Completed> done) {
  Job job;
  job.model = std::move(model);
  job.request = std::move(request);
  job.deadline = info.deadline;
  job.done = std::move(done);
  job.events = std::move(events);
  return Add(std::move(job));
}

void TestEngine::NewDocument(ModelHandle model,
                             server::Reply<std::shared_ptr<models::Document>> done) {
  Job job;
  job.task = [model = std::move(model), done = std::move(done)]() mutable {
    done(model->model->NewDocument());
  };
  Add(std::move(job));
}

server::CallId TestEngine::Add(Job job) {
  std::lock_guard lock(mutex_);
  if (job.task == nullptr) {
    last_request_ = job.request;
    last_deadline_ = job.deadline;
    ++num_submitted_;
  }
  const server::CallId id = job.id = next_id_++;
  jobs_.push_back(std::make_unique<Job>(std::move(job)));
  changed_.notify_all();
  return id;
}

void TestEngine::Cancel(server::CallId id) {
  std::lock_guard lock(mutex_);
  cancelled_.insert(id);
  ++num_cancelled_;
}

void TestEngine::PlanChunks(ModelHandle model, models::Request request, const server::CallInfo&,
                            std::shared_ptr<const std::atomic<bool>>,
                            server::Reply<models::ChunkPlan> done) {
  Job job;
  job.task = [model = std::move(model), request = std::move(request),
              done = std::move(done)]() mutable { done(model->model->PlanChunks(request)); };
  Add(std::move(job));
}

void TestEngine::Estimate(ModelHandle model, std::optional<models::Request> request, int tokens,
                          const server::CallInfo&, std::shared_ptr<const std::atomic<bool>>,
                          server::Reply<server::Estimated> done) {
  server::Estimated estimated;
  if (request) {
    const auto item = model->model->Prepare(*request);
    if (!item.ok()) return done(item.status());
    estimated.cost = (*item)->cost();
    estimated.usage = (*item)->usage();
  } else {
    const auto cost = model->model->EstimateTokens(tokens);
    if (!cost.ok()) return done(cost.status());
    estimated.cost = *cost;
    estimated.usage.input_tokens = tokens;
  }
  done(estimated);
}

int TestEngine::submitted() const {
  std::lock_guard lock(mutex_);
  return num_submitted_;
}

int TestEngine::cancelled() const {
  std::lock_guard lock(mutex_);
  return num_cancelled_;
}

void TestEngine::RefuseAll() {
  std::lock_guard lock(mutex_);
  refuse_ = true;
}

models::Request TestEngine::last_request() const {
  std::lock_guard lock(mutex_);
  return last_request_;
}

absl::Time TestEngine::last_deadline() const {
  std::lock_guard lock(mutex_);
  return last_deadline_;
}

void TestEngine::Work() {
  for (;;) {
    std::unique_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    if (job->task != nullptr) {
      job->task();
    } else {
      job->done(job->events ? RunGeneration(*job) : Run(*job));
    }
  }
}

absl::Status TestEngine::Stopped(const Job& job) {
  std::lock_guard lock(mutex_);
  if (refuse_) {
    return server::MakeError(absl::StatusCode::kResourceExhausted, "the queue is full",
                             {.reason = "QUEUE_FULL", .retry_after = absl::Milliseconds(1500)});
  }
  if (cancelled_.contains(job.id)) return absl::CancelledError("cancelled");
  const bool late = server::SteadyNow() > job.deadline;
  return late ? absl::DeadlineExceededError("the deadline has passed") : absl::OkStatus();
}

absl::StatusOr<Completed> TestEngine::RunGeneration(Job& job) {
  models::Model& model = *job.model->model;
  const auto item = model.Prepare(job.request);
  if (!item.ok()) return item.status();
  if (const absl::Status status = Stopped(job); !status.ok()) return status;
  if (job.events->on_prepared != nullptr) {
    if (absl::Status status = job.events->on_prepared((*item)->cost()); !status.ok()) return status;
  }
  if (job.events->on_admitted != nullptr) job.events->on_admitted();
  auto started = model.Start(**item);
  if (!started.ok()) return started.status();
  models::Generation& generation = **started;
  while (!generation.done()) {
    if (const absl::Status status = Stopped(job); !status.ok()) return status;
    const models::StepGrant grants[] = {{&generation, generation.need().prefill}};
    const auto run = model.BeginStep(grants);
    while (run->Advance()) {
    }
    if (job.events->on_pieces == nullptr) continue;
    std::vector<models::Piece> pieces = generation.TakePieces();
    if (!pieces.empty()) job.events->on_pieces(std::move(pieces));
  }
  auto answer = generation.Take();
  if (!answer.ok()) return answer.status();
  Completed completed{*std::move(answer), 0.001, 0.002, 0.004, 1};
  if (job.request.extend_document) completed.state_bytes = job.request.document->state_bytes();
  return completed;
}

absl::StatusOr<Completed> TestEngine::Run(const Job& job) {
  const auto item = job.model->model->Prepare(job.request);
  if (!item.ok()) return item.status();
  const models::Item* items[] = {item->get()};
  const auto run = job.model->model->Begin(items);
  while (run->Advance()) {
  }
  if (const absl::Status status = Stopped(job); !status.ok()) return status;
  auto answer = run->Take(0);
  if (!answer.ok()) return answer.status();
  return Completed{*std::move(answer), 0.001, 0.002, 0.004, 1};
}

Backend::Backend(server::ApiOptions options, server::ByteLimits limits)
    : bytes(limits),
      documents(std::in_place, engine, store, clock, server::DocumentsOptions()),
      metrics("1.2.3", "abc", "cpu"),
      log(server::LogFormat::kText, server::LogLevel::kError),
      api(store, engine, *documents, lifecycle, metrics, log, std::move(options)) {
  FakeOptions one;
  one.control = control;
  store.Add("one", one);
  lifecycle.set_phase(server::Lifecycle::Phase::kServing);
}

Backend::~Backend() {
  documents.reset();
  engine.Stop();
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
