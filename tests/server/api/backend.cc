#include "tests/server/api/backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors.h"

namespace longview::testing {

using server::Completed;
using server::ModelHandle;
using server::ModelState;
using server::ModelStatus;

namespace {

ModelHandle MakeServed(const std::string& name, FakeOptions options) {
  auto served = std::make_shared<server::ServedModel>();
  served->name = name;
  served->version = std::string("1");
  served->model = std::make_unique<FakeModel>(std::move(options));
  return served;
}

absl::Status NotFound(std::string_view name) {
  return server::MakeError(absl::StatusCode::kNotFound,
                           absl::StrCat("model ", server::Quoted(name), " is not loaded"),
                           {.reason = "MODEL_NOT_FOUND"});
}

}  // namespace

void TestStore::Add(const std::string& name, FakeOptions options) {
  std::lock_guard lock(mutex_);
  models_[name] = {name, "1", ModelState::kReady, "", MakeServed(name, std::move(options))};
}

void TestStore::AddUnloaded(const std::string& name, ModelState state, const std::string& reason) {
  std::lock_guard lock(mutex_);
  models_[name] = {name, "1", state, reason, nullptr};
}

absl::StatusOr<ModelHandle> TestStore::Find(std::string_view name, std::string_view version) const {
  std::lock_guard lock(mutex_);
  const auto found = models_.find(std::string(name));
  if (found == models_.end() || (!version.empty() && version != "1")) return NotFound(name);
  if (found->second.state == ModelState::kLoading) {
    return server::MakeError(absl::StatusCode::kUnavailable, "the model is loading",
                             {.reason = "MODEL_LOADING", .retry_after = absl::Seconds(2)});
  }
  if (found->second.handle == nullptr) return NotFound(name);
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
  if (only == nullptr) return NotFound(name);
  return only;
}

std::vector<ModelStatus> TestStore::List() const {
  std::lock_guard lock(mutex_);
  std::vector<ModelStatus> all;
  for (const auto& [name, status] : models_) all.push_back(status);
  return all;
}

void TestStore::Load(std::string_view name, Done done) {
  absl::Status status = NotFound(name);
  {
    std::lock_guard lock(mutex_);
    const auto found = models_.find(std::string(name));
    if (found != models_.end()) {
      found->second.state = ModelState::kReady;
      found->second.reason.clear();
      found->second.handle = MakeServed(std::string(name), {});
      status = absl::OkStatus();
    }
  }
  done(status);
}

void TestStore::Unload(std::string_view name, Done done) {
  absl::Status status = NotFound(name);
  {
    std::lock_guard lock(mutex_);
    const auto found = models_.find(std::string(name));
    if (found != models_.end()) {
      found->second.state = ModelState::kUnavailable;
      found->second.reason = "unloaded";
      found->second.handle = nullptr;
      status = absl::OkStatus();
    }
  }
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
  std::lock_guard lock(mutex_);
  last_request_ = request;
  last_deadline_ = info.deadline;
  ++num_submitted_;
  const server::CallId id = next_id_++;
  jobs_.push_back(std::make_unique<Job>(
      Job{id, std::move(model), std::move(request), info.deadline, std::move(done)}));
  changed_.notify_all();
  return id;
}

void TestEngine::Cancel(server::CallId id) {
  std::lock_guard lock(mutex_);
  cancelled_.insert(id);
  ++num_cancelled_;
}

void TestEngine::Estimate(ModelHandle model, std::optional<models::Request> request, int tokens,
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
    job->done(Run(*job));
  }
}

absl::StatusOr<Completed> TestEngine::Run(const Job& job) {
  const auto item = job.model->model->Prepare(job.request);
  if (!item.ok()) return item.status();
  const models::Item* items[] = {item->get()};
  const auto run = job.model->model->Begin(items);
  while (run->Advance()) {
  }
  {
    std::lock_guard lock(mutex_);
    if (refuse_) {
      return server::MakeError(absl::StatusCode::kResourceExhausted, "the queue is full",
                               {.reason = "QUEUE_FULL", .retry_after = absl::Milliseconds(1500)});
    }
    if (cancelled_.contains(job.id)) return absl::CancelledError("cancelled");
  }
  if (absl::Now() > job.deadline) return absl::DeadlineExceededError("the deadline has passed");
  auto answer = run->Take(0);
  if (!answer.ok()) return answer.status();
  return Completed{*std::move(answer), 0.001, 0.002, 0.004, 1};
}

Backend::Backend(server::ApiOptions options)
    : metrics("1.2.3", "abc", "cpu"),
      log(server::LogFormat::kText, server::LogLevel::kError),
      api(store, engine, lifecycle, metrics, log, std::move(options)) {
  FakeOptions one;
  one.control = control;
  store.Add("one", one);
  lifecycle.set_phase(server::Lifecycle::Phase::kServing);
}

server::CallInfo TestCall(std::string_view method) {
  server::CallInfo info;
  info.request_id = "test-request";
  info.client = "tester";
  info.arrival = absl::Now();
  info.api = "grpc";
  info.method = method;
  return info;
}

}  // namespace longview::testing
