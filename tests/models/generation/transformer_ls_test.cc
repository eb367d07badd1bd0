// Transformer-LS language models from their directories to generated tokens: the goldens' greedy
// continuations and scores through Prepare, Start and steps; batch mates and forks at the level of
// requests.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "tests/models/generation/generator_driver.h"
#include "tests/models/generation/golden.h"
#include "tests/models/transformer_ls/golden_names.h"

namespace longview::models {
namespace {

constexpr double kCacheBytes = 256 << 20;

std::unique_ptr<Model> Load(const std::string& name, const std::string& dtype = "fp32") {
  const std::string directory = GoldenFile("transformer_ls_lm/" + name + "/model");
  absl::StatusOr<std::unique_ptr<Model>> model =
      LoadModel(directory, {.dtype = dtype, .device = "cpu", .cache_bytes = kCacheBytes});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

std::vector<int32_t> Ids(const GoldenTensors& tensors, const std::string& name) {
  const std::vector<int64_t> ids = tensors.Values<int64_t>(name);
  return {ids.begin(), ids.end()};
}

class LsGeneration : public ::testing::TestWithParam<std::string> {
 protected:
  std::string File(const std::string& name) const {
    return "transformer_ls_lm/" + GetParam() + "/" + name;
  }
};

TEST_P(LsGeneration, GreedyContinuations) {
  const std::unique_ptr<Model> model = Load(GetParam());
  ASSERT_NE(model, nullptr);
  const GoldenTensors inputs(File("inputs.safetensors")), expected(File("expected.safetensors"));
  int continuations = 0;
  for (int i = 0; expected.Has("greedy." + std::to_string(i)); ++i, ++continuations) {
    const std::vector<int32_t> want = Ids(expected, "greedy." + std::to_string(i));
    GenerationOptions options = NewTokens(static_cast<int>(want.size()));
    options.ignore_eos = true;
    const Request request = IdsRequest(Ids(inputs, "prompt." + std::to_string(i)), options);
    // Whole, then in chunks behind what the cache kept.
    for (const int chunk : {0, 1}) {
      const Answer answer = Generate(*model, request, chunk * model->info().prefill_alignment);
      ASSERT_EQ(answer.sequences.size(), 1u);
      EXPECT_EQ(answer.sequences[0].token_ids, want) << "greedy." << i;
    }
  }
  EXPECT_GT(continuations, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, LsGeneration, ::testing::ValuesIn(LsGoldenNames()),
                         [](const auto& info) { return info.param; });

TEST(LsGenerationCases, RepetitionPenalty) {
  const std::unique_ptr<Model> model = Load("paper_dh16_r1_l4_w8");
  const GoldenTensors inputs("transformer_ls_lm/paper_dh16_r1_l4_w8/inputs.safetensors");
  const GoldenTensors expected("transformer_ls_lm/paper_dh16_r1_l4_w8/expected.safetensors");
  const std::vector<int32_t> want = Ids(expected, "greedy.penalty");
  GenerationOptions options = NewTokens(static_cast<int>(want.size()));
  options.repetition_penalty = 1.3;
  const Answer answer = Generate(*model, IdsRequest(Ids(inputs, "prompt.penalty"), options));
  EXPECT_EQ(answer.sequences[0].token_ids, want);
}

TEST(LsGenerationCases, ScoresOfTexts) {
  for (const char* name : {"paper_dh16_r1_l4_w8", "paper_dh32_r2_l16_w64"}) {
    SCOPED_TRACE(name);
    const std::string folder = std::string("transformer_ls_lm/") + name;
    const std::unique_ptr<Model> model = Load(name);
    const nlohmann::json description = GoldenJson(folder + "/case.json");
    const std::vector<float> want =
        GoldenTensors(folder + "/expected.safetensors").Values<float>("text_nll");
    GenerationOptions options = NewTokens(0);
    options.echo = true;
    options.logprobs = 0;
    const Answer answer =
        Generate(*model, TextRequest(description["text"].get<std::string>(), options), 64);
    ASSERT_TRUE(answer.prompt.has_value());
    ASSERT_EQ(answer.prompt->logprobs.size(), want.size() + 1);
    double sum = 0;
    for (size_t t = 0; t < want.size(); ++t) {
      const double nll = -answer.prompt->logprobs[t + 1].logprob;
      EXPECT_NEAR(nll, want[t], 1e-4);
      sum += nll;
    }
    EXPECT_NEAR(sum / (std::log(2.0) * static_cast<double>(want.size())),
                description["scores"]["bits_per_byte"].get<double>(), 1e-4);
  }
}

std::vector<std::vector<int32_t>> Rows(const Answer& answer) {
  std::vector<std::vector<int32_t>> rows;
  for (const Piece& piece : answer.sequences) rows.push_back(piece.token_ids);
  return rows;
}

// Greedy, seeded, sampled several times, and searched with beams; prompts from empty segments to
// several windows.
std::vector<Request> Crowd(int count) {
  std::vector<Request> requests;
  std::minstd_rand random(11);
  for (int i = 0; i < count; ++i) {
    std::string text;
    const size_t size = 1 + random() % 300;
    for (size_t b = 0; b < size; ++b) text += static_cast<char>('a' + random() % 26);
    GenerationOptions options = NewTokens(1 + static_cast<int>(random() % 40));
    if (i % 4 > 0) {
      options.temperature = 0.8;
      options.seed = static_cast<uint32_t>(i);
    }
    if (i % 4 == 2) options.num_return_sequences = 3;
    if (i % 4 == 3) options.top_p = 0.9;
    if (i % 8 == 4) {
      options.temperature.reset();
      options.num_beams = 3;
    }
    requests.push_back(TextRequest(text, options));
  }
  return requests;
}

// One sequence's tokens where 32 others are with it at every step, each of which may leave before
// it is done and is followed by another.
std::vector<std::vector<int32_t>> AmongOthers(Model& model, const Request& request, int seed) {
  constexpr size_t kOthers = 32;
  std::minstd_rand random(static_cast<uint32_t>(seed));
  const std::vector<Request> requests = Crowd(40);
  std::vector<Live> others;
  std::optional<Live> one;
  for (int step = 0; !one || !one->generation->done(); ++step) {
    if (step == 3) one = StartOn(model, request);
    while (others.size() < kOthers) {
      others.push_back(StartOn(model, requests[random() % requests.size()]));
    }
    std::vector<Live*> lives;
    for (Live& other : others) lives.push_back(&other);
    if (one) lives.insert(lives.begin() + static_cast<long>(random() % lives.size()), &*one);
    StepOnce(model, lives, model.info().prefill_alignment * static_cast<int>(1 + random() % 3));
    std::erase_if(others,
                  [&](const Live& other) { return other.generation->done() || random() % 8 == 0; });
  }
  return Rows(*one->generation->Take());
}

TEST(LsGenerationCases, OneAmongThirtyTwoThatJoinAndLeave) {
  GenerationOptions seeded = NewTokens(50), greedy = NewTokens(50);
  seeded.temperature = 0.9;
  seeded.seed = 21;
  seeded.ignore_eos = greedy.ignore_eos = true;
  const std::string text = "The ferry left at six, before the fog came down on the harbour; ";
  for (const GenerationOptions& options : {greedy, seeded}) {
    const Request request = TextRequest(text + text, options);
    const auto alone = Rows(Generate(*Load("paper_dh32_r2_l16_w64"), request));
    const std::unique_ptr<Model> model = Load("paper_dh32_r2_l16_w64");
    for (const int seed : {1, 2}) EXPECT_EQ(AmongOthers(*model, request, seed), alone);
    EXPECT_EQ(model->cache().used, 0);
  }
}

TEST(LsGenerationCases, TheSameTokensAloneAndInACrowd) {
  const std::vector<Request> requests = Crowd(33);
  std::vector<std::vector<std::vector<int32_t>>> alone;
  {
    const std::unique_ptr<Model> model = Load("paper_dh32_r2_l16_w64");
    for (const Request& request : requests) alone.push_back(Rows(Generate(*model, request)));
  }
  const std::unique_ptr<Model> model = Load("paper_dh32_r2_l16_w64");
  const int alignment = model->info().prefill_alignment;
  std::minstd_rand random(12);
  std::vector<std::pair<size_t, Live>> running;
  size_t next = 0, finished = 0;
  while (finished < requests.size()) {
    while (next < requests.size() && (running.empty() || random() % 2 == 0)) {
      running.emplace_back(next, StartOn(*model, requests[next]));
      ++next;
    }
    std::vector<Live*> lives;
    for (auto& [i, live] : running) {
      if (lives.empty() || random() % 5 != 0) lives.push_back(&live);
    }
    StepOnce(*model, lives, alignment * static_cast<int>(1 + random() % 3));
    for (auto entry = running.begin(); entry != running.end();) {
      if (!entry->second.generation->done()) {
        ++entry;
        continue;
      }
      EXPECT_EQ(Rows(*entry->second.generation->Take()), alone[entry->first]) << entry->first;
      entry = running.erase(entry);
      ++finished;
    }
  }
  EXPECT_EQ(model->cache().used, 0);
}

TEST(LsGenerationCases, DocumentsContinueAsIfReadAtOnce) {
  std::string text;
  std::minstd_rand random(13);
  for (int i = 0; i < 500; ++i) text += static_cast<char>('a' + random() % 26);
  GenerationOptions options = NewTokens(20);
  options.temperature = 0.9;
  options.seed = 4;
  const auto whole =
      Rows(Generate(*Load("paper_dh32_r2_l16_w64"), TextRequest(text + "question", options)));
  const std::unique_ptr<Model> model = Load("paper_dh32_r2_l16_w64");
  const std::shared_ptr<Document> document = *model->NewDocument();
  // Pieces of 5 and 130 bytes in turn: some are shorter than what is read at once.
  for (size_t at = 0, size = 5; at < text.size(); at += size, size = 135 - size) {
    Request piece = TextRequest(text.substr(at, size));
    piece.generation.reset();
    piece.document = document;
    piece.extend_document = true;
    Generate(*model, piece);
  }
  for (int asked = 0; asked < 2; ++asked) {
    Request question = TextRequest("question", options);
    question.document = document;
    EXPECT_EQ(Rows(Generate(*model, question)), whole);
  }
}

// Samples, beams and forks of a document that come and go: at every step the cache holds at most
// what was reserved for those that are there.
TEST(LsGenerationCases, NothingHoldsMoreThanItReserved) {
  const std::unique_ptr<Model> model = Load("paper_dh32_r2_l16_w64");
  const std::shared_ptr<Document> document = *model->NewDocument();
  Request piece = TextRequest(std::string(333, 'd'));
  piece.generation.reset();
  piece.document = document;
  piece.extend_document = true;
  Generate(*model, piece);
  EXPECT_GT(model->cache().used, 0);
  EXPECT_LE(model->cache().used, document->state_bytes());

  std::vector<Request> requests = Crowd(24);
  for (size_t i = 0; i < requests.size(); i += 3) requests[i].document = document;
  std::minstd_rand random(14);
  std::vector<Live> running;
  size_t next = 0;
  double fullest = 0;
  while (next < requests.size() || !running.empty()) {
    while (next < requests.size() && running.size() < 6) {
      running.push_back(StartOn(*model, requests[next++]));
    }
    std::vector<Live*> lives;
    for (Live& live : running) lives.push_back(&live);
    StepOnce(*model, lives, model->info().prefill_alignment);
    double reserved = document->state_bytes();
    for (const Live& live : running) reserved += live.item->cost().state_bytes;
    ASSERT_LE(model->cache().used, reserved);
    fullest = std::max(fullest, model->cache().used / reserved);
    std::erase_if(running,
                  [&](const Live& live) { return live.generation->done() || random() % 40 == 0; });
  }
  EXPECT_GT(fullest, 0.3);
  EXPECT_LE(model->cache().used, document->state_bytes());
}

TEST(LsGenerationCases, CancelledInMidStreamFreesItsState) {
  const std::unique_ptr<Model> model = Load("paper_dh16_r1_l4_w8");
  GenerationOptions options = NewTokens(200);
  options.ignore_eos = true;
  options.temperature = 1;
  options.num_return_sequences = 2;
  for (int i = 0; i < 1000; ++i) {
    Live live = StartOn(*model, TextRequest("cancelled " + std::to_string(i), options));
    for (int step = 0; step <= i % 4; ++step) StepOnce(*model, {&live});
    EXPECT_GT(model->cache().used, 0);
    live.generation.reset();
    EXPECT_EQ(model->cache().used, 0);
  }
}

}  // namespace
}  // namespace longview::models
