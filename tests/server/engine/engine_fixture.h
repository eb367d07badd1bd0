// An engine over fake models, and a box for one reply.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "server/engine/engine.h"
#include "server/lifecycle.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/steady_clock.h"
#include "tests/support/fake_model.h"

namespace longview::server {

// Takes one reply; counts how often it came.
template <typename Response>
class ReplyBox {
 public:
  Reply<Response> reply() {
    return [state = state_](absl::StatusOr<Response> result) {
      std::lock_guard lock(state->mutex);
      ++state->count;
      state->result = std::move(result);
      state->changed.notify_all();
    };
  }

  // The reply; fails the test after 20 s without one.
  const absl::StatusOr<Response>& Wait() {
    std::unique_lock lock(state_->mutex);
    const bool came = state_->changed.wait_for(lock, std::chrono::seconds(20),
                                               [&] { return state_->result.has_value(); });
    if (!came) {
      ADD_FAILURE() << "no reply";
      state_->result = absl::AbortedError("no reply");
    }
    return *state_->result;
  }

  absl::StatusCode WaitCode() { return Wait().status().code(); }

  int count() const {
    std::lock_guard lock(state_->mutex);
    return state_->count;
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::StatusOr<Response>> result;
    int count = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class EngineFixture : public ::testing::Test {
 protected:
  using Box = ReplyBox<Completed>;

  EngineFixture() { lifecycle_.set_phase(Lifecycle::Phase::kServing); }

  // Builds the engine; call after changing options_.
  void StartEngine() { engine_ = std::make_unique<Engine>(options_, lifecycle_, metrics_); }

  ModelHandle MakeModel(testing::FakeOptions options, std::string name = "fake") {
    auto served = std::make_shared<ServedModel>();
    served->name = std::move(name);
    served->version = "1";
    served->id = ++last_model_id_;
    served->model = std::make_unique<testing::FakeModel>(std::move(options));
    metrics_.ModelLoaded({served->name, served->version}, 1, 1);
    return served;
  }

  static models::Request TextRequest(std::string text) {
    models::Request request;
    request.text = std::move(text);
    request.tensors = {"logits"};
    return request;
  }

  // Prepared and admitted by the thread that submits it.
  static models::Request TokenRequest() {
    models::Request request;
    request.tokens.emplace().ids = {1, 2, 3};
    return request;
  }

  static CallInfo Info(std::string client = "a", absl::Duration due = absl::InfiniteDuration()) {
    CallInfo info;
    info.request_id = "r";
    info.client = std::move(client);
    info.arrival = SteadyNow();
    info.deadline = info.arrival + due;
    return info;
  }

  CallId Submit(const ModelHandle& model, std::string text, Box& box,
                const CallInfo& info = Info()) {
    return engine_->Submit(model, TextRequest(std::move(text)), info, box.reply());
  }

  // Submits a request whose deadline passes once `reached` holds. Where it passes sooner, on a busy
  // machine, another one with twice the time takes its place.
  template <typename Reached>
  Box SubmitUntil(const ModelHandle& model, const std::string& text, Reached reached) {
    for (absl::Duration due = absl::Milliseconds(20);; due *= 2) {
      Box box;
      Submit(model, text, box, Info("a", due));
      bool there = false;
      Await([&] { return (there = reached()) || box.count() > 0; }, "a stage or the deadline");
      if (there || due > absl::Seconds(10)) return box;
    }
  }

  // Waits until so many calls are admitted and in no batch. The gauge of queued requests counts
  // those that are being prepared as well.
  void AwaitQueued(size_t count) {
    Await([&] { return engine_->waiting() == count; }, "queued requests");
  }

  // Waits until `condition` holds; fails the test after 20 s.
  template <typename Condition>
  static void Await(Condition condition, const char* what) {
    const absl::Time end = SteadyNow() + absl::Seconds(20);
    while (!condition()) {
      if (SteadyNow() > end) {
        ADD_FAILURE() << "waited in vain for " << what;
        return;
      }
      absl::SleepFor(absl::Microseconds(200));
    }
  }

  // The value of the sample whose line begins with `prefix`; 0 if there is none.
  double Metric(const std::string& prefix) const {
    const std::string text = metrics_.Serialize();
    const size_t at = text.find("\n" + prefix);
    if (at == std::string::npos) return 0;
    const size_t end = text.find('\n', at + 1);
    const std::string line = text.substr(at + 1, end - at - 1);
    return std::stod(line.substr(line.rfind(' ')));
  }

  static std::vector<float> Logits(const Completed& completed) {
    const models::HostTensor* tensor = completed.answer.Find("logits");
    if (tensor == nullptr) return {};
    return {tensor->floats().begin(), tensor->floats().end()};
  }

  EngineOptions options_;
  Lifecycle lifecycle_;
  Metrics metrics_{"0", "0", "cpu"};
  std::unique_ptr<Engine> engine_;
  uint32_t last_model_id_ = 0;
};

}  // namespace longview::server
