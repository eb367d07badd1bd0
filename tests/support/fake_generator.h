// A model that generates text by a fixed rule, for tests of the server and for measuring what a
// token costs the server itself.
//
// One byte is one token. The next token is a letter that depends on everything before it and on
// the sample's number (FakeContinuation), whatever else is in the step, so a test can check that
// batch mates changed nothing. Costs, the prefill alignment and what is found in the cache are set
// by the test; beams are as many samples whose text comes at the end.
// Thread-safe as models::Model says; the controls are thread-safe throughout.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "tests/support/fake_model.h"

namespace longview::testing {

// A test's view of one or more fake generators.
struct GeneratorControl {
  Gate advance;  // Passed before every layer of a step.
  Gate start;    // Passed by Start.

  std::atomic<int64_t> steps{0};
  std::atomic<int64_t> decoded{0};    // Tokens sampled.
  std::atomic<int64_t> prefilled{0};  // Prompt tokens read.
  std::atomic<int64_t> dropped{0};
  std::atomic<int64_t> live_items{0};
  std::atomic<int64_t> live_generations{0};
  std::atomic<int64_t> live_documents{0};
  std::atomic<int64_t> live_runs{0};
  std::atomic<int64_t> state_bytes{0};      // Held by generations and documents.
  std::atomic<int64_t> max_state_bytes{0};  // The most there ever were.
  std::atomic<int64_t> thread_changes{0};   // Uses of device objects on more than one thread.
};

struct GeneratorOptions {
  int max_tokens = 100000;  // Prompt and output.
  int prefill_alignment = 16;
  int layers = 2;
  int cached_tokens = 0;  // Tokens of every prompt found in the cache (of whole aligned chunks).

  // Predicted; what a step really takes is `pace` times that (it sleeps).
  double step_seconds = 1e-5;
  double decode_seconds = 1e-5;
  double prefill_seconds = 1e-6;
  double pace = 0;
  double token_bytes = 1024;      // Bytes of state per token.
  double answer_token_bytes = 8;  // models::Cost::token_bytes.
  double cache_bytes = 1e9;       // Capacity that CacheUse reports.

  std::string device = "cpu";
  FakeDevicePtr lost;  // See FakeOptions::lost.

  std::string fail_prepare = "!prepare";  // A prompt with this in it: INVALID_ARGUMENT of Prepare.
  std::string fail_start = "!start";      // A prompt with this: RESOURCE_EXHAUSTED of Start.
  std::string fail_step = "!step";        // A prompt with this: an exception of the step.
  std::string fail_take = "!take";        // A prompt with this: INTERNAL of Take.

  std::shared_ptr<GeneratorControl> control = std::make_shared<GeneratorControl>();
};

class FakeGenerator : public models::Model {
 public:
  explicit FakeGenerator(GeneratorOptions options);

  const models::ModelInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<models::Item>> Prepare(
      const models::Request& request) const override;
  absl::StatusOr<models::Cost> EstimateTokens(int tokens) const override;
  std::unique_ptr<models::Run> Begin(std::span<const models::Item* const> items,
                                     models::RunTimes* times) const override;
  absl::Status WarmUp() override { return absl::OkStatus(); }

  absl::StatusOr<std::unique_ptr<models::Generation>> Start(const models::Item& item) override;
  std::unique_ptr<models::Run> BeginStep(std::span<const models::StepGrant> grants) override;
  double StepSeconds() const override { return options_.step_seconds; }
  absl::StatusOr<std::shared_ptr<models::Document>> NewDocument() override;
  models::CacheUse cache() const override;

 private:
  const GeneratorOptions options_;
  models::ModelInfo info_;
};

// The `tokens` letters with which sample `index` of `prompt` goes on.
std::string FakeContinuation(std::string_view prompt, int index, int tokens);

}  // namespace longview::testing
