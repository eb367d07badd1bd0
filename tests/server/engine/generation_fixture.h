// An engine over a fake generator, and boxes that hear what a call hears.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/engine/engine_fixture.h"
#include "tests/support/fake_generator.h"

namespace longview::server {

// The events of one call, and whether they came in the order that is promised.
class EventBox {
 public:
  GenerationEvents events() {
    GenerationEvents events;
    events.on_admitted = [state = state_] {
      std::lock_guard lock(state->mutex);
      if (state->admitted++ > 0 || state->pieces > 0 || state->replied) state->in_order = false;
      state->changed.notify_all();
    };
    events.on_pieces = [state = state_](std::vector<models::Piece> pieces) {
      state->reader.Pass();
      std::lock_guard lock(state->mutex);
      if (state->admitted != 1 || state->replied || pieces.empty()) state->in_order = false;
      ++state->pieces;
      for (const models::Piece& piece : pieces) {
        if (piece.echo) continue;
        if (state->texts.size() <= static_cast<size_t>(piece.index)) {
          state->texts.resize(static_cast<size_t>(piece.index) + 1);
        }
        state->texts[static_cast<size_t>(piece.index)] += piece.text;
      }
      state->changed.notify_all();
    };
    return events;
  }

  Reply<Completed> reply() {
    return [state = state_](absl::StatusOr<Completed> result) {
      std::lock_guard lock(state->mutex);
      if (state->replied || (result.ok() && state->admitted != 1)) state->in_order = false;
      state->replied = true;
      state->result = std::move(result);
      state->changed.notify_all();
    };
  }

  const absl::StatusOr<Completed>& Wait() {
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

  // Waits for this many deliveries of pieces.
  bool AwaitPieces(int count) {
    std::unique_lock lock(state_->mutex);
    return state_->changed.wait_for(lock, std::chrono::seconds(20),
                                    [&] { return state_->pieces >= count; });
  }

  std::string text(size_t index = 0) const {
    std::lock_guard lock(state_->mutex);
    return index < state_->texts.size() ? state_->texts[index] : "";
  }
  bool in_order() const {
    std::lock_guard lock(state_->mutex);
    return state_->in_order;
  }
  int pieces() const {
    std::lock_guard lock(state_->mutex);
    return state_->pieces;
  }
  // Passed by on_pieces before it reads.
  testing::Gate& reader() { return state_->reader; }

 private:
  struct State {
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::optional<absl::StatusOr<Completed>> result;
    std::vector<std::string> texts;
    testing::Gate reader;
    int admitted = 0, pieces = 0;
    bool replied = false, in_order = true;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class GenerationFixture : public EngineFixture {
 protected:
  ModelHandle MakeGenerator(testing::GeneratorOptions options, std::string name = "gen") {
    control_ = options.control;
    auto served = std::make_shared<ServedModel>();
    served->name = std::move(name);
    served->version = "1";
    served->id = ++last_model_id_;
    served->model = std::make_unique<testing::FakeGenerator>(std::move(options));
    metrics_.ModelLoaded({served->name, served->version}, 1, 1);
    return served;
  }

  static models::Request Prompt(std::string text, int max_new_tokens = 16, int samples = 1) {
    models::Request request;
    request.task = models::Task::kTextGeneration;
    request.text = std::move(text);
    models::GenerationOptions& generation = request.generation.emplace();
    generation.max_new_tokens = max_new_tokens;
    generation.num_return_sequences = samples;
    return request;
  }

  CallId Generate(const ModelHandle& model, models::Request request, EventBox& box,
                  const CallInfo& info = Info()) {
    return engine_->Generate(model, std::move(request), info, box.events(), box.reply());
  }

  // Nothing is left of any call: no bytes, no call, no entry of the scheduler.
  void ExpectNothingLeft() {
    ExpectNoCallLeft();
    EXPECT_EQ(engine_->QueuedSeconds(), 0);
  }
  // Expects that no call is left, also in an engine that was shut down, whose scheduler is told
  // nothing more.
  void ExpectNoCallLeft() {
    EXPECT_TRUE(engine_->AwaitIdle(SteadyNow() + absl::Seconds(20)));
    Await([&] { return control_->live_items == 0; }, "the items' end");
    EXPECT_EQ(engine_->calls(), 0u);
    EXPECT_EQ(control_->live_generations, 0);
    EXPECT_EQ(control_->live_runs, 0);
    EXPECT_EQ(control_->thread_changes, 0);
  }

  std::shared_ptr<testing::GeneratorControl> control_;
};

}  // namespace longview::server
