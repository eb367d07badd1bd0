// A model store and an engine for tests of the API: fake models, one worker thread, no
// scheduling.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/api/api.h"
#include "server/engine/documents.h"
#include "server/limits/byte_budget.h"
#include "server/scheduler/steady_clock.h"
#include "tests/support/fake_generator.h"
#include "tests/support/fake_model.h"

namespace longview::testing {

// Thread-safe. Load and Unload answer at once, on the caller's thread.
class TestStore : public server::ModelStore {
 public:
  // Adds a ready model.
  void Add(const std::string& name, FakeOptions options);
  void AddGenerator(const std::string& name, GeneratorOptions options);
  // Adds a directory that is found but not loaded; Load turns it into a fake classifier.
  void AddUnloaded(const std::string& name, server::ModelState state, const std::string& reason);

  absl::StatusOr<server::ModelHandle> Find(std::string_view name,
                                           std::string_view version) const override;
  absl::StatusOr<server::ModelHandle> FindForTask(std::string_view name, std::string_view version,
                                                  models::Task task) const override;
  std::string NameOf(std::string_view name) const override { return std::string(name); }
  std::vector<server::ModelStatus> List() const override;
  void Load(std::string_view name, Done done) override;
  void Unload(std::string_view name, Done done) override;
  bool StartupComplete() const override { return true; }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, server::ModelStatus> models_;  // Under mutex_.
};

// Thread-safe. Runs items and whole generations one by one on its thread; FakeControl::advance and
// GeneratorControl::advance hold them there.
class TestEngine : public server::Engine {
 public:
  TestEngine() : worker_([this] { Work(); }) {}
  ~TestEngine() override { Stop(); }

  // Answers what it has and ends its thread; nothing is answered after it. Idempotent.
  void Stop();

  server::CallId Submit(server::ModelHandle model, models::Request request,
                        const server::CallInfo& info,
                        server::Reply<server::Completed> done) override;
  std::vector<server::CallId> SubmitTogether(
      server::ModelHandle model, std::vector<models::Request> requests,
      const server::CallInfo& info, std::vector<server::Reply<server::Completed>> done) override;
  server::CallId Generate(server::ModelHandle model, models::Request request,
                          const server::CallInfo& info, server::GenerationEvents events,
                          server::Reply<server::Completed> done) override;
  void NewDocument(server::ModelHandle model,
                   server::Reply<std::shared_ptr<models::Document>> done) override;
  void Cancel(server::CallId id) override;
  void Estimate(server::ModelHandle model, std::optional<models::Request> request, int tokens,
                const server::CallInfo& info, std::shared_ptr<const std::atomic<bool>> unwanted,
                server::Reply<server::Estimated> done) override;
  void PlanChunks(server::ModelHandle model, models::Request request, const server::CallInfo& info,
                  std::shared_ptr<const std::atomic<bool>> unwanted,
                  server::Reply<models::ChunkPlan> done) override;
  double QueuedSeconds() const override { return 0; }
  std::string Stuck() const override { return stuck; }
  bool Able() const override { return able; }

  std::atomic<bool> able{true};
  std::string stuck;  // Before it serves.

  int submitted() const;
  int cancelled() const;
  // Every item from here on is refused as if the queue were full.
  void RefuseAll();
  // The last item's request to the model.
  models::Request last_request() const;
  absl::Time last_deadline() const;

 private:
  struct Job {
    server::CallId id = 0;
    server::ModelHandle model;
    models::Request request;
    absl::Time deadline;
    server::Reply<server::Completed> done;
    std::optional<server::GenerationEvents> events;  // Set for a generation.
    absl::AnyInvocable<void()> task;                 // Anything else.
  };

  server::CallId Add(Job job);
  void Work();
  absl::StatusOr<server::Completed> Run(const Job& job);
  absl::StatusOr<server::Completed> RunGeneration(Job& job);
  // Why the job ends before it is done, if it does.
  absl::Status Stopped(const Job& job);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Job>> jobs_;
  std::set<server::CallId> cancelled_;
  models::Request last_request_;
  absl::Time last_deadline_;
  server::CallId next_id_ = 1;
  int num_submitted_ = 0;
  int num_cancelled_ = 0;
  bool refuse_ = false;
  bool stop_ = false;
  std::thread worker_;
};

// An Api over both, serving "one" (a classifier of three labels) unless a test adds more.
struct Backend {
  explicit Backend(server::ApiOptions options = {}, server::ByteLimits limits = {});
  // Calls in flight answer through the api and its metrics: the engine ends first.
  ~Backend();

  server::ByteBudget bytes;  // For transports; answers of the engine hold parts of it.
  TestStore store;
  TestEngine engine;
  server::SteadyClock clock;
  std::optional<server::Documents> documents;  // Until the engine ends.
  server::Lifecycle lifecycle;
  server::Metrics metrics;
  server::Log log;
  server::Api api;
  std::shared_ptr<FakeControl> control = std::make_shared<FakeControl>();  // Controls "one".
};

// A call that arrives now.
server::CallInfo TestCall(std::string_view method = "Test");

// Waits for the one reply of a call.
template <typename Response>
class Waiter {
 public:
  server::Reply<Response> reply() {
    return [state = state_](absl::StatusOr<Response> result) {
      std::lock_guard lock(state->mutex);
      state->result = std::make_unique<absl::StatusOr<Response>>(std::move(result));
      state->changed.notify_all();
    };
  }
  absl::StatusOr<Response> Get() {
    std::unique_lock lock(state_->mutex);
    const bool came = state_->changed.wait_for(lock, std::chrono::seconds(20),
                                               [this] { return state_->result != nullptr; });
    if (!came) return absl::UnknownError("no reply came within 20 s");
    return *state_->result;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_ptr<absl::StatusOr<Response>> result;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace longview::testing
