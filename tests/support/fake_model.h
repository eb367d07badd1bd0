// A model that computes next to nothing, for tests of the server and for measuring what the
// server itself costs.
//
// One byte of text is one token. Every answer is a fixed function of the item's tokens alone
// (FakeLogits and below), so that a test can check that a neighbour's answer did not change.
// Thread-safe as models::Model says; FakeControl is thread-safe throughout.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "models/model.h"

namespace longview::testing {

// A gate that Advance and WarmUp pass through; open at first.
class Gate {
 public:
  void Close();
  void Open();
  // Lets `count` passages through a closed gate.
  void Admit(int count);
  // Blocks while the gate is closed and nothing is admitted.
  void Pass();
  // Blocks until `count` threads wait in Pass that nothing lets through; false after `timeout`.
  bool AwaitWaiting(int count, absl::Duration timeout);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = true;
  int admitted_ = 0;
  int waiting_ = 0;
};

// A test's view of one or more fake models, and its means to steer them.
struct FakeControl {
  Gate advance;  // Passed before every layer.
  Gate warm_up;
  Gate prepare;

  std::atomic<bool> hurry{false};  // A layer that sleeps ends with its present loop.

  std::atomic<int64_t> prepared{0};
  std::atomic<int64_t> begun{0};        // Batches.
  std::atomic<int64_t> begun_items{0};  // Items in them.
  std::atomic<int64_t> layers_run{0};   // Advance calls.
  std::atomic<int64_t> item_layers{0};  // Items computed, summed over Advance calls.
  std::atomic<int64_t> dropped{0};
  std::atomic<int64_t> taken{0};
  std::atomic<int64_t> live_items{0};
  std::atomic<int64_t> live_runs{0};
  std::atomic<int64_t> live_models{0};
};

// Whether a device of a test is lost; of all fakes that are on it.
using FakeDevicePtr = std::shared_ptr<std::atomic<bool>>;

// OK, or what a model says whose device is lost.
absl::Status FakeDeviceStatus(const FakeDevicePtr& lost);

struct FakeOptions {
  std::vector<models::Task> tasks = {models::Task::kTextClassification};
  std::vector<std::string> labels = {"zero", "one", "two"};
  models::ProblemType problem_type = models::ProblemType::kSingleLabel;
  bool has_tokenizer = true;
  int max_tokens = 4096;
  int embedding_width = 4;
  int vocabulary = 256;  // Ids at or above are INVALID_ARGUMENT.
  int layers = 1;

  // Predicted cost of an item: per item + per token.
  double item_seconds = 1e-4;
  double token_seconds = 1e-6;
  double token_workspace_bytes = 1024;
  double token_state_bytes = 0;
  // Time an Advance really takes per item still wanted (sleeps in loops; 0 = nothing).
  absl::Duration layer_item_time = absl::ZeroDuration();

  // Failures: a text containing one of these words fails at that stage.
  std::string fail_prepare = "!prepare";     // INVALID_ARGUMENT
  std::string fail_take = "!take";           // INTERNAL
  std::string not_a_number = "!nan";         // The first label's score is NaN.
  std::string endless_prepare = "!endless";  // Prepared until nobody waits for it, or for 20 s.
  absl::Status warm_up_status = absl::OkStatus();

  std::string device = "cpu";
  FakeDevicePtr lost;  // While set: that device answers no more. Null: it always does.

  std::shared_ptr<FakeControl> control = std::make_shared<FakeControl>();
};

class FakeModel : public models::Model {
 public:
  explicit FakeModel(FakeOptions options);
  ~FakeModel() override;

  const models::ModelInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<models::Item>> Prepare(
      const models::Request& request) const override;
  // Each chunk as a text of its own, chunk_tokens bytes long; the last ones first.
  absl::StatusOr<models::ChunkPlan> PlanChunks(const models::Request& request) const override;
  absl::StatusOr<models::Cost> EstimateTokens(int tokens) const override;
  std::unique_ptr<models::Run> Begin(std::span<const models::Item* const> items,
                                     models::RunTimes* times) const override;
  absl::Status WarmUp() override;

 private:
  models::Cost CostOf(int tokens) const;
  absl::StatusOr<std::vector<int32_t>> Tokens(const models::Request& request, int* truncated) const;

  const FakeOptions options_;
  models::ModelInfo info_;
};

// The raw scores the fake gives `ids`, [labels].
std::vector<float> FakeLogits(const std::vector<int32_t>& ids, int labels);

// FakeLogits of a text: one token per byte.
std::vector<float> FakeLogits(std::string_view text, int labels);

}  // namespace longview::testing
