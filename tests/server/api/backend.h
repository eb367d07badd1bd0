// The API over fake models and an engine, and what the models were asked.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api.h"
#include "server/engine/documents.h"
#include "server/engine/engine.h"
#include "server/limits/byte_budget.h"
#include "server/scheduler/steady_clock.h"
#include "tests/support/fake_generator.h"
#include "tests/support/fake_model.h"

namespace longview::testing {

// The requests that models were asked to prepare. Thread-safe.
class Asked {
 public:
  void Note(const models::Request& request);
  int count() const;
  models::Request last() const;

 private:
  mutable std::mutex mutex_;
  int count_ = 0;         // Under mutex_,
  models::Request last_;  // likewise.
};

// Thread-safe. Load and Unload answer at once, on the caller's thread.
class TestStore : public server::ModelStore {
 public:
  // Borrows the metrics, which have the series of a model from the time it is added.
  explicit TestStore(server::Metrics& metrics) : metrics_(metrics) {}

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

  // All requests to models that were ever added.
  const Asked& asked() const { return *asked_; }

 private:
  server::ModelHandle MakeServed(const std::string& name, std::unique_ptr<models::Model> model);

  server::Metrics& metrics_;
  const std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
  mutable std::mutex mutex_;
  std::map<std::string, server::ModelStatus> models_;  // Under mutex_.
  uint32_t last_id_ = 0;                               // Under mutex_.
};

// One thread prepares, so that items are prepared in the order in which they were submitted.
server::EngineOptions TestEngineOptions();

// An Api over all of it, serving "one" (a classifier of three labels) unless a test adds more.
struct Backend {
  explicit Backend(server::ApiOptions options = {}, server::ByteLimits limits = {},
                   const server::EngineOptions& engine_options = TestEngineOptions());
  // Calls in flight answer through the api and its metrics: the engine ends first.
  ~Backend();

  // Requests that were prepared, and the last of them as its model was asked.
  int prepared() const { return store.asked().count(); }
  models::Request last_request() const { return store.asked().last(); }
  // Items that were cancelled before they were answered, as the metrics count them.
  int cancelled() const { return Counted("longview_cancelled_total"); }
  // Items that ended before they were answered: cancelled, or at their deadline. REQUIRES: those
  // that ran have one token.
  int ended_early() const;
  // The sum of a counter's samples that have the label.
  int Counted(const std::string& name, const std::string& label = "") const;

  // Adds a classifier, "slow", whose items are predicted to take an hour. One with a deadline is
  // refused, in words that say how long that is from now: SecondsLeft.
  void AddSlow();
  // Seconds until its deadline that a refused request had; -1 if `message` does not say.
  static double SecondsLeft(const std::string& message);

  // Leaves work for a second more than the queue may hold, of `client`, whose other items are
  // refused from here on. Nothing is computed any more.
  void FillQueue(const std::string& client);

  // Loses the engine's only device.
  void LoseDevice();

  server::ByteBudget bytes;  // For transports; answers of the engine hold parts of it.
  server::Lifecycle lifecycle;
  server::Metrics metrics;
  server::Log log;
  server::SteadyClock clock;
  TestStore store;
  server::Engine engine;
  std::optional<server::Documents> documents;  // Until the engine ends.
  server::Api api;
  std::shared_ptr<FakeControl> control = std::make_shared<FakeControl>();  // Controls "one".
  std::shared_ptr<FakeControl> held = std::make_shared<FakeControl>();     // The full queue.
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
