// Outputs of HuggingFace's generate on LED, token for token: greedy, beams, every processor, starts
// of outputs, texts; alone and in a batch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/generation/sampling/candidate_filter.h"
#include "models/generation/sampling/logits_processors.h"
#include "tests/models/led/led_case.h"

namespace longview::models {
namespace {

constexpr int kHuggingFaceDefault = 20;  // New tokens where nobody says anything.

struct Recorded {
  std::string name;
  Request request;
  std::vector<std::vector<int32_t>> rows;  // Without the start, as the answer has them.
  std::vector<double> scores;
};

// The rows of a recorded [n, T] without `start` columns and what fills them up.
std::vector<std::vector<int32_t>> RowsOf(const std::vector<int64_t>& values, size_t n, size_t start,
                                         const std::vector<int>& lengths) {
  std::vector<std::vector<int32_t>> rows;
  const size_t width = values.size() / n;
  for (size_t i = 0; i < n; ++i) {
    const auto begin = values.begin() + static_cast<ptrdiff_t>(i * width);
    std::vector<int32_t>& row = rows.emplace_back(begin + static_cast<ptrdiff_t>(start),
                                                  begin + static_cast<ptrdiff_t>(width));
    if (i < lengths.size()) row.resize(static_cast<size_t>(lengths[i]) - start);
  }
  return rows;
}

std::vector<Recorded> RecordedRuns(const GoldenCase& golden) {
  std::vector<Recorded> runs;
  for (const auto& run : golden.description()["runs"]) {
    if (!run["item"].is_number()) continue;
    const int item = run["item"];
    const std::string key = std::string(run["run"]) + "." + std::to_string(item);
    Recorded& recorded = runs.emplace_back();
    recorded.name = key;
    GenerationOptions options = OptionsOf(run["params"]);
    if (!options.max_new_tokens && options.others.count("max_length") == 0) {
      options.max_new_tokens = kHuggingFaceDefault;
    }
    const auto n = static_cast<size_t>(options.num_return_sequences.value_or(1));
    recorded.request = DocumentRequest(golden, item, std::move(options));
    size_t start = 1;
    if (run.contains("decoder_input_ids")) {
      const std::vector<int32_t> ids = run["decoder_input_ids"];
      recorded.request.decoder_tokens.emplace().ids = ids;
      start = ids.size() + (ids[0] == 2 ? 0 : 1);
    }
    std::vector<int> lengths;
    if (run.contains("lengths")) lengths = run["lengths"].get<std::vector<int>>();
    const std::vector<double> stored = golden.ExpectedExactly("sequences." + key);
    recorded.rows = RowsOf({stored.begin(), stored.end()}, n, start, lengths);
    if (golden.Expects("sequences_scores." + key)) {
      recorded.scores = golden.Expected("sequences_scores." + key);
    }
  }
  return runs;
}

void Check(const Recorded& recorded, const Answer& answer, double tolerance) {
  SCOPED_TRACE(recorded.name);
  ASSERT_EQ(answer.sequences.size(), recorded.rows.size());
  for (size_t i = 0; i < recorded.rows.size(); ++i) {
    EXPECT_EQ(answer.sequences[i].token_ids, recorded.rows[i]) << i;
    if (i >= recorded.scores.size()) continue;
    const double want = recorded.scores[i];
    EXPECT_NEAR(answer.sequences[i].score, want, tolerance * std::max(1.0, std::abs(want)));
  }
}

TEST(LedGenerate, EveryRecordedRun) {
  const GoldenCase golden("generate", "led");
  const std::unique_ptr<Model> model = LoadLedCase(golden, "fp32");
  ASSERT_NE(model, nullptr);
  const std::vector<Recorded> runs = RecordedRuns(golden);
  EXPECT_GE(runs.size(), 90u);
  for (const Recorded& run : runs) {
    Check(run, Generate(*model, run.request), golden.tolerance("sequences_scores"));
  }
  EXPECT_EQ(model->cache().used, 0);
}

// Documents, beams and samples of different requests in the same steps: nobody's bits change.
TEST(LedGenerate, AmongBatchMatesAsAlone) {
  const GoldenCase golden("generate", "led");
  for (const std::string dtype : {"fp32", "bf16"}) {
    const std::unique_ptr<Model> model = LoadLedCase(golden, dtype);
    ASSERT_NE(model, nullptr);
    std::vector<Request> requests;
    std::vector<Answer> alone;
    for (const Recorded& run : RecordedRuns(golden)) {
      if (requests.size() % 3 == 0) {
        Request sampled = run.request;
        GenerationOptions& options = *sampled.generation;
        options.num_beams = 1;
        options.num_return_sequences = 3;
        options.temperature = 0.8;
        options.seed = static_cast<uint32_t>(requests.size());
        requests.push_back(std::move(sampled));
      }
      requests.push_back(run.request);
    }
    requests.resize(40);
    for (Request& request : requests) {
      request.generation->logprobs = 0;
      alone.push_back(Generate(*model, request));
    }
    std::minstd_rand random(11);
    std::vector<std::pair<size_t, Live>> running;
    size_t next = 0, finished = 0;
    while (finished < requests.size()) {
      while (next < requests.size() && (running.size() < 3 || random() % 3 == 0)) {
        running.emplace_back(next, StartOn(*model, requests[next]));
        ++next;
      }
      std::vector<Live*> lives;
      for (auto& [i, live] : running) {
        if (lives.empty() || random() % 4 != 0) lives.push_back(&live);
      }
      StepOnce(*model, lives, model->info().prefill_alignment * static_cast<int>(1 + random() % 4));
      for (auto entry = running.begin(); entry != running.end();) {
        if (!entry->second.generation->done()) {
          ++entry;
          continue;
        }
        const absl::StatusOr<Answer> answer = entry->second.generation->Take();
        ASSERT_TRUE(answer.ok()) << answer.status();
        const Answer& want = alone[entry->first];
        for (size_t s = 0; s < want.sequences.size(); ++s) {
          EXPECT_EQ(answer->sequences[s].token_ids, want.sequences[s].token_ids) << entry->first;
          for (size_t t = 0; t < want.sequences[s].logprobs.size(); ++t) {
            EXPECT_EQ(answer->sequences[s].logprobs[t].logprob,
                      want.sequences[s].logprobs[t].logprob);
          }
        }
        entry = running.erase(entry);
        ++finished;
      }
    }
    EXPECT_EQ(model->cache().used, 0);
  }
}

// Wanted states lie on the host until the answer is taken.
TEST(LedGenerate, StatesThatAreWantedAreReserved) {
  const GoldenCase golden("generate", "led");
  const std::unique_ptr<Model> model = LoadLedCase(golden, "fp32");
  ASSERT_NE(model, nullptr);
  Request request = DocumentRequest(golden, 0, NewTokens(4));
  const auto plain = model->Prepare(request);
  request.tensors = {"encoder_last_hidden_state"};
  const auto wanting = model->Prepare(request);
  ASSERT_TRUE(plain.ok() && wanting.ok());
  const Answer answer = Generate(*model, request);
  EXPECT_EQ((*wanting)->cost().state_bytes - (*plain)->cost().state_bytes,
            static_cast<double>(answer.tensors.at(0).data.size()));
  EXPECT_EQ(model->cache().used, 0);
}

// The distribution after every processor, from which tokens are drawn.
TEST(LedGenerate, DistributionsOfSampling) {
  const GoldenCase golden("generate", "led");
  const std::unique_ptr<Model> model = LoadLedCase(golden, "fp32");
  ASSERT_NE(model, nullptr);
  for (const auto& run : golden.description()["sampling"]) {
    const int index = run["index"], item = run["item"];
    SCOPED_TRACE(index);
    const std::vector<int32_t> so_far = run["decoder_ids_so_far"];
    GenerationOptions scoring;
    scoring.max_new_tokens = 0;
    Request request = DocumentRequest(golden, item, scoring);
    request.decoder_tokens.emplace().ids = so_far;
    request.tensors = {"logits"};
    const Answer answer = Generate(*model, request);
    const auto vocab = static_cast<size_t>(answer.tensors[0].shape[1]);
    const std::span<const float> last = answer.tensors[0].floats().last(vocab);
    GenerationOptions options = OptionsOf(run["params"]);
    options.max_new_tokens = 10;
    const std::vector<int32_t> eos = {2};
    const SettingsContext context = {.vocab = static_cast<int>(vocab),
                                     .prompt = 1,
                                     .room = 60,
                                     .default_top_k = 50,
                                     .eos = &eos};
    const absl::StatusOr<GenerationSettings> settings = ResolveSettings(options, {}, context);
    ASSERT_TRUE(settings.ok()) << settings.status();
    const LogitsProcessors processors(*settings, request.tokens->ids);
    TokenHistory history({so_far[0]}, static_cast<int>(vocab), processors.needs_distinct());
    for (size_t i = 1; i < so_far.size(); ++i) history.Append(so_far[i]);
    std::vector<double> scores(last.begin(), last.end());
    processors.Apply(history, scores);
    CandidateFilter filter(*settings, 1);
    std::vector<double> got(vocab);
    double total = 0;
    const std::span<const Candidate> kept = filter.Keep(scores);
    for (const Candidate& candidate : kept) total += candidate.weight;
    for (const Candidate& candidate : kept) {
      got[static_cast<size_t>(candidate.id)] = candidate.weight / total;
    }
    const std::vector<double> want = golden.Expected("sampling_probs." + std::to_string(index));
    for (size_t id = 0; id < vocab; ++id) EXPECT_NEAR(got[id], want[id], 1e-5) << id;
  }
}

// Directories as published: vocab.json and merges.txt, settings in generation_config.json.
TEST(LedGenerate, TextsInTextsOut) {
  const GoldenCase golden("text_summarize", "led");
  const std::unique_ptr<Model> model = LoadLedCase(golden, "fp32");
  ASSERT_NE(model, nullptr);
  for (const auto& text : golden.Texts()) {
    Request request;
    request.task = Task::kText2TextGeneration;
    request.text = text["text"].get<std::string>();
    request.truncate = true;
    request.global_positions = text["global"].get<std::vector<int32_t>>();
    const Answer answer = Generate(*model, request);
    ASSERT_EQ(answer.sequences.size(), 1u);
    std::vector<int32_t> want = text["output_ids"];
    want.erase(want.begin());
    std::vector<int32_t> got = answer.sequences[0].token_ids;
    EXPECT_EQ(got, want);
    EXPECT_EQ(answer.sequences[0].text, text["output_text"].get<std::string>());
    EXPECT_EQ(answer.usage.input_tokens, static_cast<int>(text["input_ids"].size()));
    EXPECT_NEAR(answer.sequences[0].score, text["score"].get<double>(), 1e-4);
  }
}

}  // namespace
}  // namespace longview::models
